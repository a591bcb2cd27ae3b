#include "heddle/codegen/offsets.h"

#include <algorithm>
#include <bit>
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
// The unit of addresses in a descriptor, in bytes.
constexpr int64_t kDescriptorUnit = 16;

class Splitter {
 public:
  Splitter(const Kernel& kernel, const std::vector<int>& depth, const AccessedOffsets& accessed,
           ir::Analyses& analyses, ir::OpId id)
      : kernel_(kernel), depth_(depth), accessed_(accessed), analyses_(analyses), id_(id) {
    const Op& op = kernel.op(id);
    const ir::Type view = kernel.type(op.view());
    const bool is_shared =
        view.space == ir::Space::kShared || view.space == ir::Space::kSharedCluster;
    if (op.opcode == Opcode::kSmemDesc) unit_ = kDescriptorUnit / bytes_of(view.scalar);
    is_modular_ = is_shared && unit_ == 1;
    is_bounded_ = unit_ != 1 ||
                  (kernel.param_index(op.view()).has_value() && !is_unbounded(kernel, op.view()));
    const Op* const array = kernel.def(op.view());
    if (is_modular_ && array != nullptr && array->opcode == Opcode::kShared) {
      aligned_ = array->attr_or(ir::AttrKey::kAlign, 0) / bytes_of(view.scalar);
    }
  }

  SplitOffset run(ValueId offset) {
    // While only constants have been taken off, the value at hand plus `addend`, less `origin_`, is an offset in bounds.
    add(offset, kernel_.type(offset).scalar == Scalar::kI32);
    if (unit_ != 1 && !is_in_units()) {
      unit_ = 1;
      is_modular_ = true;
      result_ = {};
      add(offset, false);
    }
    std::stable_sort(result_.terms.begin(), result_.terms.end(),
                     [this](const SplitOffset::Term& a, const SplitOffset::Term& b) {
                       return depth(a.value) < depth(b.value);
                     });
    return std::move(result_);
  }

 private:
  int depth(ValueId value) const {
    const ir::Value& v = kernel_.value(value);
    const ir::RegionId region = valid(v.def) ? kernel_.op(v.def).parent : v.region;
    return depth_[ir::index_of(region)];
  }

  bool is_in_units() const {
    return result_.addend % unit_ == 0 &&
           std::all_of(result_.terms.begin(), result_.terms.end(),
                       [](const SplitOffset::Term& term) { return term.factor != 0; });
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
    if (op->opcode == Opcode::kMul || op->opcode == Opcode::kFma) {
      return add_product(value, *op, from_offset);
    }
    if (op->opcode == Opcode::kXor && is_all_) {
      const auto constant = kernel_.constant_int(op->b());
      if (constant && *constant > 0 && *constant < aligned_) {
        result_.exclusive = static_cast<int32_t>(*constant);
        return add_term(op->a());
      }
    }
    // What at_launch computes its value from is not part of the kernel.
    if (has(info(*op), ir::kForwards) && op->opcode != Opcode::kAtLaunch) {
      return add(op->a(), from_offset);
    }
    add_term(value);
  }

  void add_term(ValueId value) {
    if (unit_ == 1 || !analyses_.get<ir::Ints>().divisible(value, unit_)) {
      result_.terms.push_back({value});
    } else {
      result_.terms.push_back({value, 1, std::countr_zero(static_cast<uint32_t>(unit_))});
    }
  }

