#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/tuple_builder_internal.h"
#include "heddle/dsl/mma/smem_operand_internal.h"

namespace heddle::detail {

using ir::AttrKey;
using ir::Opcode;

SmemOperand::SmemOperand(const AnyTensor& tensor, int64_t rows, const char* name, SourceLoc loc)
    : tensor_(tensor), loc_(loc), descriptor_(tensor.layout, tensor.scalar, rows) {
  if (!tensor.layout.ok() || descriptor_.ok()) return;  // reported where it was made
  fail(loc,
       absl::StrCat("tile ", name, " of wgmma, ", to_string(tensor), ", ", descriptor_.error()),
       descriptor_.fix());
}

Node SmemOperand::part(int64_t row_part, int64_t step) const {
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

Node record_wgmma(const Node& accumulator, const WgmmaOperand& a, const WgmmaOperand& b,
                  const Node& scale, SourceLoc loc) {
  const Node operands[] = {accumulator, a.node, b.node, scale};
  absl::InlinedVector<ir::Attr, 4> attrs;
  if (a.major == Major::mn) attrs.push_back({AttrKey::kTransposeA, 1});
  if (b.major == Major::mn) attrs.push_back({AttrKey::kTransposeB, 1});
  if (a.negated) attrs.push_back({AttrKey::kNegateA, 1});
  if (b.negated) attrs.push_back({AttrKey::kNegateB, 1});
  return record(Opcode::kWgmma, operands, accumulator.type, attrs, loc);
}

}  // namespace heddle::detail
