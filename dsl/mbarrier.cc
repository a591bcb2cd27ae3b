#include "heddle/dsl/mbarrier.h"

#include "heddle/dsl/internal/access.h"

namespace heddle::detail {
namespace {

using ir::AttrKey;
using ir::Opcode;

// The view that starts at a place, of one element: the copy says how far it goes.
ir::ValueId start_of(Trace& trace, const Access& place, ir::Scalar scalar) {
  const AccessOperands p = record_access(trace, place, scalar_type(scalar), place.loc);
  ir::Type view = trace.kernel().type(p.view);
  view.rank = 1;
  ir::Builder& b = trace.builder();
  return b.create(Opcode::kSubview, {p.view, p.offset, b.constant_int(ir::kI32Type, 1)}, view);
}

ir::ValueId bytes_of(Trace& trace, Node elements, ir::Scalar scalar, SourceLoc loc) {
  ir::Builder& b = trace.builder();
  const ir::ValueId size = b.constant_int(ir::kI32Type, ir::bytes_of(scalar));
  return b.create(Opcode::kBitcast, {b.create(Opcode::kMul, {trace.use(elements, loc), size})},
                  ir::kU32Type);
}

Trace* current(SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) report(loc, "an mbarrier or bulk copy outside a kernel", "write it in one");
  return trace;
}

}  // namespace

void emit_mbarrier(ir::Opcode opcode, Node barriers, Node index, const Node* value, SourceLoc loc) {
  Trace* const trace = current(loc);
  if (trace == nullptr) return;
  trace->set_place(loc);
  absl::InlinedVector<ir::ValueId, 3> operands = {trace->use(barriers, loc),
                                                  trace->use(index, loc)};
  if (value != nullptr) operands.push_back(trace->use(*value, loc));
  trace->builder().create_op(opcode, operands);
}

void emit_bulk_load(const Access& to, const Access& from, ir::Scalar scalar, Node elements,
                    Node barriers, Node index) {
  Trace* const trace = current(to.loc);
  if (trace == nullptr) return;
  const ir::ValueId target = start_of(*trace, to, scalar), source = start_of(*trace, from, scalar);
  ir::Builder& b = trace->builder();
  const ir::ValueId words = trace->use(barriers, to.loc);
  const ir::ValueId barrier = b.create(
      Opcode::kSubview, {words, trace->use(index, to.loc), b.constant_int(ir::kI32Type, 1)},
      trace->kernel().type(words));
  b.create(Opcode::kBulkLoad,
           {target, source, bytes_of(*trace, elements, scalar, to.loc), barrier});
}

void emit_bulk_store(const Access& to, const Access& from, ir::Scalar scalar, Node elements) {
  Trace* const trace = current(to.loc);
  if (trace == nullptr) return;
  const ir::ValueId target = start_of(*trace, to, scalar), source = start_of(*trace, from, scalar);
  trace->builder().create(Opcode::kBulkStore,
                          {target, source, bytes_of(*trace, elements, scalar, to.loc)});
}

void emit_bulk_wait(int groups, SourceLoc loc) {
  const ir::Attr attr{AttrKey::kGroups, groups};
  record(Opcode::kBulkWait, {}, {}, absl::MakeConstSpan(&attr, 1), loc);
}

void emit_set_max_registers(int count, bool increase, SourceLoc loc) {
  const ir::Attr attrs[] = {{AttrKey::kCount, count}, {AttrKey::kIncrease, increase ? 1 : 0}};
  record(Opcode::kSetMaxRegisters, {}, {}, attrs, loc);
}

}  // namespace heddle::detail
