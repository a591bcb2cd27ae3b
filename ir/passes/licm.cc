// licm: what every trip of a loop computes alike is computed before it.
//
// What: a pure op moves out of all loops that do not change its operands, from inside ifs too. One
// that is not to be speculated (a load, an integer division that may be unspecified, map_shared, a
// promise) moves only where it is sure to run: from the top of a loop's body, or of a `while`'s
// condition, when the loop runs at least once and nothing before it may end the kernel or wait; a
// load, only if nothing in the loop may write that memory or let others' writes through. Shuffles
// and votes stay. So do register renames of fragments, and descriptors of tiles: they cost nothing
// where they are, or one addition of a constant to what all descriptors share, and registers
// outside. The fact that a parameter does not overlap with what is written is read only where a load
// moves by it.
//
// Needs: no-variables. Keeps: aliasing, movable-ints.
//
// Why: index arithmetic of outer loops ends up inside inner ones, constants everywhere.
//
//   for %i in %a .. %n step %k {              %two = const 2 : i32
//     %two = const 2 : i32             →      %0 = mul %row, %two : i32
//     %0 = mul %row, %two : i32               for %i in %a .. %n step %k {
//     %1 = add %0, %i : i32                     %1 = add %0, %i : i32
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "heddle/ir/analysis/aliasing.h"
#include "heddle/ir/analysis/int_facts.h"
#include "heddle/ir/passes/passes.h"
#include "heddle/ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

class Motion {
 public:
  explicit Motion(PassContext& context)
      : kernel_(context.kernel()),
        aliasing_(context.analysis<Aliasing>()),
        ints_(context.analysis<MovableInts>()),
        tied_(tied_values(kernel_)) {}

  bool run() {
    visit(kernel_.body());
    return moved_;
  }

 private:
  // A region on the way from the kernel's body to the op at hand.
  struct Frame {
    RegionId region;
    OpId owner;
    bool of_loop;
    bool interrupted = false;  // an op in it may keep threads from getting further
  };

  void visit(RegionId region) {
    const OpId owner = kernel_.region(region).parent;
    const bool of_loop = valid(owner) && is_loop(kernel_.op(owner));
    depth_.at(region) = static_cast<int>(frames_.size());
    frames_.push_back({region, owner, of_loop});
    for (const OpId id : kernel_.ops(region)) {
      const size_t regions = kernel_.op(id).regions.size();
      for (size_t i = 0; i < regions; ++i) visit(kernel_.op(id).regions[i]);
      hoist(id);
      if (may_interrupt(kernel_.op(id))) frames_.back().interrupted = true;
    }
    const bool interrupted = frames_.back().interrupted;
    frames_.pop_back();
    if (!frames_.empty() && interrupted) frames_.back().interrupted = true;
  }

  // Ends the kernel, waits, or need not end.
  static bool may_interrupt(const Op& op) {
    return has(info(op), kMayStop) || has(info(op), kBlocking);
  }

  int depth_of(ValueId value) const {
    const Value& v = kernel_.value(value);
    return depth_[valid(v.region) ? v.region : kernel_.op(v.def).parent];
  }
  // The innermost region that an operand comes from.
  int depth_of_operands(const Op& op) const {
    int depth = 0;
    for (const ValueId operand : op.operands) depth = std::max(depth, depth_of(operand));
    return depth;
  }

  void hoist(OpId id) {
    const Op& op = kernel_.op(id);
    const int here = static_cast<int>(frames_.size()) - 1;
    if (op.opcode == Opcode::kLoad) return hoist_where_sure(id, here);
    if ((!has(info(op), kPure) && !has(info(op), kPromise)) || !worth_moving(op)) return;
    if (!may_be_speculated(op)) return hoist_where_sure(id, here);
    // The outermost place that is in front of a loop and still sees the operands.
    for (int depth = depth_of_operands(op); depth < here; ++depth) {
      const Frame& inner = frames_[static_cast<size_t>(depth) + 1];
      if (inner.of_loop) return move_before(id, inner.owner);
    }
  }

