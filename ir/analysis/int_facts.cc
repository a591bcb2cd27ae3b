#include "heddle/ir/analysis/int_facts.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "heddle/ir/analysis/conditions.h"
#include "heddle/ir/analysis/fold_scalar.h"
#include "heddle/ir/analysis/solver.h"
#include "heddle/ir/analysis/views.h"
#include "heddle/ir/op_table_internal.h"
#include "heddle/ir/text/printer.h"

namespace heddle::ir {
namespace {

using Operands = absl::InlinedVector<IntRange, 4>;

bool holds_integers(Type type) {
  return type.is_data() && (is_integer(type.scalar) || type.scalar == Scalar::kBool);
}

// What hardware and the launch allow, by axis.
constexpr int64_t kMaxThreads[] = {1024, 1024, 64};
constexpr int64_t kMaxBlocks[] = {(int64_t{1} << 31) - 1, 65535, 65535};

int64_t block_extent(const Kernel& kernel, int64_t axis) {
  return axis == 0 ? kernel.block.x : axis == 1 ? kernel.block.y : kernel.block.z;
}

// Where a thread is.
std::optional<IntRange> coordinate_range(const Kernel& kernel, const Op& op) {
  const auto axis = static_cast<size_t>(op.attr_or(AttrKey::kAxis, 0));
  const bool dynamic = kernel.has_dynamic_block();
  const int64_t extent = dynamic ? 0 : block_extent(kernel, static_cast<int64_t>(axis));
  const int64_t threads = dynamic ? 1024 : kernel.block.count();
  const auto is = [&](Opcode opcode) { return op.opcode == opcode; };
  if (is(Opcode::kThreadIdx)) return IntRange{0, (dynamic ? kMaxThreads[axis] : extent) - 1};
  if (is(Opcode::kBlockDim)) {
    return dynamic ? IntRange{1, kMaxThreads[axis]} : IntRange{extent, extent};
  }
  if (is(Opcode::kBlockIdx)) return IntRange{0, kMaxBlocks[axis] - 1};
  if (is(Opcode::kGridDim)) return IntRange{1, kMaxBlocks[axis]};
  if (is(Opcode::kLaneId)) return IntRange{0, std::min<int64_t>(threads, 32) - 1};
  if (is(Opcode::kWarpId)) return IntRange{0, (threads + 31) / 32 - 1};
  return std::nullopt;
}

// Both hold; where they exclude each other, the promise is broken, and any range will do.
IntRange meet(IntRange a, IntRange b) {
  const IntRange both{std::max(a.min, b.min), std::min(a.max, b.max)};
  return both.min <= both.max ? both : a;
}

// The value that an extent of a view is, where the view says: a subview's operand.
ValueId subview_extent(const Kernel& kernel, const Op& op) {
  const Op* const view = kernel.def(op.view());
  if (view == nullptr || view->opcode != Opcode::kSubview) return ValueId::kNone;
  const absl::Span<const ValueId> extents = view->extents();
  const auto dim = static_cast<size_t>(op.attr_or(AttrKey::kDim, 0));
  return dim < extents.size() ? extents[dim] : ValueId::kNone;
}

int64_t divisor_of_constant(int64_t value) {
  if (value == std::numeric_limits<int64_t>::min()) return int64_t{1} << 62;
  return std::abs(value);
}

// Where the product is too large to write down, its larger factor divides it too.
int64_t multiply_divisors(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::max(a, b) : product;
}

}  // namespace

class IntAnalysis::Ranges : public Solver<Ranges, IntRange> {
 public:
  Ranges(const Kernel& kernel, FactUse facts, BranchUse branches)
      : Solver(kernel), facts_(facts), branches_(branches), conditions_(kernel) {}
  bool tracks(Type type) const { return holds_integers(type); }
  IntRange unknown(Type type) const {
    return holds_integers(type) ? type_range(type.scalar) : IntRange();
  }
  IntRange argument(ValueId param) const { return unknown(kernel().type(param)); }
  IntRange join(IntRange a, IntRange b) const { return ir::join(a, b); }
  // To where a comparison of the carried value would come out differently, or to 0: a counter that
  // starts again at 4 stays between 0 and 3.
  IntRange widen(IntRange before, IntRange after, ValueId carried) {
    const IntRange all = unknown(kernel().type(carried));
    if (after.min < before.min) {
      const int64_t least = after.min >= 0 ? std::max<int64_t>(all.min, 0) : all.min;
      after.min = conditions_.bound_below(carried, after.min, least);
    }
    if (after.max > before.max) after.max = conditions_.bound_above(carried, after.max, all.max);
    return after;
  }

