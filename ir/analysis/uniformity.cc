#include "heddle/ir/analysis/uniformity.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "heddle/ir/analysis/agreement.h"
#include "heddle/ir/analysis/analyses.h"
#include "heddle/ir/analysis/barrier_phases.h"
#include "heddle/ir/analysis/uniform_bits.h"
#include "heddle/ir/text/printer.h"

namespace heddle::ir {
namespace {

constexpr Agreement kNothing(Scope::kThread);

// Starts from the belief that everything agrees throughout the grid and takes back what an op
// contradicts, until nothing changes: for what a loop carries, of its body; for what variables hold, of the kernel.
class Propagation {
 public:
  Propagation(Analyses& analyses, IdMap<ValueId, Scope>& values)
      : kernel_(analyses.kernel()), values_(values), lanes_(kernel_, values, analyses.get<Ints>()) {
    find_private_sync();
    do {
      slots_changed_ = false;
      sweep(kernel_.body());
    } while (slots_changed_);
  }

  // How far the threads that reach a region's owner agree on running the region.
  Scope narrowing(RegionId region) const { return narrowing_[region].scope; }

 private:
  Agreement of(ValueId value) const { return {values_[value], moves_[value]}; }
  Agreement of_all(absl::Span<const ValueId> values) const {
    Agreement level;
    for (const ValueId value : values) level = both(level, of(value));
    return level;
  }
  Agreement lifted(Agreement level) const { return {lanes_.lifted(level.scope), level.moves}; }

  // Levels only fall. True where this one did.
  bool lower(ValueId value, Agreement level) {
    const Agreement before = of(value);
    level = lifted(both(level, before));
    if (level == before) return false;
    values_.at(value) = level.scope;
    moves_.at(value) = level.moves;
    return true;
  }
  bool narrow(RegionId region, Agreement level) {
    level = lifted(both(level, narrowing_[region]));
    if (level == narrowing_[region]) return false;
    narrowing_.at(region) = level;
    return true;
  }

  // Whether an op lets one thread wait for another, alone: see uniformity.h on loads.
  bool synchronises_threads(const Op& op) const {
    if (!op.attrs.empty() && op.attr_or(AttrKey::kVolatile, 0) != 0) return true;
    if (has(info(op), kSyncsThreads)) return true;
    switch (op.opcode) {
      case Opcode::kAtomic:
      case Opcode::kAtomicCas:
      case Opcode::kAtomicLoad:
        return in_while(op);
      case Opcode::kWarpSync:
        return valid(op.mask()) && kernel_.constant_bits(op.mask()) != 0xFFFFFFFF;
      default:
        return false;
    }
  }
  // Marks the loads that may come behind such an op: those that follow it, or a loop around it.
  void find_private_sync() {
    IdMap<OpId, uint8_t> starts{0};
    kernel_.walk([&](OpId id) {
      if (!synchronises_threads(kernel_.op(id))) return;
      starts.at(id) = 1;
      for (RegionId region = kernel_.op(id).parent; region != kernel_.body();) {
        const OpId owner = kernel_.region(region).parent;
        if (is_loop(kernel_.op(owner))) starts.at(owner) = 1;
        region = kernel_.op(owner).parent;
      }
    });
    bool behind = false;
    std::optional<BarrierPhases> phases;  // where it is asked for
    kernel_.walk([&](OpId id) {
      behind |= starts[id] != 0;
      if (!behind || kernel_.op(id).opcode != Opcode::kLoad) return;
      if (!phases) phases.emplace(kernel_);
      if (!phases->settles(id)) behind_sync_.at(id) = 1;
    });
  }

  // Waiting is a loop that looks again.
  bool in_while(const Op& op) const {
    for (RegionId region = op.parent; region != kernel_.body();) {
      const Op& owner = kernel_.op(kernel_.region(region).parent);
      if (owner.opcode == Opcode::kWhile) return true;
      region = owner.parent;
    }
    return false;
  }

  void sweep(RegionId region) {
    for (const OpId id : kernel_.ops(region)) visit(id);
  }

  void visit(OpId id) {
    const Op& op = kernel_.op(id);
    if (op.opcode == Opcode::kFor) return visit_for(id);
    if (op.opcode == Opcode::kWhile) return visit_while(op);
    if (op.opcode == Opcode::kIf) return visit_if(op);
    if (op.opcode == Opcode::kVarStore) {
      const Agreement level = both(of(op.value()), relative_control(id, op.slot()));
      slots_changed_ |= lower(op.slot(), level);
      return;
    }
    const auto is_known = [&](ValueId result) { return of(result) == kNothing; };
    if (std::all_of(op.results.begin(), op.results.end(), is_known)) return;
    const Agreement level = level_of(id);
    for (const ValueId result : op.results) lower(result, level);
  }

