#include "heddle/dsl/cuda/mbarrier.h"

#include "heddle/dsl/trace/trace_internal.h"
#include "heddle/ir/atomic.h"

namespace heddle::detail {

using ir::AttrKey;
using ir::Opcode;

Node emit_mbarrier(ir::Opcode opcode, const MbarrierPlace& place, const Node* value,
                   const MbarrierOrder& order) {
  if (Trace::current() == nullptr) {
    report(place.loc, "an mbarrier outside a kernel", "use it in the lambda");
  }
  absl::InlinedVector<Node, 3> operands = {place.words, place.index};
  if (value != nullptr) operands.push_back(*value);
  absl::InlinedVector<ir::Attr, 2> attrs;
  if (order.order) attrs.push_back({AttrKey::kOrder, static_cast<int64_t>(*order.order)});
  if (order.scope) attrs.push_back({AttrKey::kScope, static_cast<int64_t>(*order.scope)});
  const bool tests = opcode == Opcode::kMbarrierTest;
  return record(opcode, operands, tests ? scalar_type(ir::Scalar::kBool) : NodeType{}, attrs,
                place.loc);
}

static_assert(static_cast<int>(FenceSpace::all) == static_cast<int>(ir::FenceSpace::kAll));

void emit_fence_async(FenceSpace space, SourceLoc loc) {
  absl::InlinedVector<ir::Attr, 1> attrs;
  if (space != FenceSpace::shared) attrs.push_back({AttrKey::kSpace, static_cast<int64_t>(space)});
  record(Opcode::kFenceAsync, {}, {}, attrs, loc);
}

void emit_set_max_registers(int count, bool increase, SourceLoc loc) {
  const ir::Attr attrs[] = {{AttrKey::kCount, count}, {AttrKey::kIncrease, increase ? 1 : 0}};
  record(Opcode::kSetMaxRegisters, {}, {}, attrs, loc);
}

}  // namespace heddle::detail