  // i starts at `start`, moves away from it, and stays before `stop`.
  IntRange induction(const Op& loop) {
    const IntRange start = seen(loop, loop.start());
    const IntRange stop = seen(loop, loop.stop());
    const IntRange step = seen(loop, loop.step());
    const bool down = step.is_constant() && step.min < 0;
    // Where the body cannot run, any range is right; these stay well-formed.
    const IntRange all;
    if (down) return {std::min(start.max, stop.min == all.max ? all.max : stop.min + 1), start.max};
    return {start.min, std::max(start.min, stop.max == all.min ? all.min : stop.max - 1)};
  }

  IntRange evaluate(const Op& op, uint32_t index) {
    const Type type = kernel().type(op.results[index]);
    if (const auto constant = kernel().constant_int(op.results[index])) {
      return {*constant, *constant};
    }
    if (const auto range = coordinate_range(kernel(), op)) return *range;
    if (op.opcode == Opcode::kExtent || op.opcode == Opcode::kStride) return layout(op, type);
    if (op.opcode == Opcode::kConvert || op.opcode == Opcode::kBitcast) {
      const Scalar from = kernel().type(op.a()).scalar;
      return converted_range(from, type.scalar, seen(op, op.a()));
    }
    if (has(info(op), kShuffle)) return known(op.value());
    if (has(info(op), kRearranges)) {
      IntRange all = seen(op, op.operands.front());
      for (const ValueId operand : op.operands) all = join(all, seen(op, operand));
      return all;
    }
    if (op.opcode == Opcode::kAssumeRange) {
      const IntFacts promised = promised_facts(op);
      return meet(seen(op, op.a()), {promised.min, promised.max});
    }
    if (has(info(op), kForwards)) return seen(op, op.a());
    if (op.operands.empty()) return unknown(type);
    Operands operands;
    for (const ValueId operand : op.operands) operands.push_back(seen(op, operand));
    if (op.opcode == Opcode::kSelect) {
      operands[1] = conditions_.where(op.condition(), true, op.a(), operands[1]);
      operands[2] = conditions_.where(op.condition(), false, op.b(), operands[2]);
    }
    const Scalar scalar = scalar_of(op);
    if (is_float(scalar)) return unknown(type);  // floats have no rules
    return range_of(op.opcode, scalar, operands).value_or(unknown(type));
  }

  // The range of a value where an op stands.
  IntRange at(const Op& op, ValueId value) { return narrowed(op, value, get(value)); }

  // Whether an op's exact result may lie outside of its type.
  bool wraps(const Op& op) {
    Operands operands;
    for (const ValueId operand : op.operands) operands.push_back(at(op, operand));
    return may_wrap(op.opcode, scalar_of(op), operands);
  }

 private:
  // Of an operand of the op that is being evaluated.
  IntRange seen(const Op& op, ValueId value) { return narrowed(op, value, known(value)); }
  IntRange narrowed(const Op& op, ValueId value, IntRange range) {
    // An op that a pass has erased stands nowhere.
    const bool placed = branches_ == BranchUse::kHeed && valid(op.parent);
    if (!placed || !holds_integers(kernel().type(value))) return range;
    return conditions_.inside(op.parent, value, range);
  }

  // The type that an op computes in, which a comparison's result is not of.
  Scalar scalar_of(const Op& op) const {
    return kernel().type(op.operands[typed_operand(op.opcode)]).scalar;
  }

