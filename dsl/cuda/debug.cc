#include "heddle/dsl/cuda/debug.h"

#include "heddle/dsl/trace/trace_internal.h"

namespace heddle::detail {

void emit_assert(Node condition, const char* message, SourceLoc loc) {
  const ir::Attr attr{ir::AttrKey::kMessage, text_attr(message)};
  record(ir::Opcode::kAssert, absl::MakeConstSpan(&condition, 1), {}, absl::MakeConstSpan(&attr, 1),
         loc);
}

void emit_printf(const Format& format, const Node* values, int count) {
  const ir::Attr attr{ir::AttrKey::kMessage, text_attr(format.text)};
  record(ir::Opcode::kPrintf, absl::MakeConstSpan(values, static_cast<size_t>(count)), {},
         absl::MakeConstSpan(&attr, 1), format.loc);
}

}  // namespace heddle::detail
