#include "heddle/dsl/cuda/atomic.h"

#include "heddle/dsl/access_internal.h"
#include "heddle/ir/atomic.h"

namespace heddle::detail {
namespace {

using ir::AttrKey;
using ir::Opcode;

static_assert(static_cast<int>(AtomicKind::kExchange) == static_cast<int>(ir::AtomicOp::kExch));
static_assert(static_cast<int>(MemoryOrder::seq_cst) == static_cast<int>(ir::MemoryOrder::kSeqCst));
static_assert(static_cast<int>(MemoryScope::system) == static_cast<int>(ir::MemoryScope::kSystem));

ir::Attr order_attr(Atomicity atomicity) {
  return {AttrKey::kOrder, static_cast<int64_t>(atomicity.order)};
}
ir::Attr scope_attr(Atomicity atomicity) {
  return {AttrKey::kScope, static_cast<int64_t>(atomicity.scope)};
}

// An op on elements of that type with these values between the view and the offset.
Node emit(Opcode opcode, const Access& place, NodeType type, absl::Span<const Node> values,
          absl::Span<const ir::Attr> attrs, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return made_outside(type, ir::info(opcode).mnemonic, loc);
  const AccessOperands p = record_access(*trace, place, type, loc);
  absl::InlinedVector<ir::ValueId, 5> operands = {p.view};
  for (const Node& value : values) operands.push_back(trace->use(value, loc));
  operands.push_back(p.offset);
  if (ir::valid(p.check)) operands.push_back(p.check);
  const ir::ValueId result = trace->create(opcode, operands, to_type(type), attrs);
  return ir::valid(result) ? trace->node(result) : Node{};
}

}  // namespace

Node emit_atomic(AtomicKind kind, const Access& place, const Node& value, Atomicity atomicity,
                 SourceLoc loc) {
  const ir::Attr attrs[] = {
      {AttrKey::kOp, static_cast<int64_t>(kind)}, order_attr(atomicity), scope_attr(atomicity)};
  return emit(Opcode::kAtomic, place, value.type, absl::MakeConstSpan(&value, 1), attrs, loc);
}

Node emit_compare_and_swap(const Access& place, const Node& expected, const Node& desired,
                           Atomicity atomicity, SourceLoc loc) {
  const Node values[] = {expected, desired};
  const ir::Attr attrs[] = {order_attr(atomicity), scope_attr(atomicity)};
  return emit(Opcode::kAtomicCas, place, desired.type, values, attrs, loc);
}

Node emit_atomic_load(const Access& place, NodeType type, Atomicity atomicity) {
  return emit(Opcode::kAtomicLoad, place, type, {}, {order_attr(atomicity), scope_attr(atomicity)},
              place.loc);
}

void emit_atomic_store(const Access& place, const Node& value, Atomicity atomicity, SourceLoc loc) {
  emit(Opcode::kAtomicStore, place, value.type, absl::MakeConstSpan(&value, 1),
       {order_attr(atomicity), scope_attr(atomicity)}, loc);
}

void emit_fence(Atomicity atomicity, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) {
    return report(loc, "a memory fence outside a kernel", "write it in the kernel's lambda");
  }
  trace->set_place(loc);
  trace->create(Opcode::kFence, {}, ir::Type::none(),
                {order_attr(atomicity), scope_attr(atomicity)});
}

}  // namespace heddle::detail
