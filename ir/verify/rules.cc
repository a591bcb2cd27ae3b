// What single ops ask for beyond their row of the op table: which op has which rule.

#include "absl/strings/str_cat.h"
#include "heddle/ir/custom_op.h"
#include "heddle/ir/op_table_internal.h"
#include "heddle/ir/verify/rules_internal.h"

namespace heddle::ir {
namespace {

// For the others, and for most elementwise ops, what their rows say suffices.
constexpr OpTable<Rule> kRules =
    op_table<Rule>(not_elementwise,
                   {
                       {Opcode::kConst, check_const},
                       {Opcode::kUndef, check_undef},
                       {Opcode::kVar, check_var},
                       {Opcode::kVarLoad, check_var_load},
                       {Opcode::kVarStore, check_var_store},
                       {Opcode::kFor, check_for},
                       {Opcode::kConvertRounded, check_convert_rounded},
                       {Opcode::kE2m1Pack, check_e2m1_pack},
                       {Opcode::kE2m1Unpack, check_e2m1_unpack},
                       {Opcode::kBitcast, check_bitcast},
                       {Opcode::kPack, check_pack},
                       {Opcode::kExtract, check_extract},
                       {Opcode::kSlice, check_slice},
                       {Opcode::kSplat, check_splat},
                       {Opcode::kAssumeRange, check_assume_range},
                       {Opcode::kAtLaunch, check_at_launch},
                       {Opcode::kRequire, check_require},
                       {Opcode::kLaunchGrid, check_launch_grid},
                       {Opcode::kExtent, check_dim},
                       {Opcode::kStride, check_dim},
                       {Opcode::kShared, check_shared},
                       {Opcode::kSharedBegin, check_shared_begin},
                       {Opcode::kLocal, check_local},
                       {Opcode::kTable, check_table},
                       {Opcode::kDynamicShared, check_dynamic_shared},
                       {Opcode::kPointer, check_pointer},
                       {Opcode::kAddress, check_address},
                       {Opcode::kSubview, check_subview},
                       {Opcode::kBounds, check_bounds},
                       {Opcode::kMapShared, check_map_shared},
                       {Opcode::kLoad, check_load},
                       {Opcode::kStore, check_store},
                       {Opcode::kPrefetch, check_prefetch},
                       {Opcode::kAtomic, check_atomic},
                       {Opcode::kAtomicCas, check_atomic_cas},
                       {Opcode::kAtomicLoad, check_atomic_load},
                       {Opcode::kAtomicStore, check_atomic_store},
                       {Opcode::kFence, check_fence},
                       {Opcode::kCopyAsync, check_copy_async},
                       {Opcode::kCopyAsyncIf, check_copy_async},
                       {Opcode::kMbarrierInit, check_own_mbarrier},
                       {Opcode::kMbarrierInval, check_own_mbarrier},
                       {Opcode::kMbarrierWait, check_mbarrier_wait},
                       {Opcode::kMbarrierTest, check_mbarrier_wait},
                       {Opcode::kMbarrierArrive, check_mbarrier_arrival},
                       {Opcode::kClusterArrive, check_cluster_arrive},
                       {Opcode::kMbarrierExpectTx, check_mbarrier_arrival},
                       {Opcode::kMbarrierAnnounceTx, check_mbarrier_arrival},
                       {Opcode::kCopyArrive, check_own_mbarrier},
                       {Opcode::kBulkLoad, check_bulk_load},
                       {Opcode::kBulkCopy, check_bulk_copy},
                       {Opcode::kStoreAsync, check_store_async},
                       {Opcode::kBulkStore, check_bulk_store},
                       {Opcode::kBulkReduce, check_bulk_reduce},
                       {Opcode::kBulkPrefetch, check_bulk_prefetch},
                       {Opcode::kTensorMap, check_tensor_map},
                       {Opcode::kTensorMapReplace, check_tensor_map_replace},
                       {Opcode::kTmaLoad, check_tma_load},
                       {Opcode::kTmaLoadMulticast, check_tma_load},
                       {Opcode::kTmaLoadIm2col, check_tma_load_im2col},
                       {Opcode::kTmaStore, check_tma_store},
                       {Opcode::kTmaReduce, check_tma_reduce},
                       {Opcode::kTmaPrefetch, check_tma_prefetch},
                       {Opcode::kBarrierSync, check_named_barrier},
                       {Opcode::kBarrierArrive, check_named_barrier},
                       {Opcode::kRedux, check_redux},
                       {Opcode::kLdMatrix, check_ldmatrix},
                       {Opcode::kStMatrix, check_stmatrix},
                       {Opcode::kMma, check_mma},
                       {Opcode::kSmemDesc, check_smem_desc},
                       {Opcode::kWgmmaBegin, check_wgmma_begin},
                       {Opcode::kWgmma, check_wgmma},
                       {Opcode::kPin, check_pin},
                       {Opcode::kPrintf, check_printf},
                       {Opcode::kInlinePtx, check_inline_ptx},
                       {Opcode::kInlinePtxVolatile, check_inline_ptx},
                   },
                   {Opcode::kYield,
                    Opcode::kWhile,
                    Opcode::kIf,
                    Opcode::kThreadIdx,
                    Opcode::kBlockIdx,
                    Opcode::kBlockDim,
                    Opcode::kGridDim,
                    Opcode::kLaneId,
                    Opcode::kWarpId,
                    Opcode::kClusterRank,
                    Opcode::kCopyCommit,
                    Opcode::kCopyWait,
                    Opcode::kBulkCommit,
                    Opcode::kBulkWait,
                    Opcode::kBulkWaitRead,
                    Opcode::kTensorMapPrefetch,
                    Opcode::kFenceMbarrierInit,
                    Opcode::kFenceAsync,
                    Opcode::kGridDependencyWait,
                    Opcode::kGridDependencyLaunch,
                    Opcode::kSetMaxRegisters,
                    Opcode::kBarrier,
                    Opcode::kClusterWait,
                    Opcode::kWarpSync,
                    Opcode::kShflIdx,
                    Opcode::kShflUp,
                    Opcode::kShflDown,
                    Opcode::kShflXor,
                    Opcode::kVoteAny,
                    Opcode::kVoteAll,
                    Opcode::kVoteUni,
                    Opcode::kBallot,
                    Opcode::kMatchAny,
                    Opcode::kMatchAll,
                    Opcode::kElect,
                    Opcode::kActiveMask,
                    Opcode::kWgmmaCommit,
                    Opcode::kWgmmaWait,
                    Opcode::kAssumeUniform,
                    Opcode::kExpect,
                    Opcode::kUnreachable,
                    Opcode::kAssert,
                    Opcode::kTrap,
                    Opcode::kClock,
                    Opcode::kGlobalTimer,
                    Opcode::kNanoSleep});

}  // namespace

void verify_rules(Verification& v, OpId op) {
  RuleContext c(v, op);
  const bool is_custom = custom_op(c.op().opcode) != nullptr;
  if (const Rule rule = is_custom ? check_custom : at(kRules, c.op().opcode)) rule(c);
}

std::string RuleContext::result_text() const {
  return absl::StrCat("the result of ", quoted(), " is ", to_string(result_type()));
}

void require_writable(RuleContext& c, ValueId view, absl::string_view what) {
  const Type type = c.type(view);
  if (type.read_only || type.space == Space::kParam || type.space == Space::kConst) {
    c.error(absl::StrCat("this ", what, " goes through ", c.name(view), ", which is read-only"),
            "declare the tensor without const, Tensor<T> instead of Tensor<const T>");
  }
}

void require_global(RuleContext& c, ValueId view, absl::string_view what) {
  if (c.type(view).space == Space::kGlobal) return;
  c.error(absl::StrCat("a ", what, " is for global memory, and ", c.name(view), " is in ",
                       name_of(c.type(view).space), " memory"),
          "leave it out");
}

}  // namespace heddle::ir
