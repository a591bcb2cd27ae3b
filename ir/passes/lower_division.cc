// lower-division: integer divisions by what is known before the kernel runs become multiplications.
//
// What: div and rem by a constant, of 32 or 64 bits, and by what follows from the kernel's arguments, extents and strides,
// of 32 bits: of these the host computes multipliers before each launch, and where it knows the dividend too, it divides.
// A division by 0 is unspecified; the interpreter reports it no more once the division is gone. Kernels with wgmma keep
// their divisions by launch values: multipliers take registers that accumulators need, and such kernels divide once a tile.
//
// Needs: nothing. Keeps: aliasing, ints, guarded-ints.
//
// Why: a division is some twenty instructions, of 64 bits more than seventy, and ptxas does no better where the divisor is
// a constant; a multiplication and a shift are two, a few more where the dividend may be negative. It stands behind all
// that asks for ranges and divisors, which know more of a quotient than of a shifted product.
//
//   %q = div %i, %n : u32        →     %m, %a, %s = at_launch …, once for each divisor
//                                      %p = fma (u64)%i, (u64)%m, %a : u64
//                                      %q = (u32)(%p >> 32) >> %s : u32
#include <bit>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "heddle/ir/analysis/int_facts.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/launch/divider.h"
#include "heddle/ir/launch/launch_program.h"
#include "heddle/ir/passes/passes.h"
#include "heddle/ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

constexpr Type kU64Type = Type::of(Scalar::kU64);

class DivisionLowering {
 public:
  explicit DivisionLowering(PassContext& context)
      : kernel_(context.kernel()),
        by_launch_values_(!has_op(kernel_, Opcode::kWgmma)),
        ints_(context.analysis<Ints>()),
        b_(kernel_) {}

  bool run() {
    std::vector<OpId> divisions;
    kernel_.walk([&](OpId id) {
      const Op& op = kernel_.op(id);
      if ((op.opcode == Opcode::kDiv || op.opcode == Opcode::kRem) && can_replace(op)) {
        divisions.push_back(id);
      }
    });
    for (const OpId id : divisions) replace(id);
    return !divisions.empty();
  }

 private:
  bool is_known(ValueId value) const { return !unknown_at_launch(kernel_, value).has_value(); }
  bool is_negative_nowhere(const Op& op, ValueId value) {
    return !is_signed(kernel_.type(value).scalar) || ints_.range_at(op, value).min >= 0;
  }

  bool can_replace(const Op& op) const {
    const Type type = kernel_.type(op.result());
    if (!type.is_scalar() || !is_integer(type.scalar) || bits_of(type) < 32) return false;
    // By 0 nothing is specified, fold knows what follows from 1, and the least number has no magnitude of its type.
    if (const auto divisor = kernel_.constant_int(op.b())) {
      return *divisor != 0 && *divisor != 1 &&
             !(is_signed(type.scalar) && *divisor == type_range(type.scalar).min);
    }
    return by_launch_values_ && bits_of(type) == 32 && is_known(op.b());
  }

  void replace(OpId id) {
    const Op op = kernel_.op(id);
    b_.set_insertion_before(id);
    b_.set_loc(op.loc);
    if (!kernel_.constant_int(op.b()) && is_known(op.a())) {
      const ValueId divided = make(op.opcode, op.a(), op.b());
      return put(id, b_.create(Opcode::kAtLaunch, {divided}));
    }
    const ValueId divided = quotient_of(op);
    if (op.opcode == Opcode::kDiv) return put(id, divided);
    put(id, make(Opcode::kSub, op.a(), make(Opcode::kMul, divided, op.b())));
  }

  void put(OpId id, ValueId value) {
    inherit_name(kernel_, value, kernel_.op(id).result());
    kernel_.replace_all_uses(kernel_.op(id).result(), value);
    kernel_.erase(id);
  }

  // Once for a quotient and a remainder of one region.
  ValueId quotient_of(const Op& op) {
    const auto [it, is_new] = quotients_.try_emplace({op.parent, op.a(), op.b()}, ValueId::kNone);
    if (is_new) it->second = new_quotient(op);
    return it->second;
  }
  ValueId new_quotient(const Op& op) {
    const auto divisor = kernel_.constant_int(op.b());
    if (!divisor) return by_known(op);
    const Type type = kernel_.type(op.a());
    const bool negative = is_signed(type.scalar) && *divisor < 0;
    if (negative || !is_negative_nowhere(op, op.a())) return by_signed_constant(op.a(), *divisor);
    const auto d = static_cast<uint64_t>(*divisor);
    if (std::has_single_bit(d)) return shifted(Opcode::kShr, op.a(), std::countr_zero(d));
    if (bits_of(type) == 64) return as(type, by_large_constant(as(kU64Type, op.a()), d));
    const Divider by = make_divider(b_, static_cast<uint32_t>(d));
    return as(type, quotient(b_, as(kU32Type, op.a()), by));
  }

  // By a number that the launch knows: magnitudes are divided, and the quotient takes the product of the signs.
  ValueId by_known(const Op& op) {
    const Type type = kernel_.type(op.a());
    const bool signed_a = !is_negative_nowhere(op, op.a());
    const Known& by = known(op.b(), !is_negative_nowhere(op, op.b()));
    b_.set_insertion_before(kernel_.value(op.result()).def);
    ValueId magnitude = op.a(), sign = by.sign;
    if (signed_a) {
      magnitude = b_.create(Opcode::kAbs, {op.a()});
      const ValueId of_a = shifted(Opcode::kShr, op.a(), 31);
      sign = valid(sign) ? make(Opcode::kXor, of_a, sign) : of_a;
    }
    const ValueId divided = as(type, quotient(b_, as(kU32Type, magnitude), by.divider));
    return valid(sign) ? make(Opcode::kSub, make(Opcode::kXor, divided, sign), sign) : divided;
  }

