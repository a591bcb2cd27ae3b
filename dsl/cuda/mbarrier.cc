#include "heddle/dsl/cuda/mbarrier.h"

#include "heddle/dsl/trace/trace_internal.h"

namespace heddle::detail {

using ir::AttrKey;
using ir::Opcode;

void emit_mbarrier(ir::Opcode opcode, Node barriers, Node index, const Node* value, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return report(loc, "an mbarrier outside a kernel", "use it in the lambda");
  trace->set_place(loc);
  absl::InlinedVector<ir::ValueId, 3> operands = {trace->use(barriers, loc),
                                                  trace->use(index, loc)};
  if (value != nullptr) operands.push_back(trace->use(*value, loc));
  trace->builder().create_op(opcode, operands);
}

void emit_set_max_registers(int count, bool increase, SourceLoc loc) {
  const ir::Attr attrs[] = {{AttrKey::kCount, count}, {AttrKey::kIncrease, increase ? 1 : 0}};
  record(Opcode::kSetMaxRegisters, {}, {}, attrs, loc);
}

}  // namespace heddle::detail
