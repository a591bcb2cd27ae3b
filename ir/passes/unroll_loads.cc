// unroll-loads: loop unrolling for loads, so that those of several trips are under way together.
//
// What: an innermost `for` that carries something from trip to trip, and loads from global memory at places that
// no earlier trip decides, takes four trips at once, or as many as the option `trips` says; what is left over has
// a loop of its own. Its step is a positive constant. Loops with a hint of their author's stay, and so do those in
// which threads do something together, which are large, which run less than two rounds, or whose bounds hang on what
// the kernel loads or on a loop around them: such loops are mostly short, and each run pays for the split. So do those
// that load vectors: their author has thought of it.
//
// Needs: no-variables. Keeps: nothing.
//
// Why: a load takes some 600 cycles; a thread that waits for each before it asks for the next gets one
// element in that time. The assembler does not unroll loops whose number of trips it does not know. Without
// anything carried, trips wait for each other only as far as the loop's own index goes, and other threads fill in.
//
//   for %i in %t .. %n step %b {      for %i in %t .. %m step %b4 { … four trips … }
//     %v = load %x, %i           →    for %i in %m .. %n step %b { … }
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "heddle/ir/analysis/int_range.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/passes/loop_copies.h"
#include "heddle/ir/passes/passes.h"

namespace heddle::ir {
namespace {

constexpr int64_t kMostBodyOps = 40;
constexpr int kMostDepth = 8;  // of ops that compute a bound

// Values that hang on what a loop carries from trip to trip.
class FromTripsBefore {
 public:
  FromTripsBefore(const Kernel& kernel, const Op& loop) {
    const auto& args = kernel.region(loop.regions[0]).args;
    for (size_t i = first_carried(loop); i < args.size(); ++i) values_.insert(args[i]);
    kernel.walk(loop.regions[0], [&](OpId id) { note(kernel.op(id)); });
  }
  bool contains(ValueId value) const { return values_.contains(value); }

 private:
  void note(const Op& op) {
    const bool any = std::any_of(op.operands.begin(), op.operands.end(),
                                 [this](ValueId operand) { return contains(operand); });
    if (any || !op.regions.empty()) {
      for (const ValueId result : op.results) values_.insert(result);
    }
  }

  absl::flat_hash_set<ValueId> values_;
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
    if (loop.attr(AttrKey::kUnroll) || loop.results.empty() || !step || *step <= 0 ||
        !is_of_the_launch(loop.start()) || !is_of_the_launch(loop.stop()) ||
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
      if (op.opcode != Opcode::kLoad || kernel_.type(op.view()).space != Space::kGlobal) return;
      stays |= !kernel_.type(op.result()).is_scalar();
      loads |= op.attr_or(AttrKey::kVolatile, 0) == 0 && !late.contains(op.offset());
    });
    return loads && !stays && ops <= kMostBodyOps;
  }

  // Whether a bound follows from the arguments and from where the thread is.
  bool is_of_the_launch(ValueId value, int depth = 0) const {
    const Op* const def = kernel_.def(value);
    if (def == nullptr) return kernel_.param_index(value).has_value();
    return depth < kMostDepth && has(info(*def), kPure) &&
           std::all_of(def->operands.begin(), def->operands.end(),
                       [&](ValueId operand) { return is_of_the_launch(operand, depth + 1); });
  }

  Kernel& kernel_;
  int64_t trips_;
  Builder b_;
  LoopCopies copies_;
};

}  // namespace

bool unroll_loads(PassContext& context) { return LoadUnrolling(context).run(); }

}  // namespace heddle::ir
