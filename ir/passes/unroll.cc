// unroll: trips of a loop stand side by side.
//
// What: a `for` whose attribute `unroll` is n > 1 gives way to a loop of which each trip does what
// n did, and one for the trips that are left over, fewer than n; where the numbers of trips are
// known, loops that run once or never are none. A step that is not constant, or negative, is left
// alone, and so is a body that makes arrays, of which every trip would get its own. n is less where
// a step of n trips is no number of the type, or where the copies would be more than kMostOps ops.
//
// Why: one comparison and one branch for n trips; loads of n trips under way together; offsets that
// become parts of addresses.
//
//   for %i in %a .. %b step %one {unroll = 2} {        %left = …  (%b - %a) % 2, unsigned
//     store %x, %v, %i                          →      %mid = sub %b, %left : i32
//     yield                                            for %i in %a .. %mid step %two {
//   }                                                    store %x, %v, %i
//                                                        %j = add %i, %one : i32
//                                                        store %x, %v, %j
//                                                        yield
//                                                      }
//                                                      for %k in %mid .. %b step %one { … }
#include <algorithm>

#include "heddle/ir/analysis/int_range.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/passes/loop_copies.h"
#include "heddle/ir/passes/passes.h"

namespace heddle::ir {
namespace {

// Of a loop's copies together, those of loops inside it included: factors of nested loops multiply.
constexpr int64_t kMostOps = 1 << 16;

class Unrolling {
 public:
  explicit Unrolling(Kernel& kernel) : kernel_(kernel), b_(kernel), copies_(kernel, b_) {}

  bool run() {
    std::vector<OpId> loops;
    kernel_.walk([&](OpId id) {
      if (kernel_.op(id).opcode == Opcode::kFor && factor(id) > 1) loops.push_back(id);
    });
    // Inner loops first, so that what is copied is finished.
    bool changed = false;
    for (size_t i = loops.size(); i-- > 0;) changed |= visit(loops[i]);
    return changed;
  }

 private:
  using Carried = LoopCopies::Carried;

  int64_t factor(OpId loop) const { return kernel_.op(loop).attr_or(AttrKey::kUnroll, 1); }

  // As many trips as the loop wants side by side and may have.
  int64_t limited_factor(OpId loop) const {
    return std::min(factor(loop), kMostOps / copies_.body_ops(loop));
  }

  ValueId constant(Type type, int64_t value) { return b_.constant_int(type, value); }
  ValueId make(Opcode opcode, ValueId a, ValueId b) { return b_.create(opcode, {a, b}); }

  bool visit(OpId id) {
    const Op loop = kernel_.op(id);
    const auto step = kernel_.constant_int(loop.step());
    if (!step || *step <= 0 || copies_.makes_arrays(id)) return false;
    b_.set_insertion_before(id);
    b_.set_loc(loop.loc);
    const ValueId start = loop.start(), stop = loop.stop();
    const int64_t largest_step = type_range(kernel_.type(start).scalar).max;
    const int64_t wanted = limited_factor(id);
    const int64_t n = std::min(wanted, largest_step / *step);
    Carried carried = LoopCopies::inits(loop);
    const std::optional<uint64_t> trips = known_trips(start, stop, *step);
    if (trips && *trips <= static_cast<uint64_t>(wanted)) {
      carried = copies_.trips(loop, start, static_cast<int64_t>(*trips), *step, carried);
    } else if (n <= 1) {
      return false;
    } else if (trips) {
      const uint64_t left = *trips % static_cast<uint64_t>(n);
      const uint64_t whole = (*trips - left) * static_cast<uint64_t>(*step);
      // Behind a last full round may lie no number of the type.
      const ValueId mid = left == 0 ? stop : plus(start, whole);
      carried = copies_.loop(loop, start, mid, n, *step, carried);
      if (left == 1) {
        carried = copies_.trips(loop, mid, 1, *step, carried);
      } else if (left != 0) {
        carried = copies_.loop(loop, mid, stop, 1, *step, carried);
      }
    } else {
      const ValueId mid = middle(start, stop, n, *step);
      carried = copies_.loop(loop, start, mid, n, *step, carried);
      carried = copies_.loop(loop, mid, stop, 1, *step, carried);
    }
    copies_.replace(id, carried);
    return true;
  }

  // The number of trips between constants: unsigned, since it may be too large for the bounds'
  // type.
  std::optional<uint64_t> known_trips(ValueId start, ValueId stop, int64_t step) const {
    const auto first = kernel_.constant_int(start), end = kernel_.constant_int(stop);
    if (!first || !end) return std::nullopt;
    if (*end <= *first) return 0;
    const uint64_t distance = static_cast<uint64_t>(*end) - static_cast<uint64_t>(*first);
    return (distance - 1) / static_cast<uint64_t>(step) + 1;
  }
  // A constant that many past another.
  ValueId plus(ValueId start, uint64_t distance) {
    const auto first = static_cast<uint64_t>(*kernel_.constant_int(start));
    return constant(kernel_.type(start), static_cast<int64_t>(first + distance));
  }

  // Where the trips that make no full round of n start; `stop` where there are none. The distance
  // is an unsigned number of the same width, which holds it whatever the bounds are.
  ValueId middle(ValueId start, ValueId stop, int64_t n, int64_t step) {
    const Type type = kernel_.type(start);
    const Type bits = Type::of(type.scalar == Scalar::kI64 ? Scalar::kU64 : Scalar::kU32);
    const auto as = [&](Type to, ValueId value) {
      return b_.create(Opcode::kBitcast, {value}, to);
    };
    const ValueId some = make(Opcode::kLt, start, stop);
    const ValueId distance = b_.create(
        Opcode::kSelect, {some, as(bits, make(Opcode::kSub, stop, start)), constant(bits, 0)});
    ValueId trips = distance;
    if (step > 1) {
      // The distance less one, so that the rounding up does not wrap; of none, none.
      const ValueId before = make(Opcode::kSub, distance, constant(bits, 1));
      const ValueId up =
          make(Opcode::kAdd, make(Opcode::kDiv, before, constant(bits, step)), constant(bits, 1));
      trips = b_.create(Opcode::kSelect, {some, up, constant(bits, 0)});
    }
    const ValueId left = make(Opcode::kRem, trips, constant(bits, n));
    const ValueId whole = make(Opcode::kMul, make(Opcode::kSub, trips, left), constant(bits, step));
    const ValueId mid = make(Opcode::kAdd, start, as(type, whole));
    if (step == 1) return mid;
    // Behind a last full round may lie no number of the type.
    const ValueId none = make(Opcode::kEq, left, constant(bits, 0));
    return b_.create(Opcode::kSelect, {none, stop, mid});
  }

  Kernel& kernel_;
  Builder b_;
  LoopCopies copies_;
};

}  // namespace

bool unroll(Kernel& kernel) { return Unrolling(kernel).run(); }

}  // namespace heddle::ir
