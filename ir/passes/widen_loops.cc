// widen-loops: a loop along the elements of an array takes as many trips at once as an access is wide.
//
// What: an innermost `for` with steps of one, whose body accesses elements beside each other in trips beside
// each other, and whose bounds are the same for the block, is split: single trips up to an element that is
// aligned to a whole access, rounds of several trips, and single trips for what is left. vectorize then makes
// one access of each round. Where accesses are aligned from the start, there are no single trips before the
// rounds. Accesses to several arrays whose alignments need not agree: the rounds stand there twice, and a
// test says at run time whether all are aligned or only those to the first array. Nothing of this is computed
// for a loop that turns out to have no trip. Loops with a hint of their author's stay, and so do those in which
// threads do something together, that are large, or in which nothing could be merged, and those on whose
// results more threads agree than on where elements are aligned. Facts of alignment and overlap are read of
// accesses that could be merged for all else, in loops that are not known to have less than two trips.
//
// Why: a loop over a row's elements, written as one thinks of it, moves 16 bytes an instruction, whatever the
// row's pitch, and has several loads under way.
//
//   for %i in %z .. %n step %one {      for %i in %z .. %p step %one { … }        up to 3 trips
//     %a = load %x, %i            →     for %j in %z .. %whole step %four { … }   rounds of four from %p on
//     …                                 for %i in %m .. %n step %one { … }        up to 3 trips
//   }
#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "heddle/ir/analysis/aliasing.h"
#include "heddle/ir/analysis/linear.h"
#include "heddle/ir/analysis/uniformity.h"
#include "heddle/ir/analysis/views.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/passes/loop_copies.h"
#include "heddle/ir/passes/passes.h"

namespace heddle::ir {
namespace {

// Ops of a body that is split, and of a round's: what lies beyond gains little and grows much.
constexpr int64_t kMostBodyOps = 48;
constexpr int64_t kMostRoundOps = 320;

// An access whose elements in trips beside each other lie beside each other.
struct Walk {
  OpId op;
  LinearSum sum;  // of the offset
  int64_t width;  // elements of the widest access
};

bool keeps_loop(const Op& op) {
  const OpInfo& row = info(op);
  const bool plain = op.opcode == Opcode::kLoad || op.opcode == Opcode::kStore;
  return is_loop(op) || is_convergent(row) || has(row, kFresh) || has(row, kVolatile) ||
         has(row, kBlocking) || has(row, kMayStop) || row.effects.unnamed ||
         (row.effects.touches_memory() && !plain) || op.attr_or(AttrKey::kVolatile, 0) != 0;
}

// Whether a loop could be split, for all that its ops say.
bool may_be_split(const Kernel& kernel, OpId id) {
  const Op& loop = kernel.op(id);
  if (loop.opcode != Opcode::kFor || loop.attr(AttrKey::kUnroll) ||
      kernel.constant_int(loop.step()) != 1) {
    return false;
  }
  int64_t ops = 0, accesses = 0;
  bool stays = false;
  kernel.walk(loop.regions[0], [&](OpId inner) {
    const Op& op = kernel.op(inner);
    ++ops;
    accesses += info(op).effects.touches_memory() ? 1 : 0;
    stays |= keeps_loop(op);
  });
  return !stays && accesses > 0 && ops <= kMostBodyOps;
}

class Widening {
 public:
  explicit Widening(PassContext& context)
      : kernel_(context.kernel()),
        aliasing_(context.analysis<Aliasing>()),
        uniformity_(context.analysis<Uniformity>()),
        quiet_(context.analysis<Ints>()),
        ints_(context.analysis<GuardedInts>()),
        sums_(context.analysis<Sums>()),
        b_(kernel_),
        copies_(kernel_, b_) {}

  bool run(absl::Span<const OpId> loops) {
    // Before anything changes: the analysis is of the kernel as it is.
    std::vector<OpId> agreed;
    for (const OpId id : loops) {
      const Op& loop = kernel_.op(id);
      const Scope scope = std::min(uniformity_.of(loop.start()), uniformity_.of(loop.stop()));
      if (scope >= Scope::kBlock) agreed.push_back(id);
    }
    bool changed = false;
    for (const OpId id : agreed) changed |= visit(id);
    copies_.finish();
    return changed;
  }

 private:
  using Carried = LoopCopies::Carried;
  using Walks = absl::InlinedVector<Walk, 4>;

