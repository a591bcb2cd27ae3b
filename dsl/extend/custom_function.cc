#include "heddle/dsl/extend/custom_function.h"

#include "heddle/dsl/trace/trace_internal.h"

namespace heddle::detail {

void emit_custom(const ir::RegisteredOp& op, absl::Span<const Node> inputs,
                 absl::Span<const NodeType> types, absl::Span<Node> outputs, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) {
    for (size_t i = 0; i < types.size(); ++i) {
      outputs[i] = made_outside(types[i], op.mnemonic(), loc);
    }
    if (outputs.empty()) {
      report(loc, "an op from outside, outside a kernel", "write it in the lambda");
    }
    return;
  }
  if (!op.status().ok()) {
    trace->report(loc, std::string(op.status().message()), "mend its CustomOp");
    for (size_t i = 0; i < types.size(); ++i) outputs[i] = {.type = types[i]};
    return;
  }
  trace->record(op.opcode(), inputs, types, {}, outputs.data(), loc);
}

}  // namespace heddle::detail
