#include "heddle/dsl/math/rounding.h"

#include "heddle/dsl/trace/trace_internal.h"
#include "heddle/ir/rounding.h"

namespace heddle {

FlushSubnormals::FlushSubnormals() {
  if (detail::Trace* const trace = detail::Trace::current()) ++trace->flushing;
}
FlushSubnormals::~FlushSubnormals() {
  if (detail::Trace* const trace = detail::Trace::current()) --trace->flushing;
}

namespace detail {
namespace {

static_assert(static_cast<int>(Rounding::up) == static_cast<int>(ir::Rounding::kUp));

Node round_with(ir::Opcode opcode, NodeType type, Rounding rounding, SourceLoc loc,
                absl::Span<const Node> operands) {
  const ir::Attr attr{ir::AttrKey::kRounding, static_cast<int64_t>(rounding)};
  return record(opcode, operands, type, absl::MakeConstSpan(&attr, 1), loc);
}

}  // namespace

Node emit_rounded(ir::Opcode opcode, NodeType type, Rounding rounding, SourceLoc loc,
                  const Node& a) {
  return round_with(opcode, type, rounding, loc, {a});
}
Node emit_rounded(ir::Opcode opcode, NodeType type, Rounding rounding, SourceLoc loc, const Node& a,
                  const Node& b) {
  return round_with(opcode, type, rounding, loc, {a, b});
}
Node emit_rounded(ir::Opcode opcode, NodeType type, Rounding rounding, SourceLoc loc, const Node& a,
                  const Node& b, const Node& c) {
  return round_with(opcode, type, rounding, loc, {a, b, c});
}

}  // namespace detail
}  // namespace heddle
