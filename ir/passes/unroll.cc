// unroll: trips of a loop stand side by side.
//
// What: a `for` whose attribute `unroll` is n > 1 gives way to a loop of which each trip does what
// n did, and one for the trips that are left over, fewer than n; where the numbers of trips are
// known, loops that run once or never are none. A step that is not constant, or negative, is left
// alone, and so is a body that makes arrays, of which every trip would get its own. n is less where
// a step of n trips is no number of the type, or where the copies would be more than kMostOps ops.
// `unroll{factor=4}` does the same to loops that say nothing. Of these, loops of a known number of trips, at most eight
// (`unroll{full=8}`) and with few ops in all, stand side by side in full.
//
// Needs: no-variables. Keeps: nothing.
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
// Of the copies of a loop that did not ask for them.
constexpr int64_t kMostUnaskedOps = 128;

class Unrolling {
 public:
  explicit Unrolling(PassContext& context)
      : kernel_(context.kernel()),
        unasked_(context.option("factor")),
        full_(context.option("full")),
        b_(kernel_),
        copies_(kernel_, b_) {}

  bool run() {
    std::vector<OpId> loops;
    kernel_.walk([&](OpId id) {
      if (kernel_.op(id).opcode == Opcode::kFor) loops.push_back(id);
    });
    // Inner loops first, so that what is copied is finished.
    bool changed = false;
    for (size_t i = loops.size(); i-- > 0;) changed |= visit(loops[i]);
    copies_.finish();
    return changed;
  }

 private:
  using Carried = LoopCopies::Carried;

  int64_t factor(OpId id) const {
    const Op& loop = kernel_.op(id);
    if (const auto asked = loop.attr(AttrKey::kUnroll)) return *asked;
    const auto trips = static_cast<int64_t>(
        std::min<uint64_t>(copies_.known_trips(loop).value_or(kMostOps), kMostOps));
    const bool is_short = trips <= full_ && trips * copies_.body_ops(id) <= kMostUnaskedOps;
    return is_short ? std::max<int64_t>(trips, 1) : unasked_;
  }

  // As many trips as the loop wants side by side and may have.
  int64_t limited_factor(OpId loop) const {
    return std::min(factor(loop), kMostOps / copies_.body_ops(loop));
  }

  bool visit(OpId id) {
    const Op loop = kernel_.op(id);
    const auto step = kernel_.constant_int(loop.step());
    if (!step || *step <= 0 || copies_.makes_arrays(id)) return false;
    b_.set_insertion_before(id);
    b_.set_loc(loop.loc);
    const ValueId start = loop.start();
    const int64_t largest_step = type_range(kernel_.type(start).scalar).max;
    const int64_t wanted = limited_factor(id);
    if (wanted <= 1) return false;
    const int64_t n = std::min(wanted, largest_step / *step);
    Carried carried = LoopCopies::inits(loop);
    const std::optional<uint64_t> trips = copies_.known_trips(loop);
    if (trips && *trips <= static_cast<uint64_t>(wanted)) {
      carried = copies_.make_trips(loop, start, static_cast<int64_t>(*trips), *step, carried);
    } else if (n <= 1) {
      return false;
    } else {
      carried = copies_.make_rounds(loop, n, *step, carried);
    }
    copies_.replace(id, carried);
    return true;
  }

  Kernel& kernel_;
  int64_t unasked_;  // of loops that say nothing
  int64_t full_;     // the most trips of those that stand side by side in full
  Builder b_;
  LoopCopies copies_;
};

}  // namespace

bool unroll(PassContext& context) { return Unrolling(context).run(); }

}  // namespace heddle::ir
