// What takes part in a comparison: Heddle, or a peer in a shared library (peers/peer.h). A problem is prepared once;
// each of its candidates then enqueues it on a stream.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/runtime/stream.h"
#include "heddle/tools/bench/peers/peer.h"

namespace heddle::bench {

// A problem that a contender has prepared.
class Prepared {
 public:
  virtual ~Prepared() = default;
  // Ways to solve it, at least one; the fastest is taken.
  virtual std::vector<std::string> candidates() const = 0;
  // Bytes of device memory that a launch may want.
  virtual size_t workspace() const = 0;
  // Numbers about it that belong to the results, by name.
  virtual std::map<std::string, double> notes() const { return {}; }
  // Enqueues it; pointers in the order of the problem's tensors. The workspace stays the same for a prepared problem.
  virtual Status launch(int candidate, void* const* pointers, void* workspace,
                        const Stream& stream) = 0;
};

class Contender {
 public:
  virtual ~Contender() = default;
  virtual std::string name() const = 0;
  virtual std::string version() const = 0;
  // Whether it leaves out what a problem's variant adds, so that its results are others.
  virtual bool is_plain() const { return false; }
  // kUnimplemented, with the reason, where it lacks the problem.
  virtual StatusOr<std::unique_ptr<Prepared>> prepare(const PeerProblem& problem) = 0;
};

// A shared library with the functions of peer.h; `options` go to its peer_open(). The current device is the one that
// launches use.
StatusOr<std::unique_ptr<Contender>> open_peer(const std::string& library,
                                               const std::string& options);

}  // namespace heddle::bench
