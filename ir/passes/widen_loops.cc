// widen-loops: a loop along the elements of an array takes as many trips at once as an access is wide.
//
// What: an innermost `for` with steps of one, whose body accesses elements beside each other in trips beside
// each other, and whose bounds are the same for the block, is split: single trips up to an element that is
// aligned to a whole access, rounds of several trips, and single trips for what is left. vectorize then makes
// one access of each round. Where accesses are aligned from the start, there are no single trips before the
// rounds. Accesses to several arrays whose alignments need not agree: the rounds stand there twice, and a
// test says at run time whether all are aligned or only those to the first array. Nothing of this is computed
// for a loop that turns out to have no trip. Loops with a hint of their author's stay, and so do those in which
// threads do something together, that are large, or in which nothing could be merged, those on whose
// results more threads agree than on where elements are aligned, and those in another loop that begin elsewhere in each of
// its trips and read what is one element for a warp. Facts of alignment and overlap are read of
// accesses that could be merged for all else, in loops that are not known to have less than two trips.
// A loop whose trips are dealt out one by one to the threads of a warp, a block or the grid, and may be dealt
// anew (dealt_loops.h), is split likewise: of its rounds each thread has one after the other, of the single trips one
// at most. Where rounds would leave more than half of the threads without any, or the alignments of what is stored
// do not agree, the loop runs as it was.
//
// Needs: no-variables. Keeps: nothing.
//
// Why: a loop over a row's elements, written as one thinks of it, moves 16 bytes an instruction, whatever the
// row's pitch, and has several loads under way.
//
//   for %i in %z .. %n step %one {      for %i in %z .. %p step %one { … }        up to 3 trips
//     %a = load %x, %i            →     for %j in %z .. %whole step %four { … }   rounds of four from %p on
//     …                                 for %i in %m .. %n step %one { … }        up to 3 trips
//   }
//
//   for %i in %tid .. %n step %256 { … }   →   if %tid < %left { … }                           one of the single trips
//                                              for %j in %tid * 4 .. %whole step %1024 { … }   rounds from %p on
#include <algorithm>
#include <bit>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/passes/dealt_loops.h"
#include "heddle/ir/passes/loop_copies.h"
#include "heddle/ir/passes/loop_walks.h"
#include "heddle/ir/passes/passes.h"

namespace heddle::ir {
namespace {

// Ops of a body that is split, and of a round's: what lies beyond gains little and grows much.
constexpr int64_t kMostBodyOps = 80;
constexpr int64_t kMostRoundOps = 320;
constexpr int64_t kLineBytes = 128;

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
  if (loop.opcode != Opcode::kFor || loop.attr(AttrKey::kUnroll)) return false;
  int64_t ops = 0, singles = 0;  // accesses to single elements
  bool stays = false;
  kernel.walk(loop.regions[0], [&](OpId inner) {
    const Op& op = kernel.op(inner);
    ++ops;
    if (op.opcode == Opcode::kLoad || op.opcode == Opcode::kStore) {
      const ValueId moved = op.opcode == Opcode::kLoad ? op.result() : op.value();
      singles += kernel.type(moved).is_scalar() ? 1 : 0;
    }
    stays |= keeps_loop(op);
  });
  return !stays && singles > 0 && ops <= kMostBodyOps;
}

class Widening {
 public:
  explicit Widening(PassContext& context)
      : kernel_(context.kernel()),
        uniformity_(context.analysis<Uniformity>()),
        quiet_(context.analysis<Ints>()),
        ints_(context.analysis<GuardedInts>()),
        walks_(kernel_, context.analysis<Aliasing>(), context.analysis<Sums>(), ints_),
        dealt_(kernel_, context.analysis<Aliasing>(), uniformity_, context.analysis<Sums>()),
        b_(kernel_),
        copies_(kernel_, b_) {}

  bool run(absl::Span<const OpId> loops) {
    // Before anything changes: the analyses are of the kernel as it is, in which offsets may follow from what a loop
    // that is split leaves behind.
    std::vector<Chosen> all;
    for (const OpId id : loops) {
      const Op& loop = kernel_.op(id);
      const Scope scope = std::min(uniformity_.of(loop.start()), uniformity_.of(loop.stop()));
      std::optional<Chosen> one;
      if (const auto dealing = dealt_.of(id)) {
        one = chosen_dealt(id, *dealing);
      } else if (scope >= Scope::kBlock && kernel_.constant_int(loop.step()) == 1) {
        one = chosen_own(id);
      }
      if (one) all.push_back(*std::move(one));
    }
    for (const Chosen& one : all) {
      if (one.dealing) {
        split_dealt(one, *one.dealing);
      } else {
        split_own(one);
      }
    }
    copies_.finish();
    return !all.empty();
  }

 private:
  using Carried = LoopCopies::Carried;

