// Which emitter function prints each op.
#include "heddle/codegen/ptx.h"

#include "absl/strings/str_cat.h"
#include "heddle/codegen/ptx_emitter.h"
#include "heddle/ir/check.h"
#include "heddle/ir/launch/launch_program.h"
#include "heddle/ir/text/printer.h"

namespace heddle::codegen {
namespace {

using ir::Opcode;

// ptxas takes no more static shared memory than this.
constexpr int kMaxStaticShared = 48 * 1024;

}  // namespace

Emitter::Emitter(ir::Analyses& analyses, const PtxOptions& options)
    : kernel_(analyses.kernel()),
      options_(options),
      target_(*kernel_.target),
      analyses_(analyses),
      jumps_(kernel_, analyses_),
      plan_(kernel_, analyses_, jumps_, options.device_checks),
      params_(launch_layout(kernel_, [this](OpId id) { return plan_.needed(id); })),
      shared_(shared_layout(kernel_)),
      locals_(local_layout(kernel_)),
      has_dynamic_shared_(has_op(kernel_, Opcode::kDynamicShared)),
      starts_early_(has_op(kernel_, Opcode::kGridDependencyWait)),
      shared_is_dynamic_(shared_.bytes > kMaxStaticShared || has_dynamic_shared_),
      name_(ptx_identifier(kernel_.name())),
      first_(kernel_.value_count()),
      defined_(kernel_.value_count()),
      view_index_(kernel_.value_count(), -1),
      param_addresses_(kernel_.params().size()),
      version_(kernel_.target->ptx_version) {
  uint32_t operands = 0;
  for (uint32_t i = 0; i < first_.size(); ++i) {
    first_[i] = operands;
    operands += static_cast<uint32_t>(layout_of(type(ValueId{i})).count);
  }
  pool_.resize(operands);
  body_.reserve(64 * kernel_.op_count());
}

StatusOr<PtxModule> Emitter::run() {
  if (kernel_.cluster.count() > 1 && !target_has(ir::Feature::kClusters)) {
    ir::Lack lack = lack_of(target_, ir::Feature::kClusters, "launch without a cluster");
    ir::Diagnostic& found = diagnostics_.emplace_back();
    found.message = std::move(lack.message);
    found.fix = std::move(lack.fix);
  }
  if (params_.bytes > ir::kMaxParamBytes) {
    ir::Diagnostic& found = diagnostics_.emplace_back();
    found.message =
        absl::StrCat("the parameters and what the host computes from them take ", params_.bytes,
                     " bytes, but a launch passes at most ", ir::kMaxParamBytes);
    found.fix = absl::StrCat("divide by fewer than ", params_.at_launch.size() / 3,
                             " different numbers of the arguments");
  }
  load_params();
  emit_region(kernel_.body());
  out_->set_op(OpId::kNone);
  out_->instruction("ret");
  if (!diagnostics_.empty()) {
    return ir::to_status(absl::StrCat("kernel '", kernel_.name(), "'"), diagnostics_);
  }
  return assemble_module();
}

void Emitter::set_current_op(OpId id) {
  out_->set_op(id);
  const ir::LocId loc_id = kernel_.op(id).loc;
  if (!options_.line_info || !valid(loc_id) || loc_id == loc_) return;
  loc_ = loc_id;
  const ir::Loc loc = kernel_.loc(loc_id);
  if (loc.file.empty()) return;
  auto file = std::find(files_.begin(), files_.end(), loc.file);
  if (file == files_.end()) file = files_.insert(files_.end(), loc.file);
  out_->set_place(static_cast<int>(file - files_.begin()) + 1, loc.line);
}

void Emitter::error(OpId id, std::string message, std::string fix) {
  const ir::Loc loc = kernel_.loc(id);
  ir::Diagnostic& found = diagnostics_.emplace_back();
  found.place = {std::string(loc.file), loc.line};
  found.message = std::move(message);
  found.fix = std::move(fix);
  found.op = print_op(kernel_, id);
}

// Whether the target has the op for its type; an error where it does not. The PTX version follows.
bool Emitter::is_supported(OpId id, const Op& op) {
  const ir::Targets& targets = info(op).targets;
  const auto scalar_of = [&](const auto& values) {
    return values.empty() ? Scalar::kNone : type(values.front()).scalar;
  };
  use(targets.of(scalar_of(op.operands)));
  use(targets.of(scalar_of(op.results)));
  const std::optional<Scalar> lacking = lacking_type(kernel_, op);
  if (!lacking) return true;
  const bool has_type = info(op).data_class != ir::DataClass::kNone;
  ir::Lack lack =
      lack_of(target_, targets.of(*lacking), has_type ? "convert to f32 first" : "do without it",
              absl::StrCat(info(op).mnemonic, has_type ? " of " : "",
                           has_type ? ir::info(*lacking).name : absl::string_view()));
  error(id, std::move(lack.message), std::move(lack.fix));
  for (const ValueId result : op.results) {
    if (type(result).is_view()) {
      add_view(result).base = fresh(RegClass::kB32);
    } else {
      define(result);
    }
  }
  return false;
}

void Emitter::emit_region(RegionId region) {
  const size_t mark = cache_.mark();
  wgmma_fenced_ = false;
  for (const OpId id : kernel_.ops(region)) {
    if (!plan_.needed(id)) continue;
    const Op& op = kernel_.op(id);
    // Ways may lead into an `if` that control does not come to.
    if (!reachable_ && op.opcode != Opcode::kIf && !JumpPlan::prints_nothing(op)) continue;
    set_current_op(id);
    if (is_supported(id, op)) emit_op(id, op);
  }
  cache_.forget_since(mark);
}

void Emitter::emit_op(OpId id, const Op& op) {
  switch (op.opcode) {
    case Opcode::kConst:
      return emit_const(op);
    case Opcode::kUndef:
      define(op.result());
      return;
    case Opcode::kVar:
    case Opcode::kVarLoad:
    case Opcode::kVarStore:
      return error(id, "a variable has not been turned into values",
                   "run the pass promote-vars before the kernel is printed as PTX");
    case Opcode::kYield:
      return;  // by the op that owns the region
    case Opcode::kFor:
      return emit_for(id, op);
    case Opcode::kWhile:
      return emit_while(id, op);
    case Opcode::kIf:
      return emit_if(id, op);
    case Opcode::kThreadIdx:
      elements(op.result())[0] = coordinate(Entry::kTidX, *op.attr(ir::AttrKey::kAxis));
      return;
    case Opcode::kBlockIdx:
      elements(op.result())[0] = coordinate(Entry::kCtaX, *op.attr(ir::AttrKey::kAxis));
      return;
    case Opcode::kClusterRank:
      return out_->instruction("mov.u32 ", define(op.result())[0], ", %cluster_ctarank");
    case Opcode::kBlockDim:
      elements(op.result())[0] = extent_of_block(*op.attr(ir::AttrKey::kAxis));
      return;
    case Opcode::kGridDim:
      elements(op.result())[0] = coordinate(Entry::kNctaX, *op.attr(ir::AttrKey::kAxis));
      return;
    case Opcode::kLaneId:
      elements(op.result())[0] = entry(Entry::kLane);
      return;
    case Opcode::kWarpId:
      elements(op.result())[0] = entry(Entry::kWarp);
      return;
#define HEDDLE_OP(...)
#define HEDDLE_ELEMENTWISE(name, ...) case Opcode::k##name:
#include "heddle/ir/ops.def"
      return emit_elementwise(op);
    case Opcode::kBitcast:
      return rename(op);
    case Opcode::kE2m1Pack:
      return emit_e2m1_pack(op);
    case Opcode::kE2m1Unpack:
      return emit_e2m1_unpack(op);
    case Opcode::kPack:
      return emit_pack(op);
    case Opcode::kExtract:
    case Opcode::kSlice:
      return emit_extract(op);
    case Opcode::kSplat:
      return emit_splat(op);
    case Opcode::kExtent:
    case Opcode::kStride:
      return emit_layout_query(op);
    case Opcode::kShared:
      return emit_shared(id, op);
    case Opcode::kDynamicShared:
      return emit_dynamic_shared(op);
    case Opcode::kLocal:
      return emit_local(id, op);
    case Opcode::kTable:
      return emit_table(op);
    case Opcode::kSubview:
      return emit_subview(id, op);
    case Opcode::kPointer:
      return emit_pointer(op);
    case Opcode::kAddress:
      return emit_address(id, op);
    case Opcode::kMapShared:
      return emit_map_shared(op);
    case Opcode::kBounds:
      return emit_bounds(op);
    case Opcode::kLoad:
      return emit_load(id, op);
    case Opcode::kStore:
      return emit_store(id, op);
    case Opcode::kAtomic:
    case Opcode::kAtomicCas:
      return emit_atomic(id, op);
    case Opcode::kAtomicLoad:
    case Opcode::kAtomicStore:
      return emit_atomic_access(id, op);
    case Opcode::kPrefetch:
      return emit_prefetch(id, op);
    case Opcode::kFence:
      return emit_fence(op);
    case Opcode::kSharedBegin:
      return;  // for the interpreter, and for passes
    case Opcode::kMbarrierInit:
    case Opcode::kMbarrierInval:
    case Opcode::kMbarrierArrive:
    case Opcode::kMbarrierExpectTx:
    case Opcode::kMbarrierAnnounceTx:
    case Opcode::kMbarrierTest:
    case Opcode::kCopyArrive:
      return emit_mbarrier(id, op);
    case Opcode::kMbarrierWait:
      return emit_mbarrier_wait(id, op);
    case Opcode::kBulkLoad:
    case Opcode::kBulkCopy:
    case Opcode::kBulkStore:
    case Opcode::kBulkReduce:
      return emit_bulk(op);
    case Opcode::kStoreAsync:
      return emit_store_async(id, op);
    case Opcode::kTensorMapReplace:
      return emit_tensor_map_replace(op);
    case Opcode::kTensorMap:
      return emit_tensor_map(id, op);
    case Opcode::kTmaLoad:
    case Opcode::kTmaLoadMulticast:
    case Opcode::kTmaLoadIm2col:
      return emit_tma_load(op);
    case Opcode::kTmaStore:
    case Opcode::kTmaReduce:
      return emit_tma_store(op);
    case Opcode::kTmaPrefetch:
      return emit_tma_prefetch(op);
    case Opcode::kTensorMapPrefetch:
      return out_->instruction("prefetch.tensormap [", elements(op.map())[0], "]");
    case Opcode::kBulkPrefetch:
      return emit_bulk_prefetch(op);
    case Opcode::kBulkCommit:
      return out_->instruction("cp.async.bulk.commit_group");
    case Opcode::kBulkWait:
      return out_->instruction("cp.async.bulk.wait_group ", *op.attr(ir::AttrKey::kGroups));
    case Opcode::kBulkWaitRead:
      return out_->instruction("cp.async.bulk.wait_group.read ", *op.attr(ir::AttrKey::kGroups));
    case Opcode::kFenceMbarrierInit:
      return emit_mbarrier_fence();
    case Opcode::kGridDependencyWait:
      return out_->instruction("griddepcontrol.wait");
    case Opcode::kGridDependencyLaunch:
      return out_->instruction("griddepcontrol.launch_dependents");
    case Opcode::kSetMaxRegisters:
      return emit_set_max_registers(op);
    case Opcode::kAssumeUniform:
    case Opcode::kAssumeRange:
    case Opcode::kExpect:
      return rename(op);
    case Opcode::kAtLaunch:
      elements(op.result())[0] = launch_slot(id);
      return;
    case Opcode::kUnreachable:
    case Opcode::kRequire:
    case Opcode::kLaunchGrid:
      return;
    case Opcode::kCopyAsync:
    case Opcode::kCopyAsyncIf:
      return emit_copy_async(id, op);
    case Opcode::kCopyCommit:
      return out_->instruction("cp.async.commit_group");
    case Opcode::kCopyWait:
      return out_->instruction("cp.async.wait_group ", *op.attr(ir::AttrKey::kGroups));
    case Opcode::kBarrierSync:
    case Opcode::kBarrierArrive:
      return emit_named_barrier(op);
    case Opcode::kClusterArrive:
      if (is_relaxed(op)) use(ir::Feature::kRelaxedClusterArrivals);
      return out_->instruction("barrier.cluster.arrive", is_relaxed(op) ? ".relaxed" : "",
                               ".aligned");
    case Opcode::kClusterWait:
      return out_->instruction("barrier.cluster.wait.aligned");
    case Opcode::kBarrier:
      return out_->instruction("bar.sync 0");
    case Opcode::kShflIdx:
    case Opcode::kShflUp:
    case Opcode::kShflDown:
    case Opcode::kShflXor:
      return emit_shuffle(op);
    case Opcode::kVoteAny:
    case Opcode::kVoteAll:
    case Opcode::kVoteUni:
      return emit_vote(op);
    case Opcode::kBallot:
      return emit_ballot(op);
    case Opcode::kMatchAny:
    case Opcode::kMatchAll:
      return emit_match(op);
    case Opcode::kRedux:
      return emit_redux(op);
    case Opcode::kElect:
      return emit_elect(op);
    case Opcode::kActiveMask:
      return out_->instruction("activemask.b32 ", define(op.result())[0]);
    case Opcode::kWarpSync:
      return emit_warp_sync(op);
    case Opcode::kLdMatrix:
    case Opcode::kStMatrix:
      return emit_matrices(id, op);
    case Opcode::kAssert:
      return emit_assert(id, op);
    case Opcode::kTrap:
      return out_->instruction("trap");
    case Opcode::kPrintf:
      return emit_printf(op);
    case Opcode::kInlinePtx:
    case Opcode::kInlinePtxVolatile:
      return emit_inline_ptx(op);
    case Opcode::kClock:
      return out_->instruction("mov.u64 ", define(op.result())[0], ", %clock64");
    case Opcode::kGlobalTimer:
      return out_->instruction("mov.u64 ", define(op.result())[0], ", %globaltimer");
    case Opcode::kNanoSleep:
      return out_->instruction("nanosleep.u32 ", elements(op.duration())[0]);
    case Opcode::kPin:
      // It raises no event, since the mask names none; ptxas moves nothing past it.
      return out_->instruction("pmevent.mask 0");
    case Opcode::kMma:
      return emit_mma(op);
    case Opcode::kSmemDesc:
      return emit_smem_desc(id, op);
    case Opcode::kWgmmaBegin:
      return emit_wgmma_begin(op);
    case Opcode::kWgmma:
      return emit_wgmma(id, op);
    case Opcode::kWgmmaCommit:
      return emit_wgmma_commit();
    case Opcode::kWgmmaWait:
      return emit_wgmma_wait(id, op);
    case Opcode::kFenceAsync:
      return emit_fence_async(op);
  }
  emit_custom(id, op);
}

StatusOr<PtxModule> emit_ptx(const ir::Kernel& kernel, const PtxOptions& options) {
  ir::Analyses analyses(kernel);
  return emit_ptx(analyses, options);
}

StatusOr<PtxModule> emit_ptx(ir::Analyses& analyses, const PtxOptions& options) {
  return Emitter(analyses, options).run();
}

}  // namespace heddle::codegen