  // A coordinate of the block, counted in whole clusters, is that of its cluster.
  bool is_of_cluster(const Op& op) const {
    const auto extent = [&](const Op& index) {
      return kernel_.cluster[static_cast<size_t>(index.attr_or(AttrKey::kAxis, 0))];
    };
    if (kernel_.cluster.count() == 1) return false;
    if (op.opcode == Opcode::kBlockIdx) return extent(op) == 1;
    const bool shifts = op.opcode == Opcode::kShr;
    if (!shifts && op.opcode != Opcode::kDiv) return false;
    const OpId index = kernel_.value(op.a()).def;
    if (!valid(index) || kernel_.op(index).opcode != Opcode::kBlockIdx) return false;
    const std::optional<int64_t> by = kernel_.constant_int(shifts ? op.count() : op.b());
    if (!by || *by < 0 || (shifts && *by > 31)) return false;
    const int64_t blocks = shifts ? int64_t{1} << *by : *by;
    return blocks != 0 && blocks % extent(kernel_.op(index)) == 0;
  }

  Agreement level_of(OpId id) {
    const Op& op = kernel_.op(id);
    const OpInfo& row = info(op);
    const auto is = [&](Opcode opcode) { return op.opcode == opcode; };
    if (is(Opcode::kThreadIdx)) return lanes_.coordinate_level(op.attr_or(AttrKey::kAxis, 0));
    if (is(Opcode::kLaneId)) return {Scope::kThread, kWarpMove};
    if (is(Opcode::kLoad)) return level_of_load(id);
    if (has(row, kShuffle)) return level_of_shuffle(op);
    if (has(row, kGathers)) return level_of_gathering(op);
    if (is(Opcode::kAssumeUniform)) return either(Scope::kBlock, of(op.a()));
    if (is_of_cluster(op)) return Agreement(Scope::kCluster);
    const Agreement level = both(row.uniform, of_all(op.operands));
    if (!has(row, kPure) || has(row, kForwards) || level.scope >= Scope::kWarpGroup) return level;
    return either(level, {lanes_.agreement(op.result()), moves_by_form(kernel_, op)});
  }

  Agreement level_of_load(OpId id) {
    const Op& op = kernel_.op(id);
    const Space space = kernel_.type(op.view()).space;
    const bool constant = space == Space::kParam || space == Space::kConst;
    if (op.attr_or(AttrKey::kVolatile, 0) != 0 || space == Space::kLocal) return Scope::kThread;
    if (behind_sync_[id] != 0 && !constant) return Scope::kThread;
    return both(of(op.view()), of(op.offset()));
  }

  // The lanes that take part: every lane where an op has no mask.
  Agreement mask_of(const Op& op) const { return valid(op.mask()) ? of(op.mask()) : Agreement(); }

  Agreement level_of_shuffle(const Op& op) {
    // What all lanes agree on, they still agree on after exchanging it.
    const Agreement value = of(op.value());
    if (value.scope >= Scope::kWarp) return value;
    if (mask_of(op).scope < Scope::kWarp) return Scope::kThread;
    const bool in_warp = lanes_.is_lane(op.lane());
    return {Scope::kThread,
            moves_of_shuffle(kernel_, op, value.moves, of(op.lane()).moves, in_warp)};
  }

  // What one instruction makes of all lanes that take part, which then share it.
  Agreement level_of_gathering(const Op& op) {
    const Agreement value = of(op.value());
    const Agreement mask = mask_of(op);
    // A block's last warp may have fewer lanes than the others, which these do not notice.
    if (has(info(op), kVote) && value.scope >= Scope::kWarp) return value;
    if (mask.scope < Scope::kWarp) return Scope::kThread;
    const bool whole_warps = !kernel_.has_dynamic_block() && kernel_.block.count() % 32 == 0;
    const Moves moves = value.moves & mask.moves & kWarpMove;
    return {Scope::kWarp, whole_warps ? moves : kNoMoves};
  }

  // How far the threads that share the slot agree on running an op.
  Agreement relative_control(OpId id, ValueId slot) const {
    const OpId declaration = kernel_.value(slot).def;
    const RegionId outer = valid(declaration) ? kernel_.op(declaration).parent : kernel_.body();
    Agreement level;
    for (RegionId region = kernel_.op(id).parent; region != outer;) {
      level = both(level, narrowing_[region]);
      const OpId owner = kernel_.region(region).parent;
      if (!valid(owner)) break;
      region = kernel_.op(owner).parent;
    }
    return level;
  }

