#include "heddle/dsl/mma/wgmma.h"

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/tuple_builder_internal.h"
#include "heddle/dsl/mma/smem_operand_internal.h"

namespace heddle {
namespace detail {
namespace {

using ir::AttrKey;
using ir::Opcode;

constexpr int kRows = 64;       // of A
constexpr int kLaneBytes = 16;  // that a thread has of A in registers, in one product

// The number of columns of an accumulator of so many elements a thread.
int columns_of(const Node& accumulator) { return 2 * accumulator.type.count; }

template <class Left>
Node multiply(const Node& accumulator, const Left& left, const SmemOperand& columns,
              const WgmmaModifiers& modifiers, SourceLoc loc) {
  Node result = accumulator;
  const Node always = host_node(true);
  for (int64_t step = 0; step < columns.steps(); ++step) {
    const WgmmaOperand a = left(step);
    const WgmmaOperand b{columns.part(0, step), columns.major(), modifiers.negated.b};
    result = record_wgmma(result, a, b, step == 0 ? modifiers.adds : always, loc);
  }
  return result;
}

}  // namespace

Node emit_wgmma_begin(const Node& fragment, SourceLoc loc) {
  NodeType type = fragment.type;
  type.kind = ir::TypeKind::kPending;
  return record(Opcode::kWgmmaBegin, absl::MakeConstSpan(&fragment, 1), type, {}, loc);
}

Node emit_wgmma_begin(ir::Scalar scalar, int columns, SourceLoc loc) {
  const NodeType type = fragment_type(scalar, columns / 2, loc);
  return emit_wgmma_begin(record(Opcode::kUndef, {}, type, {}, loc), loc);
}

Node emit_wgmma(const Node& accumulator, const AnyTensor& a, const AnyTensor& b,
                const WgmmaModifiers& modifiers, SourceLoc loc) {
  const SmemOperand rows(a, kRows, "a", loc), columns(b, columns_of(accumulator), "b", loc);
  if (!rows.ok() || !columns.ok()) return accumulator;
  if (rows.row_parts() != 1 || columns.row_parts() != 1 || rows.steps() != columns.steps()) {
    fail(loc,
         absl::StrCat("wgmma of ", to_string(a), " and ", to_string(b),
                      " into an accumulator of 64 x ", columns_of(accumulator)),
         "a is 64 x K, b is N x K and the accumulator 64 x N");
    return accumulator;
  }
  const auto left = [&](int64_t step) {
    return WgmmaOperand{rows.part(0, step), rows.major(), modifiers.negated.a};
  };
  return multiply(accumulator, left, columns, modifiers, loc);
}

std::vector<Node> emit_wgmma_operand(const Node& fragment, SourceLoc loc) {
  const int together = kLaneBytes / ir::bytes_of(fragment.type.scalar);
  std::vector<Node> parts;
  if (fragment.type.count % together != 0) {
    fail(loc,
         absl::StrCat("wgmma_operand of a fragment of ", fragment.type.count, " x ",
                      ir::info(fragment.type.scalar).name),
         absl::StrCat("for each 32 bytes of K a thread has ", together, " elements of a"));
    return parts;
  }
  const NodeType type = fragment_type(fragment.type.scalar, together, loc);
  for (int first = 0; first < fragment.type.count; first += together) {
    parts.push_back(emit_wgmma_begin(emit_part(type, Opcode::kSlice, fragment, first, loc), loc));
  }
  return parts;
}

Node emit_wgmma(const Node& accumulator, const std::vector<Node>& a, const AnyTensor& b,
                const WgmmaModifiers& modifiers, SourceLoc loc) {
  const SmemOperand columns(b, columns_of(accumulator), "b", loc);
  if (!columns.ok() || a.empty()) return accumulator;
  if (columns.row_parts() != 1 || static_cast<int64_t>(a.size()) != columns.steps()) {
    fail(loc,
         absl::StrCat("wgmma of an operand of ", a.size(), " times 32 bytes along K and ",
                      to_string(b), " into an accumulator of 64 x ", columns_of(accumulator)),
         "a is 64 x K, b is N x K and the accumulator 64 x N");
    return accumulator;
  }
  const auto left = [&](int64_t step) {
    return WgmmaOperand{a[static_cast<size_t>(step)], Major::k, modifiers.negated.a};
  };
  return multiply(accumulator, left, columns, modifiers, loc);
}

Node emit_wgmma_wait(const std::vector<Node>& operand, int groups, SourceLoc loc) {
  std::vector<Node> parts;
  int count = 0;
  for (const Node& node : operand) {
    parts.push_back(emit_wgmma_wait(node, groups, loc));
    count += node.type.count;
  }
  if (parts.empty()) return host_node(int32_t{0});  // reported where it was made
  if (parts.size() == 1) return parts.front();
  return record(Opcode::kPack, parts, fragment_type(parts.front().type.scalar, count, loc), {},
                loc);
}

Node emit_wgmma_wait(const Node& accumulator, int groups, SourceLoc loc) {
  const ir::Attr attr{AttrKey::kGroups, groups};
  NodeType type = accumulator.type;
  type.kind = ir::TypeKind::kFragment;
  return record(Opcode::kWgmmaWait, absl::MakeConstSpan(&accumulator, 1), type,
                absl::MakeConstSpan(&attr, 1), loc);
}

}  // namespace detail

void wgmma_wait_groups(int groups, SourceLoc loc) {
  const ir::Attr attr{ir::AttrKey::kGroups, groups};
  detail::record(ir::Opcode::kWgmmaWait, {}, {}, absl::MakeConstSpan(&attr, 1), loc);
}

}  // namespace heddle
