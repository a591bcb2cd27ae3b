// What a warp knows of the others: how far each has come, by the releases and acquires between them.
// Internal.
//
// A component is a count that only grows: of a warp, the stretches of its run that its releases
// divide; of an mbarrier, its ended phases. What happened at count c of component i is before
// whoever has a clock with at(i) >= c.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::ir::interp {

class Clock {
 public:
  uint32_t at(uint32_t i) const { return i < counts_.size() ? counts_[i] : 0; }
  void raise(uint32_t i, uint32_t count) {
    if (i >= counts_.size()) counts_.resize(i + 1);
    counts_[i] = std::max(counts_[i], count);
  }
  void set(uint32_t i, uint32_t count) {
    if (i >= counts_.size()) counts_.resize(i + 1);
    counts_[i] = count;
  }
  // All that either knows.
  void join(const Clock& other) {
    if (counts_.size() < other.counts_.size()) counts_.resize(other.counts_.size());
    for (size_t i = 0; i < other.counts_.size(); ++i) {
      counts_[i] = std::max(counts_[i], other.counts_[i]);
    }
  }
  // What both know.
  void meet(const Clock& other) {
    if (counts_.size() > other.counts_.size()) counts_.resize(other.counts_.size());
    for (size_t i = 0; i < counts_.size(); ++i) {
      counts_[i] = std::min(counts_[i], other.counts_[i]);
    }
  }

 private:
  std::vector<uint32_t> counts_;
};

// The three things that an ordering does.
struct Knowledge {
  Clock seen;  // what is visible: releases and acquires whose scopes fit
  Clock
      reached;   // what is over: orderings of any scope, which is enough to overwrite what was read
  Clock fenced;  // what a proxy fence has handed to the other proxy, on the way here

  void join(const Knowledge& other) {
    seen.join(other.seen);
    reached.join(other.reached);
    fenced.join(other.fenced);
  }
  void meet(const Knowledge& other) {
    seen.meet(other.seen);
    reached.meet(other.reached);
    fenced.meet(other.fenced);
  }
};

}  // namespace heddle::ir::interp
