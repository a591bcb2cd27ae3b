#include "heddle/dsl/cuda/builtins.h"

#include "heddle/dsl/trace/trace_internal.h"

namespace heddle {
namespace detail {

Node emit_coordinate(ir::Opcode opcode, int axis, SourceLoc loc) {
  if (opcode == ir::Opcode::kBlockDim && threads_per_block() > 0) {
    const BlockShape block = block_shape();
    return host_node(int32_t{axis == 0 ? block.x : axis == 1 ? block.y : block.z});
  }
  const ir::Attr attr{ir::AttrKey::kAxis, axis};
  return record(opcode, {}, scalar_type<int32_t>(), absl::MakeConstSpan(&attr, 1), loc);
}

Node emit_shuffle(ir::Opcode opcode, Node value, Node lane, int width, const LaneMask& lanes,
                  SourceLoc loc) {
  const ir::Attr attr{ir::AttrKey::kWidth, width};
  const bool whole_warp = width == kWarpSize;
  const Node operands[] = {value, lane, lanes.node};
  return record(opcode, absl::MakeConstSpan(operands, lanes.given ? 3 : 2), value.type,
                absl::MakeConstSpan(&attr, whole_warp ? 0 : 1), loc);
}

Node emit_vote(ir::Opcode opcode, const Node& value, const LaneMask& lanes, SourceLoc loc) {
  const Node operands[] = {value, lanes.node};
  return record(opcode, absl::MakeConstSpan(operands, lanes.given ? 2 : 1), value.type, {}, loc);
}

Node emit_redux(ReduxOp op, const Node& value, const LaneMask& lanes, SourceLoc loc) {
  const Node operands[] = {value, lanes.node};
  const ir::Attr attr{ir::AttrKey::kOp, static_cast<int64_t>(op)};
  return record(ir::Opcode::kRedux, absl::MakeConstSpan(operands, lanes.given ? 2 : 1), value.type,
                absl::MakeConstSpan(&attr, 1), loc);
}

Node emit_for_lanes(ir::Opcode opcode, NodeType type, const LaneMask& lanes, SourceLoc loc) {
  return record(opcode, absl::MakeConstSpan(&lanes.node, lanes.given ? 1 : 0), type, {}, loc);
}

}  // namespace detail

BlockShape block_shape() {
  detail::Trace* const trace = detail::Trace::current();
  if (trace == nullptr) return {0, 0, 0};
  const Dim3 block = trace->kernel().block;
  // What no block can have, the verifier reports.
  return {static_cast<int>(block.x), static_cast<int>(block.y), static_cast<int>(block.z)};
}

int threads_per_block() {
  const BlockShape block = block_shape();
  return block.x * block.y * block.z;
}

int warps_per_block() { return (threads_per_block() + kWarpSize - 1) / kWarpSize; }

}  // namespace heddle