  absl::Span<const ValueId> yielded(RegionId region) const {
    const OpId end = kernel_.terminator(region);
    if (!valid(end)) return {};
    return kernel_.op(end).operands;
  }

  void visit_if(const Op& op) {
    const Agreement condition = of(op.condition());
    for (const RegionId region : op.regions) {
      narrow(region, condition);
      sweep(region);
    }
    const auto a = yielded(op.regions[0]);
    const auto b = yielded(op.regions[1]);
    for (size_t i = 0; i < op.results.size(); ++i) {
      if (i >= a.size() || i >= b.size()) {
        lower(op.results[i], Scope::kThread);
      } else if (a[i] == b[i]) {
        lower(op.results[i], of(a[i]));
      } else {
        lower(op.results[i], both(condition, both(of(a[i]), of(b[i]))));
      }
    }
  }

  void visit_for(OpId id) {
    const Op& op = kernel_.op(id);
    const RegionId body = op.regions[0];
    const auto& args = kernel_.region(body).args;
    Agreement trips = of_all({op.start(), op.stop(), op.step()});
    if (trips.scope < Scope::kGrid) trips = either(trips, lanes_.trip_agreement(id));
    narrow(body, trips);
    lower(args[0], both(of(op.start()), of(op.step())));
    const auto init = op.inits();
    for (size_t i = 0; i < init.size(); ++i) lower(args[1 + i], of(init[i]));
    do {
      sweep(body);
    } while (carry(op, init, trips));
  }

  void visit_while(const Op& op) {
    const auto init = op.inits();
    for (const RegionId region : op.regions) {
      const auto& args = kernel_.region(region).args;
      for (size_t i = 0; i < init.size(); ++i) lower(args[i], of(init[i]));
    }
    for (bool again = true; again;) {
      sweep(op.regions[0]);
      const Agreement condition = of_all(yielded(op.regions[0]));
      again = false;
      for (const RegionId region : op.regions) again |= narrow(region, condition);
      sweep(op.regions[1]);
      again |= carry(op, init, condition);
    }
  }

  // What the body hands to the next trip, and what leaves the loop. True where the next trip finds less agreement.
  bool carry(const Op& op, absl::Span<const ValueId> init, Agreement trips) {
    const auto next = yielded(op.regions.back());
    bool changed = false;
    for (size_t i = 0; i < init.size(); ++i) {
      const auto arg = [&](RegionId region) {
        const auto& args = kernel_.region(region).args;
        return args[args.size() - init.size() + i];
      };
      if (i >= next.size()) {  // under construction
        for (const RegionId region : op.regions) changed |= lower(arg(region), Scope::kThread);
        lower(op.results[i], Scope::kThread);
        continue;
      }
      for (const RegionId region : op.regions) changed |= lower(arg(region), of(next[i]));
      // What every trip hands on unchanged does not depend on how many trips there are.
      const bool unchanged = next[i] == arg(op.regions.back());
      const Agreement level = both(of(init[i]), of(next[i]));
      lower(op.results[i], unchanged ? level : both(level, trips));
    }
    return changed;
  }

  const Kernel& kernel_;
  IdMap<ValueId, Scope>& values_;
  IdMap<ValueId, Moves> moves_{kAllMoves};
  IdMap<RegionId, Agreement> narrowing_;
  UniformBits lanes_;
  IdMap<OpId, uint8_t> behind_sync_{0};  // loads
  bool slots_changed_ = false;
};

}  // namespace

Uniformity::Uniformity(const Kernel& kernel) : kernel_(kernel) {
  Analyses analyses(kernel);
  propagate(analyses);
}

Uniformity::Uniformity(Analyses& analyses) : kernel_(analyses.kernel()) { propagate(analyses); }

void Uniformity::propagate(Analyses& analyses) {
  known_values_ = kernel_.value_count();
  known_regions_ = kernel_.region_count();
  const Propagation propagation(analyses, values_);
  kernel_.walk([&](OpId id) {
    for (const RegionId region : kernel_.op(id).regions) {
      Control control = regions_[kernel_.op(id).parent];
      const Scope level = propagation.narrowing(region);
      if (level < control.control) control = {level, id};
      regions_.at(region) = control;
    }
  });
}

std::string Uniformity::disagreement(const Uniformity& other) const {
  std::string what;
  kernel_.walk([&](OpId id) {
    for (const ValueId value : kernel_.op(id).results) {
      if (!what.empty() || of(value) <= other.of(value)) continue;
      what = absl::StrCat("threads of one ", name_of(of(value)), " agree on '",
                          print_op(kernel_, id), "'");
    }
  });
  return what;
}

}  // namespace heddle::ir