  // a * b, or a * b + c, of a descriptor: a term that counts units where no product or sum wraps, for
  // a unit is several elements.
  void add_product(ValueId value, const Op& op, bool from_offset) {
    const auto factor = kernel_.constant_int(op.b());
    if (unit_ == 1 || !factor || *factor % unit_ != 0 || !is_narrow(value)) return add_term(value);
    const IntRange by[] = {analyses_.get<ir::Ints>().range(op.a()), {*factor, *factor}};
    if (may_wrap(Opcode::kMul, Scalar::kI32, by)) return add_term(value);
    const IntRange product = *range_of(Opcode::kMul, Scalar::kI32, by);
    const bool is_sum = op.opcode == Opcode::kFma;
    if (is_sum && !sum_is_exact(product, analyses_.get<ir::Ints>().range(op.c()), from_offset)) {
      return add_term(value);
    }
    result_.terms.push_back({op.a(), static_cast<int32_t>(*factor / unit_), 0});
    if (is_sum) add(op.c(), false);
  }

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
    if (!is_split) return add_term(value);
    if (is_narrow(a) && !sum_is_exact(analyses_.get<ir::Ints>().range(a),
                                      analyses_.get<ir::Ints>().range(b), from_offset)) {
      return add_term(value);
    }
    is_all_ = false;
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
    if (from_offset && accessed_.before(id_, rest)) origin_ = result_.addend;
    add(rest, from_offset);
  }

  // Whether an i32 is extended to 64 bits: then sums have to be the same in both widths.
  bool is_narrow(ValueId value) const {
    return !is_modular_ && kernel_.type(value).scalar == Scalar::kI32;
  }

  // An offset in bounds is from 0 to kLargestOffset32: of a bounded parameter where it is i32, and in the tile that a
  // descriptor describes. The value at hand is such an offset minus `less`. That fits in i32, so nothing has wrapped, where
  // `less` is at least -kSpareOffsets. A sum that is not negative has not wrapped where one of its two numbers is not
  // negative either.
  bool addition_is_exact(ValueId rest, int64_t constant, bool from_offset) {
    const int64_t less = result_.addend + constant - origin_;
    const IntRange i32 = ir::type_range(Scalar::kI32);
    if (from_offset && is_bounded_ && less >= -ir::kSpareOffsets && less <= i32.max) return true;
    const IntRange range = analyses_.get<ir::Ints>().range(rest);
    return i32.contains({range.min + constant, range.max + constant});
  }
  bool sum_is_exact(IntRange a, IntRange b, bool from_offset) {
    const bool in_bounds = from_offset && is_bounded_ && result_.addend <= origin_;
    if (in_bounds && (a.min >= 0 || b.min >= 0)) return true;
    return ir::type_range(Scalar::kI32).contains({a.min + b.min, a.max + b.max});
  }

  const Kernel& kernel_;
  const std::vector<int>& depth_;
  const AccessedOffsets& accessed_;
  ir::Analyses& analyses_;
  ir::OpId id_;
  int64_t unit_ = 1;         // elements
  bool is_modular_ = false;  // addresses are 32-bit numbers
  bool is_bounded_ = false;
  bool is_all_ = true;  // but for constants, the value at hand is the offset
  int64_t origin_ = 0;  // what `addend` was at a value that is an offset in bounds itself
  int64_t aligned_ =
      0;  // elements: a power of two that the view's address is a multiple of; 0: unknown
  SplitOffset result_;
};

}  // namespace

AccessedOffsets::AccessedOffsets(const Kernel& kernel) : kernel_(kernel) {
  int position = 0;
  kernel.walk([&](ir::OpId id) {
    const Op& op = kernel.op(id);
    positions_.at(id) = ++position;
    if (op.opcode != Opcode::kLoad && op.opcode != Opcode::kStore) return;
    first_.try_emplace({op.view(), op.offset()}, First{op.parent, position});
  });
}

bool AccessedOffsets::before(ir::OpId op, ValueId offset) const {
  const auto it = first_.find({kernel_.op(op).view(), offset});
  if (it == first_.end() || it->second.position >= positions_[op]) return false;
  while (valid(op) && kernel_.op(op).parent != it->second.region) {
    op = kernel_.region(kernel_.op(op).parent).parent;
  }
  return valid(op);
}

SplitOffset split_offset(const Kernel& kernel, const std::vector<int>& depth,
                         const AccessedOffsets& accessed, ir::Analyses& analyses, ir::OpId op) {
  return Splitter(kernel, depth, accessed, analyses, op).run(kernel.op(op).offset());
}

}  // namespace heddle::codegen