  // What the host computes of a divisor. `sign`: all ones where it is negative; kNone where it never is.
  struct Known {
    Divider divider;
    ValueId sign = ValueId::kNone;
  };
  // Behind the divisor, so that all divisions by it find it there.
  const Known& known(ValueId divisor, bool is_signed) {
    const auto [it, is_new] = known_.try_emplace({divisor, is_signed});
    if (!is_new) return it->second;
    const OpId def = kernel_.value(divisor).def;
    const OpId first = valid(def) ? kernel_.op(def).next : kernel_.region(kernel_.body()).first;
    b_.set_insertion_before(first);
    const ValueId magnitude = is_signed ? b_.create(Opcode::kAbs, {divisor}) : divisor;
    it->second.divider = make_divider(b_, as(kU32Type, magnitude));
    if (is_signed) {
      it->second.sign = b_.create(Opcode::kAtLaunch, {shifted(Opcode::kShr, divisor, 31)});
    }
    return it->second;
  }

  // H. S. Warren, "Hacker's Delight", 10-1 and 10-6: truncating division of a number n of either sign by d. With
  // 2^p > c (|d| - 2^p mod |d|), where c is the largest n there is whose remainder by d is |d| - 1, the product by
  // m = 2^p / |d|, rounded up, and p - bits places less is n / d rounded down, and 1 short where n / d is negative.
  ValueId by_signed_constant(ValueId n, int64_t divisor) {
    const Type type = kernel_.type(n);
    const int bits = bits_of(type);
    const uint64_t d =
        divisor < 0 ? 0 - static_cast<uint64_t>(divisor) : static_cast<uint64_t>(divisor);
    ValueId divided;
    if (std::has_single_bit(d)) {
      // Rounded up where n is negative: d - 1 is added before the shift. The sign, copied to all bits and then shifted
      // right as an unsigned number, leaves d - 1 of a negative n and 0 of another one.
      const int places = std::countr_zero(d);
      const Type magnitudes = bits == 64 ? kU64Type : kU32Type;
      const ValueId sign = places == 1 ? n : shifted(Opcode::kShr, n, bits - 1);
      const ValueId more = shifted(Opcode::kShr, as(magnitudes, sign), bits - places);
      divided = make(Opcode::kAdd, n, as(type, more));
      divided = shifted(Opcode::kShr, divided, places);
    } else {
      const absl::uint128 one = 1, half = one << (bits - 1), largest = half - 1 - half % d;
      int p = bits;
      while ((one << p) <= largest * (d - (one << p) % d)) ++p;
      const absl::uint128 up = ((one << p) - (one << p) % d) / d + 1;
      const uint64_t low = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
      const ValueId multiplier = b_.constant(type, absl::Uint128Low64(up) & low);
      divided = make(Opcode::kMulHi, n, multiplier);
      if (up >= half) divided = make(Opcode::kAdd, divided, n);  // which counted as up - 2^bits
      divided = shifted(Opcode::kShr, divided, p - bits);
      divided = make(Opcode::kSub, divided, shifted(Opcode::kShr, n, bits - 1));
    }
    return divisor < 0 ? b_.create(Opcode::kNeg, {divided}) : divided;
  }

  // T. Granlund and P. L. Montgomery, "Division by Invariant Integers using Multiplication", 4.1: n / d, both unsigned
  // and of 64 bits, d no power of two. The multiplier has 65 bits; the highest is not multiplied by.
  ValueId by_large_constant(ValueId n, uint64_t d) {
    const int p = 64 - std::countl_zero(d);  // 2^(p-1) < d < 2^p
    const absl::uint128 above = (absl::uint128{1} << p) - d;
    const uint64_t multiplier = absl::Uint128Low64((above << 64) / d + 1);
    const ValueId product = make(Opcode::kMulHi, n, b_.constant(kernel_.type(n), multiplier));
    // (n + product) >> p without a carry.
    const ValueId half = shifted(Opcode::kShr, make(Opcode::kSub, n, product), 1);
    return shifted(Opcode::kShr, make(Opcode::kAdd, half, product), p - 1);
  }

  static int bits_of(Type type) { return static_cast<int>(8 * bytes_of(type.scalar)); }
  ValueId make(Opcode opcode, ValueId a, ValueId b) { return b_.create(opcode, {a, b}); }
  ValueId shifted(Opcode opcode, ValueId value, int places) {
    return places == 0 ? value : make(opcode, value, b_.constant_int(kU32Type, places));
  }
  ValueId as(Type type, ValueId value) {
    return kernel_.type(value) == type ? value : b_.create(Opcode::kBitcast, {value}, type);
  }

  Kernel& kernel_;
  const bool by_launch_values_;
  IntAnalysis& ints_;
  Builder b_;
  absl::flat_hash_map<std::pair<ValueId, bool>, Known> known_;
  absl::flat_hash_map<std::tuple<RegionId, ValueId, ValueId>, ValueId> quotients_;
};

}  // namespace

bool lower_division(PassContext& context) { return DivisionLowering(context).run(); }

}  // namespace heddle::ir
