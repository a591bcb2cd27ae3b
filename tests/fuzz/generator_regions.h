// The part of the generator that opens regions: where threads are inside of them, and what goes in and comes out.
#pragma once

#include <algorithm>
#include <vector>

#include "fuzz/generator_memory.h"

namespace heddle::fuzz {

class RegionGenerator : public MemoryGenerator {
 protected:
  using MemoryGenerator::MemoryGenerator;

  // Values that a region carries or hands on.
  std::vector<ValueId> carried() {
    std::vector<ValueId> values;
    for (size_t i = below(4); i > 0; --i) values.push_back(any(any_type()));
    // Of two of one type, which is which shows.
    if (!values.empty() && chance(40)) values.push_back(any(kernel_.type(values[0])));
    return values;
  }
  std::vector<ValueId> like(const std::vector<ValueId>& values) {
    std::vector<ValueId> list;
    for (const ValueId value : values) list.push_back(any(kernel_.type(value)));
    return list;
  }

  // Runs `body` for the region at hand, of which threads come that agree on `level`.
  template <class Body>
  void inside(Scope level, Body body) {
    const Scope outer = control_;
    const ValueId lanes = lanes_;
    if (level < Scope::kWarp || level < control_) lanes_ = ValueId::kNone;
    control_ = std::min(control_, level);
    ++depth_;
    scope([&] {
      for (const ValueId arg : kernel_.region(b_.region()).args) keep(arg);
      body();
    });
    --depth_;
    control_ = outer;
    lanes_ = lanes;
  }
  void keep_results(ir::OpId op) {
    const auto results = kernel_.op(op).results;
    for (const ValueId result : results) keep(result);
  }

  static constexpr int64_t kMaxTrips = 300;  // of a nest
  int depth_ = 0;
  int64_t trips_ = 1;
};

}  // namespace heddle::fuzz