  bool visit(OpId id) {
    // No round has less than two trips: of loops that have fewer, no facts are read.
    if (copies_.known_trips(kernel_.op(id)).value_or(2) < 2) return false;
    Walks walks = walks_of(id);
    // The first is the one that rounds are aligned to: the one that has the most elements in an access.
    std::stable_sort(walks.begin(), walks.end(),
                     [](const Walk& a, const Walk& b) { return a.width > b.width; });
    if (walks.empty()) return false;
    // Neighbours of the first one at another distance are never aligned where it is.
    walks.erase(std::remove_if(walks.begin(), walks.end(),
                               [first = walks[0]](const Walk& walk) {
                                 return walk.sum.is_beside(first.sum) && !follows(walk, first);
                               }),
                walks.end());
    const int64_t n = walks[0].width;
    const Op loop = kernel_.op(id);
    if (copies_.body_ops(id) * n > kMostRoundOps) return false;
    if (copies_.known_trips(loop).value_or(n) < static_cast<uint64_t>(n)) return false;
    const ValueId index = kernel_.region(loop.regions[0]).args[0];
    b_.set_insertion_before(id);
    b_.set_loc(loop.loc);
    const bool aligned = std::all_of(walks.begin(), walks.end(), [&](const Walk& walk) {
      return is_aligned(walk, index, loop.start());
    });
    const Carried inits = LoopCopies::inits(loop);
    if (aligned) {
      copies_.replace(id, copies_.make_rounds(loop, n, 1, inits));
      return true;
    }
    // Numbers of trips are counted in the index's type.
    if (quiet_.range(loop.start()).min < 0 || !keeps_agreement(loop, walks)) return false;
    // What offsets are computed from may hold nothing where the loop has no trip.
    const bool runs = quiet_.trips(id).at_least_one;
    copies_.replace(id, runs ? split(loop, walks, inits) : split_if_it_runs(loop, walks, inits));
    return true;
  }

  // --- What may be merged ---

  Walks walks_of(OpId id) {
    const RegionId body = kernel_.op(id).regions[0];
    IdMap<ValueId, uint8_t> inside;
    kernel_.walk(body, [&](OpId inner) {
      for (const ValueId result : kernel_.op(inner).results) inside.at(result) = 1;
    });
    for (const ValueId arg : kernel_.region(body).args) inside.at(arg) = 1;
    const ValueId index = kernel_.region(body).args[0];
    Walks walks;
    for (const OpId inner : kernel_.ops(body)) {
      const Op& op = kernel_.op(inner);
      if (op.opcode != Opcode::kLoad && op.opcode != Opcode::kStore) continue;
      Walk walk{inner, sums_.of(op.offset()), 1};
      if (inside[op.view()] != 0 || !walks_by_one(walk.sum, index, inside)) continue;
      if (!is_simple(op) || stands_alone(id, inner)) continue;
      walk.width = width_of(op);
      if (walk.width > 1) walks.push_back(std::move(walk));
    }
    return walks;
  }

  static bool walks_by_one(const LinearSum& sum, ValueId index,
                           const IdMap<ValueId, uint8_t>& inside) {
    return sum.factor_of(index) == 1 &&
           std::all_of(sum.terms.begin(), sum.terms.end(), [&](const LinearSum::Term& term) {
             return term.value == index || inside[term.value] == 0;
           });
  }

  // Whether vectorize takes such an access.
  bool is_simple(const Op& op) const {
    const ValueId value = op.opcode == Opcode::kLoad ? op.result() : op.value();
    const Type type = kernel_.type(value);
    if (!type.is_scalar() || type.scalar == Scalar::kBool) return false;
    if (is_unbounded(kernel_, op.view())) return false;
    if (!valid(op.check())) return true;
    const Op* const check = kernel_.def(op.check());
    return check != nullptr && check->opcode == Opcode::kBounds && !check->attr(AttrKey::kTensor) &&
           !check->attr(AttrKey::kDim);
  }

