// Walks the kernel: which ops are needed, and what lowers each.
#include "heddle/ir/interp/lower/lowering.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "heddle/ir/atomic.h"
#include "heddle/ir/diagnostic.h"
#include "heddle/ir/interp/scalar/lane.h"
#include "heddle/ir/launch/launch_program.h"

namespace heddle::ir::interp {
namespace {

// Whether there is asynchronous work, mbarriers, other blocks' memory or arenas, whose order can be checked.
// PTX of the user's own may order and wait in ways that only it knows.
bool is_watched(const Kernel& kernel) {
  bool found = false, unknown = false;
  kernel.walk([&](OpId id) {
    const Op& op = kernel.op(id);
    found |= info(op).effects.async || op.opcode == Opcode::kMbarrierInit ||
             op.opcode == Opcode::kMapShared || op.attr(AttrKey::kArena).has_value();
    unknown |= info(op).effects.unnamed;
  });
  return found && !unknown;
}

}  // namespace

Lowering::Lowering(const Kernel& kernel, const CompileOptions& options)
    : kernel_(kernel),
      options_(options),
      watched_(options.checks && is_watched(kernel)),
      unwritten_(kernel),
      shared_(watched_ ? apart_layout(kernel) : shared_layout(kernel)),
      places_(shared_layout(kernel)),
      locals_(local_layout(kernel)) {
  code_->name = kernel.name();
  code_->block = kernel.block;
  code_->cluster = kernel.cluster;
  code_->checked = options.checks;
  code_->watched = watched_;
  code_->static_shared_bytes = static_cast<int>(shared_.bytes);
  code_->local_bytes = locals_.dynamic_offset();
  code_->dynamic_shared_offset = shared_.dynamic_offset();
}

StatusOr<Program> Lowering::run() {
  find_needed(kernel_.body());
  lower_params();
  lower_region(kernel_.body());
  emit(end_handler(), {});
  if (!status_.ok()) return status_;
  return finish();
}

// A pure op is left out when nothing that is needed uses it: with checks off, that is all that only
// bounds depend on. Backwards, so that users come before what they use.
void Lowering::find_needed(RegionId region) {
  for (OpId id = kernel_.region(region).last; valid(id); id = kernel_.op(id).prev) {
    const Op& op = kernel_.op(id);
    bool needed = (info(op).traits & (kPure | kFresh)) == 0;
    // Arrays of arenas have their bytes, whether they are used or not.
    if (watched_ && op.attr(AttrKey::kArena)) needed = needed_.at(op.result()) = true;
    for (const ValueId result : op.results) needed |= needed_[result];
    if (!needed || has(info(op), kHostOnly)) continue;
    for (const ValueId operand : op.operands) {
      if (!options_.checks && type(operand).kind == TypeKind::kCheck) continue;
      needed_.at(operand) = true;
    }
    for (size_t i = op.regions.size(); i > 0; --i) find_needed(op.regions[i - 1]);
  }
}

void Lowering::lower_region(RegionId region) {
  for (const OpId id : kernel_.ops(region)) {
    if (!status_.ok()) return;
    const Op& op = kernel_.op(id);
    if ((info(op).traits & (kPure | kFresh)) != 0 && !needed_[op.result()]) continue;
    enter(id);
    lower_op(id);
  }
}

// Of an op from outside, no case is there.
void Lowering::lower_op(OpId id) {
  const Op& op = kernel_.op(id);
  const auto axis = [&op] { return static_cast<uint64_t>(op.attr_or(AttrKey::kAxis, 0)); };
  const auto ambient = [&](InitKind kind, uint64_t value) {
    bind(op.result(), initial(kind, Scalar::kI32, 1, value));
  };
  switch (op.opcode) {
    case Opcode::kConst: {
      const Type t = type(op.result());
      bind(op.result(), initial(InitKind::kConst, t.scalar, t.count,
                                static_cast<uint64_t>(op.attr_or(AttrKey::kBits, 0))));
      return;
    }
    case Opcode::kFence:  // lanes, warps and blocks take turns
      if (options_.checks) emit(order_handler(), {});
      if (watched_) emit(memory_order_handler(), {});
      return;
    case Opcode::kUndef: {
      const Type t = type(op.result());
      if (!t.is_data() && !t.is_pending()) {
        return unimplemented(absl::StrCat("undef of type ", to_string(t)));
      }
      bind(op.result(), initial(InitKind::kUndef, t.scalar, t.count, 0));
      return;
    }
    case Opcode::kVar: {
      std::vector<Move> moves;
      bound_.at(op.result()) = fresh(op.result(), op.init());
      append_moves(op.result(), bound_[op.result()], op.init(), &moves);
      return emit_moves(std::move(moves), /*blended=*/false);
    }
    case Opcode::kVarLoad: {
      std::vector<Move> moves;
      bound_.at(op.result()) = fresh(op.result(), op.slot());
      append_moves(op.result(), bound_[op.result()], op.slot(), &moves);
      return emit_moves(std::move(moves), /*blended=*/false);
    }
    case Opcode::kVarStore: {
      std::vector<Move> moves;
      append_moves(op.slot(), bound_[op.slot()], op.value(), &moves);
      return emit_moves(std::move(moves), /*blended=*/true);
    }
    case Opcode::kYield:
      return;  // lowered with the op that owns the region
    case Opcode::kFor:
      return lower_for(op);
    case Opcode::kWhile:
      return lower_while(op);
    case Opcode::kIf:
      return lower_if(op);

    case Opcode::kThreadIdx:
      return ambient(InitKind::kThreadIdx, axis());
    case Opcode::kClusterRank:
      return ambient(InitKind::kClusterRank, 0);
    case Opcode::kBlockIdx:
      return ambient(InitKind::kBlockIdx, axis());
    case Opcode::kBlockDim:
      return ambient(InitKind::kBlockDim, axis());
    case Opcode::kGridDim:
      return ambient(InitKind::kGridDim, axis());
    case Opcode::kLaneId:
      return ambient(InitKind::kLaneId, 0);
    case Opcode::kWarpId:
      return ambient(InitKind::kWarpId, 0);

#define HEDDLE_OP(...)
#define HEDDLE_ELEMENTWISE(name, ...) case Opcode::k##name:
#include "heddle/ir/ops.def"
      return lower_elementwise(op);

    case Opcode::kBitcast:
    case Opcode::kAtLaunch:
    case Opcode::kExpect:
      return bind(op.result(), reg(op.a()));
    case Opcode::kPack:
    case Opcode::kSplat:
      return lower_pack(op);
    case Opcode::kE2m1Pack:
    case Opcode::kE2m1Unpack:
      return lower_e2m1(op);
    case Opcode::kExtract:
    case Opcode::kSlice: {
      Operand part = reg(op.a());
      part.delta +=
          static_cast<uint32_t>(op.attr_or(AttrKey::kIndex, 0)) * bytes_for(type(op.a()).scalar, 1);
      return bind(op.result(), part);
    }

    case Opcode::kExtent:
    case Opcode::kStride:
      return lower_index_query(op);
    case Opcode::kShared:
    case Opcode::kDynamicShared:
    case Opcode::kLocal:
    case Opcode::kTable:
    case Opcode::kSubview:
    case Opcode::kMapShared:
    case Opcode::kPointer:
      return lower_view(op);
    case Opcode::kAddress:
      bind(op.result(), new_reg(kI64Type));
      emit(address_handler(type(op.offset()).scalar == Scalar::kI64),
           {.dst = reg(op.result()),
            .a = reg(op.view()),
            .b = reg(op.offset()),
            .aux = static_cast<uint32_t>(bytes_of(type(op.view()).scalar))});
      return emit_poison(op.result(), {op.offset()});
    case Opcode::kBounds:
      return lower_bounds(op);
    case Opcode::kLoad:
    case Opcode::kStore:
    case Opcode::kAtomic:
    case Opcode::kAtomicCas:
    case Opcode::kAtomicLoad:
    case Opcode::kAtomicStore:
      return lower_access(op);
    case Opcode::kCopyAsync:
    case Opcode::kCopyAsyncIf:
      return lower_copy(op);
    case Opcode::kSharedBegin:
      return lower_shared_begin(op);
    case Opcode::kMbarrierInit:
    case Opcode::kMbarrierInval:
    case Opcode::kMbarrierArrive:
    case Opcode::kMbarrierExpectTx:
    case Opcode::kMbarrierAnnounceTx:
    case Opcode::kMbarrierWait:
    case Opcode::kMbarrierTest:
    case Opcode::kCopyArrive:
      return lower_mbarrier(op);
    case Opcode::kBulkLoad:
    case Opcode::kBulkCopy:
    case Opcode::kBulkStore:
    case Opcode::kBulkReduce:
      return lower_bulk(op);
    case Opcode::kStoreAsync:
      return lower_store_async(op);
    case Opcode::kTensorMapReplace:
      return lower_map_replace(op);
    case Opcode::kTmaLoad:
    case Opcode::kTmaLoadMulticast:
    case Opcode::kTmaLoadIm2col:
    case Opcode::kTmaStore:
    case Opcode::kTmaReduce:
    case Opcode::kTmaPrefetch:
      return lower_box(op);
    case Opcode::kAssumeUniform: {
      bind(op.result(), reg(op.a()));
      if (options_.checks && type(op.result()).is_scalar()) {
        emit(require_uniform_handler(bytes_of(type(op.result()).scalar)), {.a = reg(op.a())});
      }
      return;
    }
    case Opcode::kAssumeRange:
      return lower_assume_range(op);
    case Opcode::kUnreachable:
      emit(unreachable_handler(), {});
      return;
    case Opcode::kRequire:
    case Opcode::kLaunchGrid:
      return;  // the launch's, before anything runs
    // Elsewhere, copies and products are complete when they are issued.
    case Opcode::kBulkCommit:
    case Opcode::kBulkWait:
    case Opcode::kBulkWaitRead:
    case Opcode::kCopyCommit:
    case Opcode::kCopyWait:
    case Opcode::kFenceMbarrierInit:
      return watch_op(op);
    case Opcode::kFenceAsync:
      // What is watched is shared memory.
      if (op.attr(AttrKey::kSpace) != static_cast<int64_t>(FenceSpace::kGlobal)) watch_op(op);
      return;
    case Opcode::kBulkPrefetch:
    case Opcode::kTensorMap:
    case Opcode::kTensorMapPrefetch:
    case Opcode::kGridDependencyWait:
    case Opcode::kGridDependencyLaunch:
    case Opcode::kSetMaxRegisters:
    case Opcode::kPrefetch:
    case Opcode::kNanoSleep:
    case Opcode::kPin:
      return;

    case Opcode::kBarrierSync:
    case Opcode::kBarrierArrive:
      require_defined(op.id(), DefinedUse::kLaneMask);
      emit(op.opcode == Opcode::kBarrierSync ? named_sync_handler() : named_arrive_handler(),
           {.a = reg(op.id()), .aux = static_cast<uint32_t>(op.attr_or(AttrKey::kThreads, 0))});
      return;
    case Opcode::kClusterArrive:
      emit(cluster_arrive_handler(), {.aux = is_relaxed(op) ? 1u : 0u});
      return;
    case Opcode::kClusterWait:
      emit(cluster_wait_handler(), {});
      return;
    case Opcode::kBarrier:
      emit(barrier_handler(), {});
      return;
    case Opcode::kShflIdx:
    case Opcode::kShflUp:
    case Opcode::kShflDown:
    case Opcode::kShflXor:
    case Opcode::kVoteAny:
    case Opcode::kVoteAll:
    case Opcode::kVoteUni:
    case Opcode::kBallot:
    case Opcode::kMatchAny:
    case Opcode::kMatchAll:
    case Opcode::kRedux:
    case Opcode::kElect:
    case Opcode::kWarpSync:
      return lower_collective(op);
    case Opcode::kActiveMask:
      bind(op.result(), new_reg(type(op.result())));
      emit(active_mask_handler(), {.dst = reg(op.result())}, {.ops = 1});
      return;
    case Opcode::kLdMatrix:
    case Opcode::kStMatrix:
      return lower_matrices(op);
    case Opcode::kAssert: {
      require_defined(op.condition(), DefinedUse::kAssert);
      const StringId message{static_cast<uint32_t>(op.attr_or(AttrKey::kMessage, 0))};
      emit(assert_handler(), {.a = reg(op.condition()), .aux = text(kernel_.text(message))});
      return;
    }

    case Opcode::kTrap:
      emit(trap_handler(), {});
      return;
    case Opcode::kPrintf:
      return lower_printf(op);
    case Opcode::kInlinePtx:
    case Opcode::kInlinePtxVolatile:
      return lower_inline_ptx(op);
    case Opcode::kClock:
    case Opcode::kGlobalTimer:
      bind(op.result(), new_reg(type(op.result())));
      emit(clock_handler(), {.dst = reg(op.result())});
      return;

    case Opcode::kMma:
      return lower_mma(op);
    case Opcode::kSmemDesc:
      return lower_descriptor(op);
    case Opcode::kWgmmaBegin:
      return lower_wgmma_begin(op);
    case Opcode::kWgmma:
      return lower_wgmma(op);
    case Opcode::kWgmmaWait:
      for (size_t i = 0; i < op.results.size(); ++i) bind(op.results[i], reg(op.fragments()[i]));
      emit(warp_sync_handler(), {});
      return watch_op(op);
    case Opcode::kWgmmaCommit:
      emit(warp_sync_handler(), {});
      return watch_op(op);
  }
  lower_custom(op);
}

StatusOr<Program> compile(const Kernel& kernel, const CompileOptions& options) {
  return Lowering(kernel, options).run();
}

const std::string& Program::name() const { return code_->name; }
Dim3 Program::block() const { return code_->block; }
int Program::param_bytes() const { return code_->param_bytes; }
bool Program::checks() const { return code_->checked; }
int Program::instruction_count() const { return static_cast<int>(code_->instrs.size()); }
int64_t Program::register_bytes() const { return code_->register_bytes; }

}  // namespace heddle::ir::interp
