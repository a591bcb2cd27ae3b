// unroll-loads: loop unrolling for loads, so that those of several trips are under way together.
//
// What: an innermost `for` that loads from global memory, at places that no earlier trip decides, takes
// four trips at once, or as many as the option `trips` says; what is left over has a loop of its own. Its step is a positive constant. Loops with
// a hint of their author's stay, and so do those in which threads do something together, which are large or
// run less than two rounds.
//
// Why: a load takes some 600 cycles; a thread that waits for each before it asks for the next gets one
// element in that time. The assembler does not unroll loops whose number of trips it does not know.
//
//   for %i in %t .. %n step %b {      for %i in %t .. %m step %b4 { … four trips … }
//     %v = load %x, %i           →    for %i in %m .. %n step %b { … }
#include <algorithm>

#include "heddle/ir/analysis/int_range.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/passes/loop_copies.h"
#include "heddle/ir/passes/passes.h"

namespace heddle::ir {
namespace {

constexpr int64_t kMostBodyOps = 40;

// Values that hang on what a loop carries from trip to trip.
class FromTripsBefore {
 public:
  FromTripsBefore(const Kernel& kernel, const Op& loop) {
    const auto& args = kernel.region(loop.regions[0]).args;
    for (size_t i = first_carried(loop); i < args.size(); ++i) values_.at(args[i]) = 1;
    kernel.walk(loop.regions[0], [&](OpId id) { note(kernel.op(id)); });
  }
  bool contains(ValueId value) const { return values_[value] != 0; }

 private:
  void note(const Op& op) {
    const bool any = std::any_of(op.operands.begin(), op.operands.end(),
                                 [this](ValueId operand) { return contains(operand); });
    if (any || !op.regions.empty()) {
      for (const ValueId result : op.results) values_.at(result) = 1;
    }
  }

  IdMap<ValueId, uint8_t> values_;
};

class LoadUnrolling {
 public:
  explicit LoadUnrolling(PassContext& context)
      : kernel_(context.kernel()),
        trips_(context.option("trips")),
        b_(kernel_),
        copies_(kernel_, b_) {}

  bool run() {
    std::vector<OpId> loops;
    kernel_.walk([&](OpId id) {
      if (kernel_.op(id).opcode == Opcode::kFor && pays(id)) loops.push_back(id);
    });
    for (const OpId id : loops) {
      const Op loop = kernel_.op(id);
      b_.set_insertion_before(id);
      b_.set_loc(loop.loc);
      const int64_t step = *kernel_.constant_int(loop.step());
      copies_.replace(id, copies_.make_rounds(loop, trips_, step, LoopCopies::inits(loop)));
    }
    copies_.finish();
    return !loops.empty();
  }

 private:
  bool pays(OpId id) const {
    const Op& loop = kernel_.op(id);
    const auto step = kernel_.constant_int(loop.step());
    if (loop.attr(AttrKey::kUnroll) || !step || *step <= 0 ||
        *step > type_range(kernel_.type(loop.start()).scalar).max / trips_ ||
        copies_.known_trips(loop).value_or(2 * trips_) < static_cast<uint64_t>(2 * trips_)) {
      return false;
    }
    int64_t ops = 0;
    bool stays = false, loads = false;
    const FromTripsBefore late(kernel_, loop);
    kernel_.walk(loop.regions[0], [&](OpId inner) {
      const Op& op = kernel_.op(inner);
      ++ops;
      stays |= is_loop(op) || is_convergent(info(op)) || has(info(op), kFresh) ||
               has(info(op), kBlocking) || has(info(op), kVolatile);
      loads |= op.opcode == Opcode::kLoad && op.attr_or(AttrKey::kVolatile, 0) == 0 &&
               kernel_.type(op.view()).space == Space::kGlobal && !late.contains(op.offset());
    });
    return loads && !stays && ops <= kMostBodyOps;
  }

  Kernel& kernel_;
  int64_t trips_;
  Builder b_;
  LoopCopies copies_;
};

}  // namespace

bool unroll_loads(PassContext& context) { return LoadUnrolling(context).run(); }

}  // namespace heddle::ir