  // Whether another access of the body keeps the ones of different trips apart.
  bool stands_alone(OpId loop, OpId id) {
    const Op& op = kernel_.op(id);
    const int object = aliasing_.object_of(op.view());
    const bool stores = op.opcode == Opcode::kStore;
    bool alone = false;
    kernel_.walk(kernel_.op(loop).regions[0], [&](OpId other_id) {
      const Op& other = kernel_.op(other_id);
      if (alone || other_id == id || !info(other).effects.touches_memory()) return;
      const bool other_stores = other.opcode == Opcode::kStore;
      if (!stores && !other_stores) return;
      const int theirs = aliasing_.object_of(other.view());
      if (theirs == object) {
        alone = other.view() != op.view() || other.offset() != op.offset();
        return;
      }
      const int read = other_stores ? object : theirs;
      const Clobber clobber = aliasing_.clobber(other_stores ? other : op, read);
      alone = clobber == Clobber::kYes ||
              (clobber == Clobber::kUnlessNoOverlap && !aliasing_.no_overlap(read));
    });
    return alone;
  }

  // Elements of the widest access that the array's start allows.
  int64_t width_of(const Op& op) {
    const int64_t aligned =
        alignment_of(kernel_, op.view(), ints_) / bytes_of(kernel_.type(op.view()).scalar);
    return std::min<int64_t>(most_access_elements(kernel_, op.view()), aligned);
  }

  // Whether the element of the first trip is aligned to a whole access, for all that is known.
  bool is_aligned(const Walk& walk, ValueId index, ValueId start) {
    if (walk.sum.constant % walk.width != 0 || !ints_.divisible(start, walk.width)) return false;
    return std::all_of(walk.sum.terms.begin(), walk.sum.terms.end(),
                       [&](const LinearSum::Term& term) {
                         return term.factor % walk.width == 0 || term.value == index ||
                                ints_.divisible(term.value, walk.width);
                       });
  }

  // Whether threads agree on the loop's results as far as they did: how trips are split hangs on offsets of
  // theirs.
  bool keeps_agreement(const Op& loop, const Walks& walks) const {
    const ValueId index = kernel_.region(loop.regions[0]).args[0];
    Scope scope = Scope::kGrid;
    for (size_t i = 0; i < walks.size(); ++i) {
      if (i > 0 && follows(walks[i], walks[0])) continue;
      for (const LinearSum::Term& term : walks[i].sum.terms) {
        if (term.value != index) scope = std::min(scope, uniformity_.of(term.value));
      }
    }
    return std::all_of(loop.results.begin(), loop.results.end(),
                       [&](ValueId result) { return uniformity_.of(result) <= scope; });
  }

  // --- The loops that take its place ---

  ValueId make(Opcode opcode, ValueId a, ValueId b) { return b_.create(opcode, {a, b}); }
  ValueId number(ValueId like, int64_t value) { return b_.constant_int(kernel_.type(like), value); }

  // The offset of an access in the trip of an index.
  ValueId offset_at(const Walk& walk, ValueId index, ValueId at) {
    const Type type = kernel_.type(kernel_.op(walk.op).offset());
    const auto extended = [&](ValueId value) {
      return kernel_.type(value) == type ? value : b_.create(Opcode::kConvert, {value}, type);
    };
    ValueId sum = extended(at);
    for (const LinearSum::Term& term : walk.sum.terms) {
      if (term.value == index) continue;
      const ValueId value = extended(term.value);
      const ValueId part =
          term.factor == 1 ? value : make(Opcode::kMul, value, b_.constant_int(type, term.factor));
      sum = make(Opcode::kAdd, part, sum);
    }
    if (walk.sum.constant == 0) return sum;
    return make(Opcode::kAdd, sum, b_.constant_int(type, walk.sum.constant));
  }

  Carried split_if_it_runs(const Op& loop, const Walks& walks, const Carried& inits) {
    return chosen(make(Opcode::kLt, loop.start(), loop.stop()), inits,
                  [&](bool runs) { return runs ? split(loop, walks, inits) : inits; });
  }

