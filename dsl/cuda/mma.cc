#include "heddle/dsl/cuda/mma.h"

#include "heddle/dsl/trace/trace_internal.h"

namespace heddle::detail {

Node emit_mma(const Node& accumulator, const Node& a, const Node& b, SourceLoc loc) {
  const Node operands[] = {accumulator, a, b};
  return record(ir::Opcode::kMma, operands, accumulator.type, {}, loc);
}

}  // namespace heddle::detail
