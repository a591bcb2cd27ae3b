// What single ops ask for beyond their row of the op table: which op has which rule.

#include <algorithm>
#include <array>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "heddle/ir/verify/rules_internal.h"

namespace heddle::ir {
namespace {

// The rule of ops whose row says it all.
void row_suffices(RuleContext&) {}

struct Table {
  std::array<Rule, kOpcodeCount> rules{};
  // Which ops have one: sanitized builds compare no addresses of functions at compile time.
  std::array<bool, kOpcodeCount> stated{};
};

constexpr Table kTable = [] {
  Table table;
  const auto rule = [&](Opcode opcode) -> Rule& {
    table.stated[static_cast<size_t>(opcode)] = true;
    return table.rules[static_cast<size_t>(opcode)];
  };
  const auto row_suffices_for = [&](std::initializer_list<Opcode> opcodes) {
    for (const Opcode opcode : opcodes) rule(opcode) = row_suffices;
  };
#define HEDDLE_OP(...)
#define HEDDLE_ELEMENTWISE(name, ...) rule(Opcode::k##name) = row_suffices;
#include "heddle/ir/ops.def"
  row_suffices_for({Opcode::kYield, Opcode::kWhile, Opcode::kIf});
  row_suffices_for({Opcode::kThreadIdx, Opcode::kBlockIdx, Opcode::kBlockDim, Opcode::kGridDim,
                    Opcode::kLaneId, Opcode::kWarpId, Opcode::kClusterRank});
  row_suffices_for({Opcode::kCopyCommit, Opcode::kCopyWait, Opcode::kBulkCommit, Opcode::kBulkWait,
                    Opcode::kBulkWaitRead, Opcode::kFenceMbarrierInit, Opcode::kFenceAsync});
  row_suffices_for(
      {Opcode::kGridDependencyWait, Opcode::kGridDependencyLaunch, Opcode::kSetMaxRegisters});
  row_suffices_for(
      {Opcode::kBarrier, Opcode::kClusterArrive, Opcode::kClusterWait, Opcode::kWarpSync});
  row_suffices_for({Opcode::kShflIdx, Opcode::kShflUp, Opcode::kShflDown, Opcode::kShflXor,
                    Opcode::kVoteAny, Opcode::kVoteAll, Opcode::kVoteUni, Opcode::kBallot,
                    Opcode::kMatchAny, Opcode::kMatchAll, Opcode::kElect, Opcode::kActiveMask});
  row_suffices_for({Opcode::kWgmmaCommit, Opcode::kWgmmaWait});
  row_suffices_for({Opcode::kAssumeUniform, Opcode::kExpect, Opcode::kUnreachable});
  row_suffices_for(
      {Opcode::kAssert, Opcode::kTrap, Opcode::kClock, Opcode::kGlobalTimer, Opcode::kNanoSleep});

  rule(Opcode::kConst) = check_const;
  rule(Opcode::kUndef) = check_undef;
  rule(Opcode::kVar) = check_var;
  rule(Opcode::kVarLoad) = check_var_load;
  rule(Opcode::kVarStore) = check_var_store;
  rule(Opcode::kFor) = check_for;
  rule(Opcode::kConvertRounded) = check_convert_rounded;
  rule(Opcode::kE2m1Pack) = check_e2m1_pack;
  rule(Opcode::kE2m1Unpack) = check_e2m1_unpack;
  rule(Opcode::kBitcast) = check_bitcast;
  rule(Opcode::kPack) = check_pack;
  rule(Opcode::kExtract) = check_extract;
  rule(Opcode::kSlice) = check_slice;
  rule(Opcode::kSplat) = check_splat;
  rule(Opcode::kAssumeRange) = check_assume_range;
  rule(Opcode::kAtLaunch) = check_at_launch;
  rule(Opcode::kRequire) = check_require;
  rule(Opcode::kLaunchGrid) = check_launch_grid;

  rule(Opcode::kExtent) = check_dim;
  rule(Opcode::kStride) = check_dim;
  rule(Opcode::kShared) = check_shared;
  rule(Opcode::kLocal) = check_local;
  rule(Opcode::kTable) = check_table;
  rule(Opcode::kDynamicShared) = check_dynamic_shared;
  rule(Opcode::kPointer) = check_pointer;
  rule(Opcode::kAddress) = check_address;
  rule(Opcode::kSubview) = check_subview;
  rule(Opcode::kBounds) = check_bounds;
  rule(Opcode::kMapShared) = check_map_shared;

  rule(Opcode::kLoad) = check_load;
  rule(Opcode::kStore) = check_store;
  rule(Opcode::kPrefetch) = check_prefetch;

  rule(Opcode::kAtomic) = check_atomic;
  rule(Opcode::kAtomicCas) = check_atomic_cas;
  rule(Opcode::kAtomicLoad) = check_atomic_load;
  rule(Opcode::kAtomicStore) = check_atomic_store;
  rule(Opcode::kFence) = check_fence;

  rule(Opcode::kCopyAsync) = check_copy_async;
  rule(Opcode::kCopyAsyncIf) = check_copy_async;
  rule(Opcode::kMbarrierInit) = check_own_mbarrier;
  rule(Opcode::kMbarrierWait) = check_own_mbarrier;
  rule(Opcode::kMbarrierArrive) = check_any_mbarrier;
  rule(Opcode::kMbarrierExpectTx) = check_any_mbarrier;
  rule(Opcode::kBulkLoad) = check_bulk_load;
  rule(Opcode::kBulkCopy) = check_bulk_copy;
  rule(Opcode::kBulkStore) = check_bulk_store;
  rule(Opcode::kBulkReduce) = check_bulk_reduce;
  rule(Opcode::kBulkPrefetch) = check_bulk_prefetch;

  rule(Opcode::kBarrierSync) = check_named_barrier;
  rule(Opcode::kBarrierArrive) = check_named_barrier;
  rule(Opcode::kRedux) = check_redux;
  rule(Opcode::kLdMatrix) = check_ldmatrix;
  rule(Opcode::kStMatrix) = check_stmatrix;
  rule(Opcode::kSmemDesc) = check_smem_desc;
  rule(Opcode::kWgmmaBegin) = check_wgmma_begin;
  rule(Opcode::kWgmma) = check_wgmma;

  rule(Opcode::kPrintf) = check_printf;
  rule(Opcode::kInlinePtx) = check_inline_ptx;
  rule(Opcode::kInlinePtxVolatile) = check_inline_ptx;
  return table;
}();
static_assert(std::find(kTable.stated.begin(), kTable.stated.end(), false) == kTable.stated.end(),
              "whoever adds an op says whether its row suffices");

}  // namespace

void verify_rules(Verification& v, OpId op) {
  RuleContext c(v, op);
  kTable.rules[static_cast<size_t>(c.op().opcode)](c);
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