  Carried split(const Op& loop, const Walks& walks, Carried carried) {
    const ValueId index = kernel_.region(loop.regions[0]).args[0];
    const ValueId start = loop.start(), stop = loop.stop();
    const Type type = kernel_.type(start);
    const int64_t n = walks[0].width;
    // As many trips as there are elements up to one that is aligned.
    const ValueId first = offset_at(walks[0], index, start);
    const ValueId short_of = make(Opcode::kAnd, b_.create(Opcode::kNeg, {first}),
                                  b_.constant_int(kernel_.type(first), n - 1));
    const ValueId wanted =
        kernel_.type(first) == type ? short_of : b_.create(Opcode::kConvert, {short_of}, type);
    const ValueId between = b_.create(Opcode::kBitcast, {copies_.distance(start, stop)}, type);
    const ValueId before = make(Opcode::kMin, wanted, between);
    const ValueId begin = make(Opcode::kAdd, start, before);
    const ValueId rest = make(Opcode::kSub, between, before);
    const ValueId whole = make(Opcode::kAnd, rest, number(start, -n));
    const ValueId end = make(Opcode::kAdd, begin, whole);
    carried = copies_.make_loop(loop, start, begin, 1, 1, carried);

    // Offsets of the first round. Behind less than a round's trips there is none, and nothing is aligned.
    absl::InlinedVector<ValueId, 4> offsets;
    ValueId agree = ValueId::kNone;
    for (const Walk& walk : walks) {
      const ValueId offset = offset_at(walk, index, begin);
      offsets.push_back(offset);
      if (follows(walk, walks[0])) continue;
      const Type wide = kernel_.type(offset);
      const ValueId past = make(Opcode::kAnd, offset, b_.constant_int(wide, walk.width - 1));
      const ValueId is = make(Opcode::kEq, past, b_.constant_int(wide, 0));
      agree = valid(agree) ? make(Opcode::kAnd, agree, is) : is;
    }
    const auto rounds = [&](bool all) {
      return make_rounds(loop, walks, offsets, all, begin, whole, n, carried);
    };
    carried = valid(agree) ? chosen(agree, carried, rounds) : rounds(true);
    return copies_.make_loop(loop, end, stop, 1, 1, carried);
  }

  // Whether an access is aligned where another, at least as wide, is.
  static bool follows(const Walk& walk, const Walk& other) {
    return walk.sum.is_beside(other.sum) &&
           (walk.sum.constant - other.sum.constant) % walk.width == 0;
  }

  // One way of carrying on or the other.
  Carried chosen(ValueId condition, const Carried& carried,
                 absl::FunctionRef<Carried(bool holds)> way) {
    absl::InlinedVector<Type, 4> types;
    for (const ValueId value : carried) types.push_back(kernel_.type(value));
    const OpId branch = b_.begin_if(condition, types);
    b_.yield(way(true));
    b_.next_region();
    b_.yield(way(false));
    b_.end_region();
    const auto& results = kernel_.op(branch).results;
    return {results.begin(), results.end()};
  }

  // Rounds of n trips; of the accesses, all are aligned there or those that follow the first one.
  Carried make_rounds(const Op& loop, const Walks& walks, absl::Span<const ValueId> offsets,
                      bool all, ValueId begin, ValueId whole, int64_t n, const Carried& carried) {
    copies_.on_copy([&](OpId original, OpId copy, int64_t trip) {
      for (size_t i = 0; i < walks.size(); ++i) {
        if (walks[i].op != original || (!all && !follows(walks[i], walks[0]))) continue;
        say_aligned(copy, offsets[i], walks[i].width, trip);
      }
    });
    const Carried result = copies_.make_loop(loop, number(begin, 0), whole, n, 1, carried, begin);
    copies_.on_copy(nullptr);
    return result;
  }

  // Writes an access's offset as that of the first round, which is a multiple of the width, and trips since.
  void say_aligned(OpId access, ValueId first, int64_t width, int64_t trip) {
    const RegionId body = kernel_.op(access).parent;
    const Type type = kernel_.type(first);
    b_.set_insertion_before(access);
    const ValueId aligned =
        b_.create(Opcode::kAssumeRange, {first}, Type::none(), {{AttrKey::kDivisor, width}});
    ValueId since = kernel_.region(body).args[0];
    if (kernel_.type(since) != type) since = b_.create(Opcode::kConvert, {since}, type);
    ValueId offset = make(Opcode::kAdd, aligned, since);
    if (trip != 0) offset = make(Opcode::kAdd, offset, b_.constant_int(type, trip));
    kernel_.op(access).set_operand(OperandName::kOffset, offset);
    b_.set_insertion_end(body);
  }

  Kernel& kernel_;
  const Aliasing& aliasing_;
  const Uniformity& uniformity_;
  IntAnalysis &quiet_, &ints_;  // which asks no facts, and which may
  LinearSums& sums_;
  Builder b_;
  LoopCopies copies_;
};

}  // namespace

bool widen_loops(PassContext& context) {
  const Kernel& kernel = context.kernel();
  std::vector<OpId> loops;
  kernel.walk([&](OpId id) {
    if (may_be_split(kernel, id)) loops.push_back(id);
  });
  return !loops.empty() && Widening(context).run(loops);
}

}  // namespace heddle::ir