  IntRange layout(const Op& op, Type type) {
    if (const auto fixed = fixed_layout(kernel(), op)) return {*fixed, *fixed};
    const IntRange all = unknown(type);
    if (op.opcode == Opcode::kStride) return is_unit_stride(op) ? IntRange{1, 1} : all;
    const ValueId extent = subview_extent(kernel(), op);
    if (valid(extent)) {
      const IntRange range = get(extent);
      return all.contains(range) ? range : all;
    }
    IntRange range{0, all.max};
    if (const auto param = kernel().param_index(op.view())) {
      const auto dim = static_cast<uint8_t>(op.attr_or(AttrKey::kDim, 0));
      const Fact fits{FactKind::kExtentFits32, static_cast<uint16_t>(*param), dim};
      if (facts_ == FactUse::kAsk && kernel().fact_if_read(fits).value_or(0) == 1) {
        range.max = std::min(range.max, type_range(Scalar::kI32).max);
      }
    }
    return range;
  }

  // Whether the code relies on it already that the stride is 1.
  bool is_unit_stride(const Op& op) const {
    const auto param = kernel().param_index(op.view());
    if (!param || facts_ != FactUse::kAsk) return false;
    const auto dim = static_cast<uint8_t>(op.attr_or(AttrKey::kDim, 0));
    const Fact unit{FactKind::kUnitStride, static_cast<uint16_t>(*param), dim};
    return kernel().fact_if_read(unit) == 1;
  }

  FactUse facts_;
  BranchUse branches_;
  Conditions conditions_;
};

class IntAnalysis::Divisors : public Solver<Divisors, int64_t> {
 public:
  Divisors(const Kernel& kernel, Ranges& ranges, FactUse facts)
      : Solver(kernel), ranges_(ranges), facts_(facts) {}
  bool tracks(Type type) const { return holds_integers(type); }
  int64_t unknown(Type) const { return 1; }
  int64_t argument(ValueId) const { return 1; }
  int64_t join(int64_t a, int64_t b) const { return std::gcd(a, b); }
  int64_t widen(int64_t, int64_t after, ValueId) const { return power_of_two_in(after); }
  int64_t induction(const Op& loop) const {
    return std::gcd(known(loop.start()), known(loop.step()));
  }

  int64_t evaluate(const Op& op, uint32_t index) {
    const ValueId result = op.results[index];
    const Type type = kernel().type(result);
    const IntRange range = ranges_.get(result);
    // A u64's twin and its number have the same powers of two as divisors, but no others.
    const bool twins = type.scalar == Scalar::kU64 && range.min < 0;
    if (range.is_constant()) {
      const int64_t divisor = divisor_of_constant(range.min);
      return twins ? power_of_two_in(divisor) : divisor;
    }
    if (op.opcode == Opcode::kExtent || op.opcode == Opcode::kStride) return layout(op);
    if (op.operands.empty()) return 1;
    const Rule rule = at(kRules, op.opcode);
    if (rule == nullptr) return has(info(op), kForwards) ? known(op.a()) : 1;
    const int64_t divisor = rule(*this, op, type);
    return twins ? power_of_two_in(divisor) : divisor;
  }

 private:
  using Rule = int64_t (*)(Divisors&, const Op&, Type);

  std::optional<int64_t> constant(ValueId value) {
    const IntRange range = ranges_.get(value);
    if (!range.is_constant()) return std::nullopt;
    return range.min;
  }
  // What is left of a divisor of the exact result in a result modulo 2^n.
  int64_t after_wrapping(const Op& op, int64_t divisor) {
    return ranges_.wraps(op) ? power_of_two_in(divisor) : divisor;
  }

