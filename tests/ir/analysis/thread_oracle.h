// Runs a kernel thread by thread, straight from ops.def: the third account of the semantics, beside
// the constant folder's and the interpreter's, and it watches what every value is.
//
// For kernels whose threads do not talk to each other (barriers do nothing here). Integers compute
// in 128 bits, floats exactly with one rounding at the end.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "heddle/ir/kernel.h"

namespace heddle::ir {

// The elements of a value. A poisoned one stands for what ops.def leaves unspecified: whatever
// depends on it is poisoned too.
struct OracleValue {
  absl::InlinedVector<uint64_t, 4> elements;
  bool poison = false;
};

struct OracleThread {
  int x = 0, y = 0, z = 0;
  int linear = 0;
};

class ThreadOracle {
 public:
  // Arguments: the bits of a scalar parameter, the elements of a view's memory (one dimension).
  struct Argument {
    uint64_t scalar = 0;
    std::vector<uint64_t> memory{};
  };

  ThreadOracle(const Kernel& kernel, std::vector<Argument> arguments);

  // Called for each value that a thread computes, with the trips of the loops around it as one
  // number, and for each time that it runs a region.
  using OnValue =
      std::function<void(const OracleThread&, ValueId, uint64_t trip, const OracleValue&)>;
  using OnRegion = std::function<void(const OracleThread&, RegionId, uint64_t trip)>;
  void watch(OnValue on_value, OnRegion on_region);

  // False where the program does what no program may: branch on, or go to memory by, a value that
  // is unspecified, leave its memory, or run for too long.
  bool run();

  // A view's memory after the run; poisoned elements are marked.
  const std::vector<OracleValue>& memory(size_t param) const { return memory_[param]; }

 private:
  struct View {
    std::vector<OracleValue>* memory = nullptr;
    int64_t offset = 0;
  };

  bool run_region(RegionId region, uint64_t trip);
  bool run_op(OpId id, uint64_t trip);
  bool run_for(const Op& op, OpId id, uint64_t trip);
  bool run_while(const Op& op, OpId id, uint64_t trip);
  bool run_if(const Op& op, uint64_t trip);
  bool run_load(const Op& op, uint64_t trip);
  bool run_store(const Op& op);
  bool address(const Op& op, int count, View& view, int64_t& at);
  bool compute(const Op& op, uint64_t trip);
  uint64_t element(const Op& op, Scalar from, Scalar to, absl::Span<const uint64_t> bits,
                   bool& poison);
  void define(ValueId value, OracleValue result, uint64_t trip);
  absl::Span<const ValueId> yields(RegionId region) const;
  std::vector<OracleValue> take(absl::Span<const ValueId> values) const;

  const Kernel& kernel_;
  std::vector<Argument> arguments_;
  std::vector<std::vector<OracleValue>> memory_;  // by parameter
  std::vector<std::vector<OracleValue>> shared_;  // by value, for `shared` ops
  std::vector<OracleValue> values_;
  std::vector<View> views_;
  OracleThread thread_;
  OnValue on_value_;
  OnRegion on_region_;
  int64_t fuel_ = 0;
};

}  // namespace heddle::ir