  // A loop that is split.
  struct Chosen {
    OpId loop;
    Walks walks;
    bool aligned = false;  // where its rounds begin if no single trips stand before them
    bool runs = false;     // a trip or more, for sure
    std::optional<Dealing> dealing = std::nullopt;  // where its trips are dealt out
  };

  // The walks of a loop that may be split, no wider than a round may be; none of another.
  Walks walks_of(OpId id) {
    Walks walks = walks_.of(id);
    const int64_t most = static_cast<int64_t>(
        std::bit_floor(static_cast<uint64_t>(kMostRoundOps / copies_.body_ops(id))));
    if (most < 2) walks.clear();
    for (Walk& walk : walks) walk.width = std::min(walk.width, most);
    return walks;
  }
  bool are_aligned(OpId id, const Walks& walks) {
    const ValueId index = kernel_.region(kernel_.op(id).regions[0]).args[0];
    return std::all_of(walks.begin(), walks.end(),
                       [&](const Walk& walk) { return walks_.is_aligned(walk, index); });
  }

  std::optional<Chosen> chosen_own(OpId id) {
    // No round has less than two trips: of loops that have fewer, no facts are read.
    const std::optional<uint64_t> trips = copies_.known_trips(kernel_.op(id));
    if (trips.value_or(2) < 2) return std::nullopt;
    const Walks walks = walks_of(id);
    if (walks.empty()) return std::nullopt;
    const int64_t n = walks[0].width;
    const Op& loop = kernel_.op(id);
    if (trips.value_or(n) < static_cast<uint64_t>(n)) return std::nullopt;
    const bool aligned = ints_.divisible(loop.start(), n) && are_aligned(id, walks);
    // Numbers of trips are counted in the index's type.
    if (!aligned && (quiet_.range(loop.start()).min < 0 || !keeps_agreement(loop, walks) ||
                     !is_worth_splitting(loop, walks))) {
      return std::nullopt;
    }
    return Chosen{id, walks, aligned, quiet_.trips(id).at_least_one};
  }

  void split_own(const Chosen& one) {
    const Op loop = kernel_.op(one.loop);
    const int64_t n = one.walks[0].width;
    b_.set_insertion_before(one.loop);
    b_.set_loc(loop.loc);
    const Carried inits = LoopCopies::inits(loop);
    if (one.aligned) return copies_.replace(one.loop, copies_.make_rounds(loop, n, 1, inits));
    // What offsets are computed from may hold nothing where the loop has no trip.
    const Trips all{loop.start(), loop.stop(), n};
    const auto way = [&](bool any) {
      return any ? split(loop, one.walks, all, false, inits) : inits;
    };
    copies_.replace(
        one.loop,
        one.runs ? way(true) : chosen(make(Opcode::kLt, loop.start(), loop.stop()), inits, way));
  }

  // A loop whose trips may be dealt anew.
  std::optional<Chosen> chosen_dealt(OpId id, const Dealing& dealing) {
    Walks walks = walks_of(id);
    if (walks.empty() || 2 * walks[0].width > dealing.least_lanes ||
        !dealt_.may_be_dealt_anew(id)) {
      return std::nullopt;
    }
    // Rounds are aligned to what is stored: loads of single elements find those beside them in the cache.
    std::stable_partition(walks.begin(), walks.end(), [this, n = walks[0].width](const Walk& walk) {
      return is_store(walk) && walk.width == n;
    });
    const bool aligned = dealing.base % walks[0].width == 0 && are_aligned(id, walks);
    return Chosen{id, std::move(walks), aligned, false, dealing};
  }

  void split_dealt(const Chosen& one, const Dealing& dealing) {
    const Walks& walks = one.walks;
    const int64_t n = walks[0].width;
    const Op loop = kernel_.op(one.loop);
    b_.set_insertion_before(one.loop);
    b_.set_loc(loop.loc);
    const ValueId base = number(loop.start(), dealing.base);
    const ValueId lane = dealing.base == 0 ? loop.start() : make(Opcode::kSub, loop.start(), base);
    const Trips all{base, loop.stop(), whole_lines(walks[0], dealing), lane, loop.step()};
    // Rounds for at least half of the threads.
    const auto shifted = [&](ValueId value, int by) {
      return make(Opcode::kShr, value, b_.constant_int(Type::of(Scalar::kU32), by));
    };
    const ValueId rounds = shifted(count_of(all), std::countr_zero(static_cast<uint64_t>(n)));
    ValueId pays = make(Opcode::kGe, rounds, shifted(loop.step(), 1));
    Walks stored;
    for (const Walk& walk : walks) {
      if (is_store(walk)) stored.push_back(walk);
    }
    if (!one.aligned && needs_agreement(stored, walks[0])) {
      // What offsets are computed from may hold nothing where the loop has no trip.
      const auto agreed = [&](bool runs) {
        return Carried{runs ? agreement(loop, stored, walks[0], base) : no()};
      };
      pays = chosen(pays, {no()}, agreed)[0];
    }
    copies_.replace(one.loop, chosen(pays, {}, [&](bool holds) {
                      return holds ? split(loop, walks, all, one.aligned, {})
                                   : copies_.make_loop_by(loop.step(), loop, loop.start(),
                                                          loop.stop(), 1, 1, {});
                    }));
  }

