#include "heddle/dsl/node.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/builtins.h"
#include "heddle/dsl/internal/trace.h"

namespace heddle {
namespace detail {
namespace op {

#define HEDDLE_OP(name, ...) const ir::Opcode k##name = ir::Opcode::k##name;
#include "heddle/ir/ops.def"
#undef HEDDLE_OP

}  // namespace op

namespace {

// Arithmetic outside a kernel has nowhere to go: it is reported by the next trace, and its result
// is a host zero.
Node outside_kernel(ir::Opcode opcode, NodeType type, SourceLoc loc) {
  report(loc,
         absl::StrCat(ir::info(opcode).mnemonic,
                      " of kernel values outside a kernel: there is no program to record it in")
             .c_str(),
         "compute it with host numbers, or move it into the kernel's lambda");
  return {.type = type};
}

Node record(ir::Opcode opcode, absl::Span<const Node> operands, NodeType type,
            absl::Span<const ir::Attr> attrs, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return outside_kernel(opcode, type, loc);
  trace->set_place(loc, operands);
  const ir::ValueId result =
      trace->builder().create(opcode, trace->use(operands, loc), to_type(type), attrs);
  return ir::valid(result) ? trace->node(result) : Node{};
}

absl::Span<const Node> span(std::initializer_list<Node> nodes) {
  return {nodes.begin(), nodes.size()};
}

}  // namespace

NodeType scalar_type(ir::Scalar scalar) {
  return {.scalar = scalar, .kind = ir::TypeKind::kScalar, .count = 1};
}
NodeType vector_type(ir::Scalar scalar, int count) {
  return {.scalar = scalar, .kind = ir::TypeKind::kVector, .count = static_cast<uint16_t>(count)};
}
NodeType fragment_type(ir::Scalar scalar, int count) {
  return {.scalar = scalar, .kind = ir::TypeKind::kFragment, .count = static_cast<uint16_t>(count)};
}

Node emit(ir::Opcode opcode, std::initializer_list<Node> operands, SourceLoc loc) {
  const NodeType type = operands.size() == 0 ? NodeType{} : operands.begin()->type;
  return record(opcode, span(operands), type, {}, loc);
}

Node emit_as(NodeType type, ir::Opcode opcode, std::initializer_list<Node> operands,
             SourceLoc loc) {
  return record(opcode, span(operands), type, {}, loc);
}

Node emit_pack(NodeType type, const Node* elements, int count, SourceLoc loc) {
  return record(ir::Opcode::kPack, absl::MakeConstSpan(elements, count), type, {}, loc);
}

Node emit_part(NodeType type, ir::Opcode opcode, Node whole, int index, SourceLoc loc) {
  if (index < 0 || index + type.count > whole.type.count) {
    report(loc,
           absl::StrCat("element ", index,
                        type.count > 1 ? absl::StrCat(" to ", index + type.count - 1) : "",
                        " of a vector of ", whole.type.count)
               .c_str(),
           "element indices are host numbers from 0 to the count less one");
    index = 0;
  }
  const ir::Attr attr{ir::AttrKey::kIndex, index};
  return record(opcode, absl::MakeConstSpan(&whole, 1), type, absl::MakeConstSpan(&attr, 1), loc);
}

Node emit_coordinate(ir::Opcode opcode, int axis, SourceLoc loc) {
  if (opcode == ir::Opcode::kBlockDim && threads_per_block() > 0) {
    const BlockShape block = block_shape();
    return host_node(int32_t{axis == 0 ? block.x : axis == 1 ? block.y : block.z});
  }
  const ir::Attr attr{ir::AttrKey::kAxis, axis};
  return record(opcode, {}, scalar_type<int32_t>(), absl::MakeConstSpan(&attr, 1), loc);
}

Node emit_shuffle(ir::Opcode opcode, Node value, Node lane, int width, SourceLoc loc) {
  const ir::Attr attr{ir::AttrKey::kWidth, width};
  const bool whole_warp = width == kWarpSize;
  return record(opcode, {value, lane}, value.type, absl::MakeConstSpan(&attr, whole_warp ? 0 : 1),
                loc);
}

void emit_assert(Node condition, const char* message, SourceLoc loc) {
  Trace* const trace = Trace::current();
  const ir::Attr attr{
      ir::AttrKey::kMessage,
      trace == nullptr ? 0 : static_cast<int64_t>(ir::index_of(trace->kernel().intern(message)))};
  record(ir::Opcode::kAssert, absl::MakeConstSpan(&condition, 1), {}, absl::MakeConstSpan(&attr, 1),
         loc);
}

Node new_slot(Node init, SourceLoc loc) {
  return record(ir::Opcode::kVar, absl::MakeConstSpan(&init, 1), init.type, {}, loc);
}

Node read_slot(Node slot, NodeType type, SourceLoc loc) {
  return record(ir::Opcode::kVarLoad, absl::MakeConstSpan(&slot, 1), type, {}, loc);
}

void write_slot(Node slot, Node value, SourceLoc loc) {
  record(ir::Opcode::kVarStore, {slot, value}, {}, {}, loc);
}

bool is_constant(Node node, uint64_t* bits) {
  if (node.is_host()) *bits = node.bits;
  return node.is_host();
}

bool in_loop() { return Trace::current() != nullptr && Trace::current()->in_loop(); }

}  // namespace detail

BlockShape block_shape() {
  detail::Trace* const trace = detail::Trace::current();
  if (trace == nullptr) return {0, 0, 0};
  const ir::Dim3 block = trace->kernel().block;
  return {block.x, block.y, block.z};
}

int threads_per_block() {
  const BlockShape block = block_shape();
  return block.x * block.y * block.z;
}

int warps_per_block() { return (threads_per_block() + kWarpSize - 1) / kWarpSize; }

}  // namespace heddle