  static int64_t of_all(Divisors& d, const Op& op, Type) {
    int64_t all = 0;
    for (const ValueId operand : op.operands) all = std::gcd(all, d.known(operand));
    return all;
  }
  static int64_t of_sum(Divisors& d, const Op& op, Type) {
    return d.after_wrapping(op, std::gcd(d.known(op.a()), d.known(op.b())));
  }
  static int64_t of_product(Divisors& d, const Op& op, Type) {
    return d.after_wrapping(op, multiply_divisors(d.known(op.a()), d.known(op.b())));
  }
  static int64_t of_fma(Divisors& d, const Op& op, Type) {
    const int64_t product = multiply_divisors(d.known(op.a()), d.known(op.b()));
    return d.after_wrapping(op, std::gcd(product, d.known(op.c())));
  }
  static int64_t of_first(Divisors& d, const Op& op, Type) {
    return d.after_wrapping(op, d.known(op.a()));
  }
  static int64_t of_shuffle(Divisors& d, const Op& op, Type) { return d.known(op.value()); }
  static int64_t of_quotient(Divisors& d, const Op& op, Type) {
    const auto by = d.constant(op.b());
    if (!by || *by <= 0 || d.known(op.a()) % *by != 0) return 1;
    return d.known(op.a()) / *by;
  }
  // The low zero bits that either operand has; those that both have.
  static int64_t of_and(Divisors& d, const Op& op, Type) {
    const int64_t a = power_of_two_in(d.known(op.a()));
    const int64_t b = power_of_two_in(d.known(op.b()));
    return a == 0 || b == 0 ? 0 : std::max(a, b);
  }
  static int64_t of_or(Divisors& d, const Op& op, Type) {
    return std::gcd(power_of_two_in(d.known(op.a())), power_of_two_in(d.known(op.b())));
  }
  static int64_t of_shl(Divisors& d, const Op& op, Type) {
    const auto count = d.constant(op.count());
    if (!count || *count > 62) return power_of_two_in(d.known(op.a()));
    return d.after_wrapping(op, multiply_divisors(d.known(op.a()), int64_t{1} << *count));
  }
  static int64_t of_shr(Divisors& d, const Op& op, Type) {
    const auto count = d.constant(op.count());
    if (!count || *count > 62 || d.known(op.a()) % (int64_t{1} << *count) != 0) return 1;
    return d.known(op.a()) >> *count;
  }
  static int64_t of_assumed(Divisors& d, const Op& op, Type) {
    const int64_t found = d.known(op.a()), promised = promised_facts(op).divisor;
    return multiply_divisors(found / std::gcd(found, promised), promised);
  }
  static int64_t of_select(Divisors& d, const Op& op, Type) {
    return std::gcd(d.known(op.a()), d.known(op.b()));
  }
  static int64_t of_convert(Divisors& d, const Op& op, Type type) {
    const Type from = d.kernel().type(op.a());
    if (!holds_integers(from) || type.scalar == Scalar::kBool) return 1;
    const bool same = type_range(type.scalar).contains(d.ranges_.get(op.a()));
    return same ? d.known(op.a()) : power_of_two_in(d.known(op.a()));
  }

  int64_t layout(const Op& op) {
    const auto dim = static_cast<uint8_t>(op.attr_or(AttrKey::kDim, 0));
    if (const auto param = kernel().param_index(op.view())) {
      const bool no_extent = kernel().params()[static_cast<size_t>(*param)].unbounded;
      if (facts_ == FactUse::kIgnore || no_extent) return 1;
      const FactKind kind =
          op.opcode == Opcode::kExtent ? FactKind::kExtentDivisor : FactKind::kStrideDivisor;
      return kernel().fact({kind, static_cast<uint16_t>(*param), dim});
    }
    if (op.opcode == Opcode::kStride) return 1;
    const ValueId extent = subview_extent(kernel(), op);
    return valid(extent) ? get(extent) : 1;
  }

