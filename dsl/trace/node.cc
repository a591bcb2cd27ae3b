#include "heddle/dsl/trace/node.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/trace/trace_internal.h"

namespace heddle {
namespace detail {
namespace op {

#define HEDDLE_OP(name, ...) const ir::Opcode k##name = ir::Opcode::k##name;
#include "heddle/ir/ops.def"

}  // namespace op

namespace {

// Whether an op is one of those whose arithmetic can flush subnormals.
bool can_flush(ir::Opcode opcode, absl::Span<const Node> operands) {
  const ir::OpInfo& row = ir::info(opcode);
  bool takes_ftz = false;
  for (int i = 0; i < row.attr_count; ++i) takes_ftz |= row.attrs[i].key == ir::AttrKey::kFtz;
  return takes_ftz && operands[0].type.scalar == ir::Scalar::kF32;
}

}  // namespace

Node record(ir::Opcode opcode, absl::Span<const Node> operands, NodeType type,
            absl::Span<const ir::Attr> attrs, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return made_outside(type, ir::info(opcode).mnemonic, loc);
  trace->check_stack(loc);
  trace->set_place(loc, operands);
  absl::InlinedVector<ir::Attr, 4> flushing;
  if (trace->flushing > 0 && can_flush(opcode, operands)) {
    flushing.assign(attrs.begin(), attrs.end());
    flushing.push_back({ir::AttrKey::kFtz, 1});
    attrs = flushing;
  }
  const ir::ValueId result = trace->create(opcode, trace->use(operands, loc), to_type(type), attrs);
  return ir::valid(result) ? trace->node(result) : Node{};
}

int64_t text_attr(const char* text) {
  Trace* const trace = Trace::current();
  return trace == nullptr ? 0 : static_cast<int64_t>(ir::index_of(trace->kernel().intern(text)));
}

NodeType scalar_type(ir::Scalar scalar) {
  return {.scalar = scalar, .kind = ir::TypeKind::kScalar, .count = 1};
}
NodeType vector_type(ir::Scalar scalar, int count) {
  return {.scalar = scalar, .kind = ir::TypeKind::kVector, .count = static_cast<uint16_t>(count)};
}
NodeType fragment_type(ir::Scalar scalar, int count, SourceLoc loc) {
  if (count < 1 || count > kMaxFragment) {
    report(loc, absl::StrCat("a fragment of ", count, " elements").c_str(),
           absl::StrCat("a fragment has 1 to ", kMaxFragment, " elements").c_str());
    count = 1;
  }
  return {.scalar = scalar, .kind = ir::TypeKind::kFragment, .count = static_cast<uint16_t>(count)};
}

NodeType with_scalar(NodeType type, ir::Scalar scalar) {
  type.scalar = scalar;
  return type;
}

Node misfit_node(NodeType wanted, uint64_t value, Misfit misfit, SourceLoc loc) {
  const uint32_t id = misfit == Misfit::kSigned ? Node::kHostSigned : Node::kHostUnsigned;
  const Node node{.type = wanted, .id = id, .bits = value};
  Trace* const trace = Trace::current();
  if (trace == nullptr) return node;
  trace->report_misfit(node, loc);
  return {.type = wanted};
}

Node emit(ir::Opcode opcode, SourceLoc loc) { return record(opcode, {}, {}, {}, loc); }

Node emit(ir::Opcode opcode, const Node& a, SourceLoc loc) {
  return record(opcode, {a}, a.type, {}, loc);
}

Node emit(ir::Opcode opcode, const Node& a, const Node& b, SourceLoc loc) {
  return record(opcode, {a, b}, a.type, {}, loc);
}

Node emit(ir::Opcode opcode, const Node& a, const Node& b, const Node& c, SourceLoc loc) {
  return record(opcode, {a, b, c}, a.type, {}, loc);
}

Node emit_as(NodeType type, ir::Opcode opcode, const Node& a, SourceLoc loc) {
  return record(opcode, {a}, type, {}, loc);
}

Node emit_bitcast(const Node& scalar, ir::Scalar to, SourceLoc loc) {
  const NodeType type = scalar_type(to);
  if (scalar.is_host()) return {.type = type, .bits = scalar.bits};
  return scalar.type.scalar == to ? scalar : emit_as(type, op::kBitcast, scalar, loc);
}

Node spread(const Node& node, NodeType shape, SourceLoc loc) {
  const bool is_scalar = node.type.kind == ir::TypeKind::kScalar;
  const bool wants_scalar = shape.kind == ir::TypeKind::kScalar;
  if (node.type.count == shape.count && is_scalar == wants_scalar) return node;
  if (is_scalar) {
    return emit_as(shape, ir::Opcode::kSplat, node, loc);
  }
  report(loc,
         absl::StrCat("fragments of ", node.type.count, " and ", shape.count,
                      " elements in one operation")
             .c_str(),
         "both sides have as many elements, or one of them is a scalar");
  return {.type = shape};
}

namespace {

// A vector or fragment of one element is wider than a scalar.
NodeType widest(absl::Span<const Node> nodes) {
  const auto width = [](const Node& node) {
    return std::pair(node.type.count, node.type.kind != ir::TypeKind::kScalar);
  };
  return std::max_element(nodes.begin(), nodes.end(),
                          [&](const Node& a, const Node& b) { return width(a) < width(b); })
      ->type;
}

// An op that takes scalars, on each element.
Node emit_each(ir::Opcode opcode, absl::Span<const Node> operands, SourceLoc loc) {
  NodeType type = widest(operands);
  std::vector<Node> results;
  for (int i = 0; i < type.count; ++i) {
    absl::InlinedVector<Node, 3> parts;
    for (const Node& operand : operands) {
      const bool scalar = operand.type.kind == ir::TypeKind::kScalar;
      parts.push_back(scalar ? operand
                             : emit_part(scalar_type(operand.type.scalar), ir::Opcode::kExtract,
                                         operand, i, loc));
    }
    results.push_back(record(opcode, parts, parts.back().type, {}, loc));
  }
  type.scalar = results[0].type.scalar;
  return emit_pack(type, results.data(), type.count, loc);
}

}  // namespace

void spread_all(Node* nodes, int count, SourceLoc loc) {
  const NodeType shape = widest(absl::MakeConstSpan(nodes, count));
  for (Node& node : absl::MakeSpan(nodes, count)) node = spread(node, shape, loc);
}

Node emit_spread(ir::Opcode opcode, const Node& a, const Node& b, SourceLoc loc) {
  Node operands[] = {a, b};
  spread_all(operands, 2, loc);
  return record(opcode, operands, operands[0].type, {}, loc);
}

Node emit_spread(ir::Opcode opcode, const Node& a, const Node& b, const Node& c, SourceLoc loc) {
  Node operands[] = {a, b, c};
  spread_all(operands, 3, loc);
  return record(opcode, operands, operands[0].type, {}, loc);
}

Node emit_select(const Node& condition, const Node& a, const Node& b, SourceLoc loc) {
  Node sides[] = {a, b};
  if (condition.type.kind == ir::TypeKind::kScalar) {
    spread_all(sides, 2, loc);
    return record(ir::Opcode::kSelect, {condition, sides[0], sides[1]}, sides[0].type, {}, loc);
  }
  for (Node& side : sides) side = spread(side, with_scalar(condition.type, side.type.scalar), loc);
  return emit_each(ir::Opcode::kSelect, {condition, sides[0], sides[1]}, loc);
}

Node emit_shift(ir::Opcode opcode, const Node& a, const Node& n, SourceLoc loc) {
  if (n.type.kind == ir::TypeKind::kScalar) return record(opcode, {a, n}, a.type, {}, loc);
  const NodeType counts = with_scalar(n.type, ir::Scalar::kU32);
  const Node count =
      n.type.scalar == ir::Scalar::kU32 ? n : emit_as(counts, ir::Opcode::kBitcast, n, loc);
  return emit_each(opcode, {spread(a, with_scalar(counts, a.type.scalar), loc), count}, loc);
}

Node emit_byte_perm(const Node& a, const Node& b, const Node& selector, SourceLoc loc) {
  if (a.type.kind == ir::TypeKind::kScalar) return emit(op::kPrmt, a, b, selector, loc);
  return emit_each(op::kPrmt, {a, b, selector}, loc);
}

Node emit_count(const Node& count, SourceLoc loc) {
  if (count.type.scalar == ir::Scalar::kI32) return count;
  return emit_as(with_scalar(count.type, ir::Scalar::kI32), ir::Opcode::kConvert, count, loc);
}

Node emit_pack(NodeType type, const Node* elements, int count, SourceLoc loc) {
  return record(ir::Opcode::kPack, absl::MakeConstSpan(elements, count), type, {}, loc);
}

Node regrouped(const Node& elements, NodeType type, SourceLoc loc) {
  if (elements.type.kind == type.kind) return elements;
  if (type.kind == ir::TypeKind::kScalar)
    return emit_part(type, ir::Opcode::kExtract, elements, 0, loc);
  return emit_pack(type, &elements, 1, loc);
}

int checked_element(int index, int width, int count, SourceLoc loc) {
  if (index >= 0 && index + width <= count) return index;
  report(loc,
         absl::StrCat("element ", index, width > 1 ? absl::StrCat(" to ", index + width - 1) : "",
                      " of a vector of ", count)
             .c_str(),
         "element indices are host numbers from 0 to the count less one");
  return 0;
}

Node emit_part(NodeType type, ir::Opcode opcode, Node whole, int index, SourceLoc loc) {
  index = checked_element(index, type.count, whole.type.count, loc);
  const ir::Attr attr{ir::AttrKey::kIndex, index};
  return record(opcode, absl::MakeConstSpan(&whole, 1), type, absl::MakeConstSpan(&attr, 1), loc);
}

Node emit_assume_range(const Node& value, const Promise& promise, SourceLoc loc) {
  if (promise.min > promise.max || promise.divisor < 1) {
    report(loc,
           promise.divisor < 1
               ? absl::StrCat("a multiple of ", promise.divisor, " is assumed").c_str()
               : absl::StrCat("a number from ", promise.min, " to ", promise.max, " is assumed")
                     .c_str(),
           "the bounds are included, the lower one comes first; divisors are positive");
    return value;
  }
  absl::InlinedVector<ir::Attr, 3> attrs;
  const Promise none;
  if (promise.min != none.min) attrs.push_back({ir::AttrKey::kMin, promise.min});
  if (promise.max != none.max) attrs.push_back({ir::AttrKey::kMax, promise.max});
  if (promise.divisor != none.divisor) attrs.push_back({ir::AttrKey::kDivisor, promise.divisor});
  if (promise.name != nullptr) attrs.push_back({ir::AttrKey::kName, text_attr(promise.name)});
  return record(ir::Opcode::kAssumeRange, {value}, value.type, attrs, loc);
}

Node emit_expect(const Node& condition, bool likely, SourceLoc loc) {
  const ir::Attr attr{ir::AttrKey::kLikely, likely};
  return record(ir::Opcode::kExpect, {condition}, condition.type, absl::MakeConstSpan(&attr, 1),
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

Point here() {
  Trace* const trace = Trace::current();
  return trace == nullptr ? Point{} : trace->here();
}

bool is_constant(Node node, uint64_t* bits) {
  if (node.is_host()) *bits = node.bits;
  return node.is_host();
}

bool in_loop() { return Trace::current() != nullptr && Trace::current()->in_loop(); }

}  // namespace detail
}  // namespace heddle