  bool worth_moving(const Op& op) const {
    if (tied_[op.result()] != 0) return false;
    if (kernel_.type(op.result()).kind == TypeKind::kDescriptor) return false;
    const bool rename = op.opcode == Opcode::kConst || op.opcode == Opcode::kUndef ||
                        op.opcode == Opcode::kSplat || op.opcode == Opcode::kPack ||
                        op.opcode == Opcode::kSlice;
    return !rename || kernel_.type(op.result()).kind != TypeKind::kFragment;
  }

  bool may_be_speculated(const Op& op) {
    if (has(info(op), kPromise)) return false;
    if (!has(info(op), kNotSpeculatable)) return true;
    if (op.opcode == Opcode::kMapShared) {
      return IntRange{0, kernel_.cluster.count() - 1}.contains(ints_.range(op.rank()));
    }
    // Divisions of floats, and those of integers whose result is specified, are as safe as any op.
    if (op.opcode != Opcode::kDiv && op.opcode != Opcode::kRem) return false;
    const Scalar scalar = kernel_.type(op.a()).scalar;
    if (!is_integer(scalar)) return true;
    const IntRange by = ints_.range(op.b());
    if (by.contains(0)) return false;
    if (!is_signed(scalar) || !by.contains(-1)) return true;
    return !ints_.range(op.a()).contains(type_range(scalar).min);
  }

  // One loop after the other, as long as the op is sure to run.
  void hoist_where_sure(OpId id, int here) {
    if (kernel_.op(id).attr_or(AttrKey::kVolatile, 0) != 0) return;
    const int operands = depth_of_operands(kernel_.op(id));
    for (int depth = here; depth > operands; --depth) {
      const Frame& frame = frames_[static_cast<size_t>(depth)];
      if (!frame.of_loop || frame.interrupted || !runs_at_least_once(frame)) return;
      if (kernel_.op(id).opcode == Opcode::kLoad && !same_in_every_trip(id, frame.owner)) return;
      move_before(id, frame.owner);
    }
  }

  bool runs_at_least_once(const Frame& frame) {
    const Op& loop = kernel_.op(frame.owner);
    if (loop.opcode == Opcode::kWhile) return loop.regions[0] == frame.region;
    return ints_.trips(frame.owner).at_least_one;
  }

  bool same_in_every_trip(OpId load, OpId loop) {
    const int object = aliasing_.object_of(kernel_.op(load).view());
    const Clobber clobber = clobber_in(loop, object);
    return clobber == Clobber::kNo ||
           (clobber == Clobber::kUnlessNoOverlap && aliasing_.no_overlap(object));
  }

  // What a loop may do to an object. Known once for all loads: what writes does not move.
  Clobber clobber_in(OpId loop, int object) {
    const auto entry = clobbers_.try_emplace({loop, object}, Clobber::kNo);
    Clobber& clobber = entry.first->second;
    if (!entry.second) return clobber;
    for (const RegionId region : kernel_.op(loop).regions) {
      kernel_.walk(region, [&](OpId id) {
        const Op& op = kernel_.op(id);
        if (Aliasing::may_clobber(op)) clobber = std::max(clobber, aliasing_.clobber(op, object));
      });
    }
    return clobber;
  }

  void move_before(OpId id, OpId loop) {
    kernel_.unlink(id);
    kernel_.insert_before(loop, id);
    moved_ = true;
  }

  Kernel& kernel_;
  const Aliasing& aliasing_;
  IntAnalysis& ints_;
  IdMap<ValueId, uint8_t> tied_;
  IdMap<RegionId, int> depth_;
  std::vector<Frame> frames_;
  absl::flat_hash_map<std::pair<OpId, int>, Clobber> clobbers_;  // by loop and object
  bool moved_ = false;
};

}  // namespace

bool licm(PassContext& context) { return Motion(context).run(); }

}  // namespace heddle::ir