  // Elements of a cache line, so that a warp's round begins with one; of a round, where lanes are too few to have a
  // single trip each before that.
  int64_t whole_lines(const Walk& walk, const Dealing& dealing) const {
    const int64_t line = kLineBytes / bytes_of(kernel_.type(kernel_.op(walk.op).view()).scalar);
    return line + walk.width <= dealing.least_lanes ? std::max(line, walk.width) : walk.width;
  }

  bool is_store(const Walk& walk) const { return kernel_.op(walk.op).opcode == Opcode::kStore; }
  ValueId no() { return b_.constant(Type::of(Scalar::kBool), 0); }
  static bool needs_agreement(const Walks& walks, const Walk& first) {
    return !std::all_of(walks.begin(), walks.end(),
                        [&](const Walk& walk) { return walk.follows(first); });
  }
  // Whether accesses, not all of which are so for sure, are aligned in the trips in which the first one is.
  ValueId agreement(const Op& loop, const Walks& walks, const Walk& first, ValueId start) {
    const ValueId index = kernel_.region(loop.regions[0]).args[0];
    const auto past = [&](const Walk& walk, int64_t width) {
      const ValueId offset = offset_at(walk, index, start);
      const ValueId low =
          make(Opcode::kAnd, offset, b_.constant_int(kernel_.type(offset), width - 1));
      const Type small = Type::of(Scalar::kI32);
      return kernel_.type(low) == small ? low : b_.create(Opcode::kConvert, {low}, small);
    };
    ValueId agree = ValueId::kNone;
    for (const Walk& walk : walks) {
      if (walk.follows(first)) continue;
      const ValueId is = make(Opcode::kEq, past(walk, walk.width), past(first, walk.width));
      agree = valid(agree) ? make(Opcode::kAnd, agree, is) : is;
    }
    return agree;
  }

  // Whether threads agree on the loop's results as far as they did: how trips are split hangs on offsets of
  // theirs.
  bool keeps_agreement(const Op& loop, const Walks& walks) const {
    const ValueId index = kernel_.region(loop.regions[0]).args[0];
    Scope scope = Scope::kGrid;
    for (size_t i = 0; i < walks.size(); ++i) {
      if (i > 0 && walks[i].follows(walks[0])) continue;
      for (const LinearSum::Term& term : walks[i].sum.terms) {
        if (term.value != index) scope = std::min(scope, uniformity_.of(term.value));
      }
    }
    return std::all_of(loop.results.begin(), loop.results.end(),
                       [&](ValueId result) { return uniformity_.of(result) <= scope; });
  }

