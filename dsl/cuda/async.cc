#include "heddle/dsl/cuda/async.h"

#include "absl/strings/str_cat.h"
#include "heddle/dsl/access_internal.h"

namespace heddle::detail {

using ir::AttrKey;
using ir::Opcode;

void emit_copy_async(const Access& to, const Access& from, ir::Scalar scalar, int width,
                     const Node* condition) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) {
    return report(to.loc, "an asynchronous copy outside a kernel", "write it in the lambda");
  }
  const int bytes = width * ir::bytes_of(scalar);
  if (bytes != 4 && bytes != 8 && bytes != 16) {
    return trace->report(to.loc,
                         absl::StrCat("an asynchronous copy of ", width, " x ",
                                      ir::info(scalar).name, ", which is ", bytes, " bytes"),
                         "it takes 4, 8 or 16 bytes: choose N so, or load and store instead");
  }
  const NodeType type = width == 1 ? scalar_type(scalar) : vector_type(scalar, width);
  absl::InlinedVector<ir::ValueId, 5> operands, checks;
  for (const Access* side : {&to, &from}) {
    const AccessOperands p = record_access(*trace, *side, type, side->loc);
    operands.push_back(part_of(*trace, p.view, p.offset, width));
    if (ir::valid(p.check)) checks.push_back(p.check);
  }
  if (condition != nullptr) operands.push_back(trace->use(*condition, to.loc));
  operands.insert(operands.end(), checks.begin(), checks.end());
  AccessAttrs attrs = copy_attrs(*trace, {&to, &from});
  attrs.push_back({AttrKey::kWidth, width});
  trace->create(condition == nullptr ? Opcode::kCopyAsync : Opcode::kCopyAsyncIf, operands,
                ir::Type::none(), attrs);
}

void emit_copy_wait(int groups, SourceLoc loc) {
  const ir::Attr attr{AttrKey::kGroups, groups};
  record(Opcode::kCopyWait, {}, {}, absl::MakeConstSpan(&attr, 1), loc);
}

void emit_pin(const Pinned& values, bool early_loads, SourceLoc loc) {
  const ir::Attr attr{AttrKey::kEarlyLoads, 1};
  record(Opcode::kPin, values.nodes(), {}, absl::MakeConstSpan(&attr, early_loads ? 1 : 0), loc);
}

void emit_named_barrier(ir::Opcode opcode, Node id, int threads, SourceLoc loc) {
  const ir::Attr attr{AttrKey::kThreads, threads};
  record(opcode, {id}, {}, absl::MakeConstSpan(&attr, 1), loc);
}

}  // namespace heddle::detail
