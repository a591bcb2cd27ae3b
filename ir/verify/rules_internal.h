// The inside of verify_rules: what rules see of an op and how they report. rules.cc says
// which op has which rule; the files named below hold the rules.
//
// A rule is what an op asks for beyond its row of the op table, which has been verified: operands,
// results and attributes are there, and each is of its role and in its range.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/op_info.h"
#include "heddle/ir/target.h"
#include "heddle/ir/verify/verifier_internal.h"

namespace heddle::ir {

// The op at hand.
class RuleContext {
 public:
  RuleContext(Verification& v, OpId id) : v_(v), id_(id), op_(v.kernel().op(id)) {}

  const Kernel& kernel() const { return v_.kernel(); }
  const Target& target() const { return *kernel().target; }
  Stage stage() const { return v_.stage(); }
  IntAnalysis& ints() { return v_.analyses().get<Ints>(); }

  const Op& op() const { return op_; }
  Type type(ValueId value) const { return kernel().type(value); }
  Type result_type() const { return kernel().type(op_.result()); }

  std::optional<int64_t> attr(AttrKey key) const { return op_.attr(key); }
  int64_t attr_or(AttrKey key, int64_t otherwise) const { return op_.attr_or(key, otherwise); }
  template <class Enum>
  Enum enum_attr(AttrKey key, Enum otherwise) const {
    return static_cast<Enum>(attr_or(key, static_cast<int64_t>(otherwise)));
  }
  // Of an attribute that is there.
  absl::string_view text_attr(AttrKey key) const {
    return kernel().text(StringId{static_cast<uint32_t>(*attr(key))});
  }

  // An error where the target lacks the feature, which `what` needs; see lack_of().
  void require(Feature feature, absl::string_view instead, absl::string_view what = {}) {
    if (has(target(), feature)) return;
    Lack lack = lack_of(target(), feature, instead, what);
    error(std::move(lack.message), std::move(lack.fix));
  }
  void error(std::string message, std::string fix = {}) {
    v_.error(id_, std::move(message), std::move(fix));
  }
  // "'load'", "%acc", "the result of 'load' is f32"; for messages.
  std::string quoted() const { return v_.quoted(id_); }
  std::string quoted(OpId op) const { return v_.quoted(op); }
  std::string name(ValueId value) { return v_.name(value); }
  std::string at_place(OpId op) const { return v_.at_place(op); }
  std::string result_text() const;

 private:
  Verification& v_;
  const OpId id_;
  const Op& op_;
};

// The rules, by the op that they are for.
using Rule = void (*)(RuleContext& c);

void check_const(RuleContext& c);  // rules_value.cc
void check_undef(RuleContext& c);
void check_var(RuleContext& c);
void check_var_load(RuleContext& c);
void check_var_store(RuleContext& c);
void check_for(RuleContext& c);
void check_convert_rounded(RuleContext& c);
void check_e2m1_pack(RuleContext& c);
void check_e2m1_unpack(RuleContext& c);
void check_bitcast(RuleContext& c);
void check_pack(RuleContext& c);
void check_extract(RuleContext& c);
void check_slice(RuleContext& c);
void check_splat(RuleContext& c);
void check_assume_range(RuleContext& c);
void check_at_launch(RuleContext& c);
void check_require(RuleContext& c);
void check_launch_grid(RuleContext& c);

void check_dim(RuleContext& c);  // rules_view.cc
void check_shared(RuleContext& c);
void check_shared_begin(RuleContext& c);
void check_local(RuleContext& c);
void check_table(RuleContext& c);
void check_dynamic_shared(RuleContext& c);
void check_pointer(RuleContext& c);
void check_address(RuleContext& c);
void check_subview(RuleContext& c);
void check_bounds(RuleContext& c);
void check_map_shared(RuleContext& c);

void check_load(RuleContext& c);  // rules_memory.cc
void check_store(RuleContext& c);
void check_prefetch(RuleContext& c);

void check_atomic(RuleContext& c);  // rules_atomic.cc
void check_atomic_cas(RuleContext& c);
void check_atomic_load(RuleContext& c);
void check_atomic_store(RuleContext& c);
void check_fence(RuleContext& c);

void check_copy_async(RuleContext& c);  // rules_async.cc
void check_own_mbarrier(RuleContext& c);
void check_mbarrier_arrival(RuleContext& c);
void check_cluster_arrive(RuleContext& c);
void check_mbarrier_wait(RuleContext& c);
void check_bulk_load(RuleContext& c);
void check_bulk_copy(RuleContext& c);
void check_store_async(RuleContext& c);
void check_bulk_store(RuleContext& c);
void check_bulk_reduce(RuleContext& c);
void check_bulk_prefetch(RuleContext& c);

void check_tensor_map(RuleContext& c);  // rules_tensor_map.cc
void check_tensor_map_replace(RuleContext& c);
void check_tma_load(RuleContext& c);
void check_tma_load_im2col(RuleContext& c);
void check_tma_store(RuleContext& c);
void check_tma_reduce(RuleContext& c);
void check_tma_prefetch(RuleContext& c);

void check_named_barrier(RuleContext& c);  // rules_collective.cc
void check_redux(RuleContext& c);
void check_ldmatrix(RuleContext& c);
void check_stmatrix(RuleContext& c);
void check_pin(RuleContext& c);

void check_mma(RuleContext& c);  // rules_mma.cc
void check_smem_desc(RuleContext& c);
void check_wgmma_begin(RuleContext& c);
void check_wgmma(RuleContext& c);

void check_printf(RuleContext& c);  // rules_text.cc
void check_inline_ptx(RuleContext& c);
void check_custom(RuleContext& c);

// What rules of several files ask.
constexpr bool is_shared(Type view) {
  return view.space == Space::kShared || view.space == Space::kSharedCluster;
}
// `what` ("store", "cache hint") needs a view that is writable, or in global memory.
void require_writable(RuleContext& c, ValueId view, absl::string_view what);
void require_global(RuleContext& c, ValueId view, absl::string_view what);

}  // namespace heddle::ir
