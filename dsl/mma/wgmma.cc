#include "heddle/dsl/mma/wgmma.h"

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/tuple_builder_internal.h"
#include "heddle/dsl/mma/descriptor.h"
#include "heddle/dsl/tensor/tensor_internal.h"

namespace heddle {
namespace detail {
namespace {

using ir::AttrKey;
using ir::Opcode;

constexpr int kRows = 64;  // of A

// An operand's tile, and its descriptors.
class Operand {
 public:
  Operand(const AnyTensor& tensor, int64_t rows, const char* name, SourceLoc loc)
      : tensor_(tensor), loc_(loc), descriptor_(tensor.layout, tensor.scalar, rows) {
    if (!tensor.layout.ok() || descriptor_.ok()) return;  // reported where it was made
    fail(loc,
         absl::StrCat("tile ", name, " of wgmma, ", to_string(tensor), ", ", descriptor_.error()),
         descriptor_.fix());
  }

  bool ok() const { return descriptor_.ok(); }
  int64_t row_parts() const { return descriptor_.row_parts(); }
  int64_t steps() const { return descriptor_.steps(); }

  // The descriptor of an instruction's part.
  Node part(int64_t row_part, int64_t step) const {
    SymInt start = descriptor_.start(row_part, step) / ir::bytes_of(tensor_.scalar);
    const IntTuple& offset = tensor_.layout.offset();
    if (tensor_.layout.is_composed() && offset.is_int()) start = start + offset.value();
    start = start + number_at(tensor_.origin, 0, 1);
    const ir::Attr attrs[] = {{AttrKey::kLeading, descriptor_.leading()},
                              {AttrKey::kStride, descriptor_.stride()},
                              {AttrKey::kSwizzle, descriptor_.swizzle()}};
    const Node operands[] = {tensor_.node, materialize(start, /*wide=*/false, loc_)};
    return record(Opcode::kSmemDesc, operands, {}, attrs, loc_);
  }

 private:
  const AnyTensor& tensor_;
  const SourceLoc loc_;
  const SmemDescriptor descriptor_;
};

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

Node emit_wgmma(const Node& accumulator, const AnyTensor& a, const AnyTensor& b, const Node& scale,
                SourceLoc loc) {
  const int columns_wanted = 2 * accumulator.type.count;
  const Operand rows(a, kRows, "a", loc), columns(b, columns_wanted, "b", loc);
  if (!rows.ok() || !columns.ok()) return accumulator;
  if (rows.row_parts() != 1 || columns.row_parts() != 1 || rows.steps() != columns.steps()) {
    fail(loc,
         absl::StrCat("wgmma of ", to_string(a), " and ", to_string(b),
                      " into an accumulator of 64 x ", columns_wanted),
         "a is 64 x K, b is N x K and the accumulator 64 x N");
    return accumulator;
  }
  Node result = accumulator;
  for (int64_t step = 0; step < rows.steps(); ++step) {
    const Node always = host_node(true);
    const Node operands[] = {result, rows.part(0, step), columns.part(0, step),
                             step == 0 ? scale : always};
    result = record(Opcode::kWgmma, operands, accumulator.type, {}, loc);
  }
  return result;
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
