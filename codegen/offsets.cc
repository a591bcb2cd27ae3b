#include "heddle/codegen/offsets.h"

#include <algorithm>
#include <limits>

#include "heddle/ir/analysis/views.h"

namespace heddle::codegen {
namespace {

using ir::IntRange;
using ir::Kernel;
using ir::Op;
using ir::Opcode;
using ir::Scalar;
using ir::ValueId;

constexpr size_t kMaxTerms = 4;

class Splitter {
 public:
  Splitter(const Kernel& kernel, const std::vector<int>& depth, Analyses& analyses, ValueId view)
      : kernel_(kernel), depth_(depth), analyses_(analyses) {
    const ir::Space space = kernel.type(view).space;
    is_modular_ = space == ir::Space::kShared || space == ir::Space::kSharedCluster;
    is_bounded_ = kernel.param_index(view).has_value() && !is_unbounded(kernel, view);
  }

  SplitOffset run(ValueId offset) {
    // While only constants have been taken off, the value at hand plus `addend` is the offset.
    add(offset, kernel_.type(offset).scalar == Scalar::kI32);
    std::stable_sort(result_.terms.begin(), result_.terms.end(),
                     [this](ValueId a, ValueId b) { return depth(a) < depth(b); });
    return std::move(result_);
  }

 private:
  int depth(ValueId value) const {
    const ir::Value& v = kernel_.value(value);
    const ir::RegionId region = valid(v.def) ? kernel_.op(v.def).parent : v.region;
    return depth_[ir::index_of(region)];
  }

  void add(ValueId value, bool from_offset) {
    if (const auto constant = kernel_.constant_int(value)) {
      // Addresses are modulo 2^64.
      result_.addend = static_cast<int64_t>(static_cast<uint64_t>(result_.addend) +
                                            static_cast<uint64_t>(*constant));
      return;
    }
    const Op* const op = kernel_.def(value);
    if (op == nullptr) return add_term(value);
    if (op->opcode == Opcode::kConvert && kernel_.type(value).scalar == Scalar::kI64 &&
        kernel_.type(op->a()).scalar == Scalar::kI32) {
      return add(op->a(), false);
    }
    if (op->opcode == Opcode::kAdd) return add_sum(value, *op, from_offset);
    if (op->opcode == Opcode::kSub) return add_difference(value, *op, from_offset);
    // What at_launch computes its value from is not part of the kernel.
    if (has(info(*op), ir::kForwards) && op->opcode != Opcode::kAtLaunch) {
      return add(op->a(), from_offset);
    }
    add_term(value);
  }

  void add_term(ValueId value) { result_.terms.push_back(value); }

  void add_sum(ValueId value, const Op& op, bool from_offset) {
    const ValueId a = op.a();
    const ValueId b = op.b();
    const auto constant_a = kernel_.constant_int(a);
    const auto constant_b = kernel_.constant_int(b);
    if (constant_a || constant_b) {
      const ValueId rest = constant_b ? a : b;
      return add_constant(value, rest, constant_b ? *constant_b : *constant_a, from_offset);
    }
    const bool is_split = depth(a) != depth(b) && result_.terms.size() + 2 <= kMaxTerms;
    if (!is_split || !sum_is_exact(a, b, from_offset)) return add_term(value);
    add(a, false);
    add(b, false);
  }

  void add_difference(ValueId value, const Op& op, bool from_offset) {
    const auto constant = kernel_.constant_int(op.b());
    if (!constant || *constant == std::numeric_limits<int64_t>::min()) return add_term(value);
    add_constant(value, op.a(), -*constant, from_offset);
  }

  void add_constant(ValueId value, ValueId rest, int64_t constant, bool from_offset) {
    if (is_narrow(rest) && !addition_is_exact(rest, constant, from_offset)) return add_term(value);
    result_.addend = static_cast<int64_t>(static_cast<uint64_t>(result_.addend) +
                                          static_cast<uint64_t>(constant));
    add(rest, from_offset);
  }

  // Whether an i32 is extended to 64 bits: then sums have to be the same in both widths.
  bool is_narrow(ValueId value) const {
    return !is_modular_ && kernel_.type(value).scalar == Scalar::kI32;
  }

  // An i32 offset into a bounded parameter says that all its offsets fit in 31 bits. Where adding
  // positive constants to i wrapped, it would come out negative, so that an access which is in
  // bounds has not wrapped. Likewise for the sum of two numbers of which one is not negative.
  bool addition_is_exact(ValueId rest, int64_t constant, bool from_offset) {
    const int64_t total = result_.addend + constant;
    const IntRange i32 = ir::type_range(Scalar::kI32);
    if (from_offset && is_bounded_ && constant >= 0 && total >= 0 && total <= i32.max) return true;
    const IntRange range = analyses_.ints().range(rest);
    return i32.contains({range.min + constant, range.max + constant});
  }
  bool sum_is_exact(ValueId a, ValueId b, bool from_offset) {
    if (!is_narrow(a)) return true;
    const IntRange ra = analyses_.ints().range(a);
    const IntRange rb = analyses_.ints().range(b);
    if (from_offset && is_bounded_ && result_.addend == 0 && (ra.min >= 0 || rb.min >= 0)) {
      return true;
    }
    return ir::type_range(Scalar::kI32).contains({ra.min + rb.min, ra.max + rb.max});
  }

  const Kernel& kernel_;
  const std::vector<int>& depth_;
  Analyses& analyses_;
  bool is_modular_ = false;  // addresses are 32-bit numbers
  bool is_bounded_ = false;
  SplitOffset result_;
};

}  // namespace

SplitOffset split_offset(const Kernel& kernel, const std::vector<int>& depth, Analyses& analyses,
                         ValueId view, ValueId offset) {
  return Splitter(kernel, depth, analyses, view).run(offset);
}

}  // namespace heddle::codegen