  static const OpTable<Rule> kRules;
  Ranges& ranges_;
  FactUse facts_;
};

constexpr OpTable<IntAnalysis::Divisors::Rule> IntAnalysis::Divisors::kRules = op_table<Rule>(
    algebraic_on_integers,
    {
        {Opcode::kAdd, of_sum},
        {Opcode::kSub, of_sum},
        {Opcode::kMul, of_product},
        {Opcode::kFma, of_fma},
        {Opcode::kNeg, of_first},
        {Opcode::kAbs, of_first},
        {Opcode::kDiv, of_quotient},
        {Opcode::kRem, of_all},
        {Opcode::kMin, of_all},
        {Opcode::kMax, of_all},
        {Opcode::kAnd, of_and},
        {Opcode::kOr, of_or},
        {Opcode::kXor, of_or},
        {Opcode::kShl, of_shl},
        {Opcode::kShr, of_shr},
        {Opcode::kSelect, of_select},
        {Opcode::kConvert, of_convert},
        {Opcode::kBitcast, of_convert},
        {Opcode::kPack, of_all},
        {Opcode::kExtract, of_all},
        {Opcode::kSlice, of_all},
        {Opcode::kSplat, of_all},
        {Opcode::kAssumeRange, of_assumed},
        {Opcode::kShflIdx, of_shuffle},
        {Opcode::kShflUp, of_shuffle},
        {Opcode::kShflDown, of_shuffle},
        {Opcode::kShflXor, of_shuffle},
    },
    {Opcode::kNot, Opcode::kEq, Opcode::kNe, Opcode::kLt, Opcode::kLe, Opcode::kGt, Opcode::kGe});

IntFacts promised_facts(const Op& assume_range) {
  const IntRange all;
  return {assume_range.attr_or(AttrKey::kMin, all.min),
          assume_range.attr_or(AttrKey::kMax, all.max), assume_range.attr_or(AttrKey::kDivisor, 1)};
}

IntAnalysis::IntAnalysis(const Kernel& kernel, FactUse facts, BranchUse branches)
    : kernel_(kernel),
      ranges_(std::make_unique<Ranges>(kernel, facts, branches)),
      divisors_(std::make_unique<Divisors>(kernel, *ranges_, facts)) {}

IntAnalysis::~IntAnalysis() = default;

IntRange IntAnalysis::range(ValueId value) { return ranges_->get(value); }

IntRange IntAnalysis::range_at(const Op& op, ValueId operand) { return ranges_->at(op, operand); }

int64_t IntAnalysis::divisor(ValueId value) { return divisors_->get(value); }

IntFacts IntAnalysis::of(ValueId value) {
  const IntRange r = range(value);
  return {r.min, r.max, divisor(value)};
}

bool IntAnalysis::divisible(ValueId value, int64_t d) {
  if (d == 1) return true;
  const IntRange r = range(value);
  if (!r.is_constant()) return divisor(value) % d == 0;
  if (kernel_.type(value).scalar != Scalar::kU64) return r.min % d == 0;
  return static_cast<uint64_t>(r.min) % static_cast<uint64_t>(d) == 0;
}

std::string IntAnalysis::disagreement(IntAnalysis& other) {
  // Inside of ifs and loops anything may be said of what never runs.
  for (const OpId id : kernel_.ops(kernel_.body())) {
    for (const ValueId value : kernel_.op(id).results) {
      if (!holds_integers(kernel_.type(value))) continue;
      const IntRange a = range(value), b = other.range(value);
      if (std::max(a.min, b.min) <= std::min(a.max, b.max)) continue;
      return absl::StrCat("'", print_op(kernel_, id), "' gives ", a.min, " to ", a.max,
                          ", where it gives ", b.min, " to ", b.max);
    }
  }
  return "";
}

IntAnalysis::Trips IntAnalysis::trips(OpId for_op) {
  const Op& op = kernel_.op(for_op);
  IntRange start = range(op.start());
  IntRange stop = range(op.stop());
  IntRange step = range(op.step());
  if (step.is_constant() && step.min < 0) {
    // A loop that runs down is the mirror image of one that runs up. Ends at the very edge of i64
    // have no mirror image.
    constexpr int64_t kEdge = std::numeric_limits<int64_t>::min();
    if (start.min == kEdge || stop.min == kEdge || step.min == kEdge) return {};
    const auto mirror = [](IntRange r) { return IntRange{-r.max, -r.min}; };
    start = mirror(start);
    stop = mirror(stop);
    step = mirror(step);
  }
  if (step.is_constant() && step.min == 0) return {};
  step.min = std::max<int64_t>(step.min, 1);  // what is no constant is positive
  Trips trips;
  trips.none = start.min >= stop.max;
  trips.at_least_one = start.max < stop.min;
  int64_t second = 0;
  const bool far = __builtin_add_overflow(start.min, step.min, &second);
  trips.exactly_one = trips.at_least_one && (far || second >= stop.max);
  return trips;
}

}  // namespace heddle::ir