  // A loop in another one is split anew in each of its runs where rounds begin elsewhere each time. Loads of what is
  // one element for the warp, and one transaction as they are, do not make up for that.
  bool is_worth_splitting(const Op& loop, const Walks& walks) const {
    const ValueId index = kernel_.region(loop.regions[0]).args[0];
    const auto is_one_for_the_warp = [this](const Walk& walk) {
      return !is_store(walk) && std::all_of(walk.sum.terms.begin(), walk.sum.terms.end(),
                                            [this](const LinearSum::Term& term) {
                                              return uniformity_.of(term.value) >= Scope::kWarp;
                                            });
    };
    const auto& begin = walks[0].sum.terms;
    const bool moves = std::any_of(begin.begin(), begin.end(), [&](const LinearSum::Term& term) {
      return term.value != index && is_made_in_loop(term.value);
    });
    return !moves || !std::all_of(walks.begin(), walks.end(), is_one_for_the_warp);
  }
  bool is_made_in_loop(ValueId value) const {
    const Op* const def = kernel_.def(value);
    OpId around = kernel_.region(def != nullptr ? def->parent : kernel_.value(value).region).parent;
    while (valid(around) && !is_loop(kernel_.op(around))) {
      around = kernel_.region(kernel_.op(around).parent).parent;
    }
    return valid(around);
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

  // Trips by a step of one from `start` up to `stop`: the thread's own, or where there is a lane, of these every
  // lanes-th. Rounds begin where the first walk's element is a multiple of `multiple`.
  struct Trips {
    ValueId start, stop;
    int64_t multiple = 1;
    ValueId lane = ValueId::kNone, lanes = ValueId::kNone;
    bool dealt() const { return valid(lane); }
  };

  ValueId count_of(const Trips& trips) {
    return b_.create(Opcode::kBitcast, {copies_.distance(trips.start, trips.stop)},
                     kernel_.type(trips.start));
  }

  Carried split(const Op& loop, const Walks& walks, const Trips& all, bool aligned,
                Carried carried) {
    const ValueId index = kernel_.region(loop.regions[0]).args[0];
    const Type type = kernel_.type(all.start);
    const int64_t n = walks[0].width;
    const ValueId between = count_of(all);
    // As many trips as there are elements up to one that is aligned.
    ValueId before = number(all.start, 0), begin = all.start, rest = between;
    if (!aligned) {
      const ValueId first = offset_at(walks[0], index, all.start);
      const ValueId short_of = make(Opcode::kAnd, b_.create(Opcode::kNeg, {first}),
                                    b_.constant_int(kernel_.type(first), all.multiple - 1));
      const ValueId wanted =
          kernel_.type(first) == type ? short_of : b_.create(Opcode::kConvert, {short_of}, type);
      before = make(Opcode::kMin, wanted, between);
      begin = make(Opcode::kAdd, all.start, before);
      rest = make(Opcode::kSub, between, before);
    }
    const ValueId whole = make(Opcode::kAnd, rest, number(begin, -n));
    if (all.dealt()) {
      dealt_singles(loop, all, before, whole, make(Opcode::kSub, between, whole));
    } else if (!aligned) {
      carried = copies_.make_loop(loop, all.start, begin, 1, 1, carried);
    }

    // Offsets of the first round. Behind less than a round's trips there is none, and nothing is aligned.
    absl::InlinedVector<ValueId, 4> offsets;
    for (const Walk& walk : walks) offsets.push_back(offset_at(walk, index, begin));
    const Trips rounds_of{begin, whole, n, all.lane, all.lanes};
    const auto rounds = [&](bool agreed) {
      return make_rounds(loop, walks, offsets, agreed, rounds_of, n, carried);
    };
    carried = aligned || !needs_agreement(walks, walks[0])
                  ? rounds(true)
                  : chosen(agreement(loop, walks, walks[0], all.start), carried, rounds);
    if (all.dealt()) return carried;
    const ValueId end = make(Opcode::kAdd, begin, whole);
    return copies_.make_loop(loop, end, all.stop, 1, 1, carried);
  }

  // The trips before the rounds and behind them, `count` in all, each by a thread of its own: they wait together.
  void dealt_singles(const Op& loop, const Trips& all, ValueId before, ValueId whole,
                     ValueId count) {
    chosen(make(Opcode::kLt, all.lane, count), {}, [&](bool has_one) {
      if (!has_one) return Carried{};
      const ValueId is_before = make(Opcode::kLt, all.lane, before);
      const ValueId skipped = b_.create(Opcode::kSelect, {is_before, number(all.start, 0), whole});
      const ValueId at = make(Opcode::kAdd, make(Opcode::kAdd, all.start, all.lane), skipped);
      return copies_.make_trips(loop, at, 1, 1, {});
    });
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

  // Rounds of n of the trips from trips.start on, trips.stop of them; of the accesses, all are aligned there or
  // those that follow the first one, and where trips are dealt out, what is stored.
  Carried make_rounds(const Op& loop, const Walks& walks, absl::Span<const ValueId> offsets,
                      bool all, const Trips& trips, int64_t n, const Carried& carried) {
    copies_.on_copy([&](OpId original, OpId copy, int64_t trip) {
      for (size_t i = 0; i < walks.size(); ++i) {
        if (walks[i].op != original) continue;
        if (!all && !walks[i].follows(walks[0]) && !(trips.dealt() && is_store(walks[i]))) continue;
        say_aligned(copy, offsets[i], walks[i].width, trip);
      }
    });
    ValueId first = number(trips.start, 0), by = number(trips.start, n);
    if (trips.dealt()) {
      // Of as many lanes as nobody knows, the product goes up to the end, so that it does not wrap.
      const bool known = kernel_.constant_int(trips.lanes).has_value();
      const auto rounds = [&](ValueId lanes) {
        return known ? lanes : make(Opcode::kMin, lanes, make(Opcode::kDiv, trips.stop, by));
      };
      first = make(Opcode::kMul, rounds(trips.lane), by);
      by = known ? make(Opcode::kMul, trips.lanes, by)
                 : make(Opcode::kMax, make(Opcode::kMul, rounds(trips.lanes), by), by);
    }
    const Carried result =
        copies_.make_loop_by(by, loop, first, trips.stop, n, 1, carried, trips.start);
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
  const Uniformity& uniformity_;
  IntAnalysis &quiet_, &ints_;  // which asks no facts, and which may
  LoopWalks walks_;
  DealtLoops dealt_;
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
