#include "heddle/dsl/extend/replace_op.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/trace/trace_internal.h"
#include "heddle/ir/diagnostic.h"

namespace heddle::detail {

StatusOr<bool> replace_ops(ir::PassContext& context, ir::Opcode opcode,
                           absl::Span<const NodeType> inputs, NodeType output,
                           absl::FunctionRef<Node(const Node* inputs)> body) {
  ir::Kernel& kernel = context.kernel();
  std::vector<ir::OpId> found;
  kernel.walk([&](ir::OpId id) {
    const ir::Op& op = kernel.op(id);
    if (op.opcode != opcode || op.operands.size() != inputs.size() || op.results.size() != 1)
      return;
    bool fits = kernel.type(op.result()) == to_type(output);
    for (size_t i = 0; i < inputs.size(); ++i) {
      fits = fits && kernel.type(op.operands[i]) == to_type(inputs[i]);
    }
    if (fits) found.push_back(id);
  });
  for (const ir::OpId id : found) {
    ir::Diagnostics wrong;
    bool abandoned = false;
    {
      Trace trace(kernel, wrong);
      trace.builder().set_insertion_before(id);
      trace.builder().set_loc(kernel.op(id).loc);
      std::vector<Node> nodes;
      for (const ir::ValueId operand : kernel.op(id).operands) nodes.push_back(trace.node(operand));
      try {
        const ir::ValueId result = trace.use(body(nodes.data()), {});
        trace.exits().lower();
        kernel.replace_all_uses(kernel.op(id).result(), result);
        kernel.erase(id);
      } catch (const Trace::Abandoned&) {
        abandoned = true;
      }
    }
    if (abandoned || !wrong.empty()) {
      return ir::to_status(absl::StrCat("what replaces '", ir::info(opcode).mnemonic, "'"), wrong);
    }
  }
  return !found.empty();
}

}  // namespace heddle::detail
