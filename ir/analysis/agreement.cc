#include "heddle/ir/analysis/agreement.h"

#include <bit>
#include <optional>
#include <utility>

namespace heddle::ir {
namespace {

// Whether `b` is what lane ^ mask has as `a`. Conversions on the way are the same in both lanes.
// Nothing else is looked through: `contract` may round a sum of products differently on one side.
bool mirrored(const Kernel& kernel, ValueId a, ValueId b, uint64_t& mask) {
  const Op* const of_a = kernel.def(a);
  const Op* const of_b = kernel.def(b);
  if (of_b == nullptr) return false;
  if (of_b->opcode == Opcode::kShflXor && !valid(of_b->mask()) && of_b->value() == a) {
    const std::optional<uint64_t> bits = kernel.constant_bits(of_b->lane());
    if (!bits || *bits >= static_cast<uint64_t>(of_b->attr_or(AttrKey::kWidth, 32))) return false;
    mask = *bits;
    return true;
  }
  return of_a != nullptr && of_a->opcode == Opcode::kConvert && of_b->opcode == Opcode::kConvert &&
         kernel.type(a) == kernel.type(b) && of_a->attrs == of_b->attrs &&
         mirrored(kernel, of_a->a(), of_b->a(), mask);
}

}  // namespace

Moves moves_by_form(const Kernel& kernel, const Op& op) {
  if (info(op).signature.operand_count != 2 || !has(info(op), kCommutative)) return kNoMoves;
  for (const auto& [one, other] : {std::pair(op.a(), op.b()), std::pair(op.b(), op.a())}) {
    uint64_t mask = 0;
    if (mirrored(kernel, one, other, mask) && std::has_single_bit(mask)) {
      return static_cast<Moves>(mask);
    }
    const Op* const def = kernel.def(one);
    const std::optional<uint64_t> kept = kernel.constant_bits(other);
    if (op.opcode == Opcode::kAnd && def != nullptr && def->opcode == Opcode::kLaneId && kept) {
      return static_cast<Moves>(~*kept & kLaneMoves);
    }
  }
  return kNoMoves;
}

Moves moves_of_shuffle(const Kernel& kernel, const Op& op, Moves value, Moves with, bool in_warp) {
  const auto width = static_cast<uint64_t>(op.attr_or(AttrKey::kWidth, 32));
  // Lanes of one segment differ in these bits.
  const auto segment = static_cast<Moves>(width - 1);
  const Moves common = value & with;
  switch (op.opcode) {
    case Opcode::kShflIdx: {
      // One's own value where the segment has no such lane. Where it has, all of the segment read
      // it.
      const std::optional<uint64_t> lane = kernel.constant_bits(op.lane());
      const bool in_segment = lane ? *lane < width : in_warp && width == 32;
      return static_cast<Moves>(common | (in_segment ? with & segment : kNoMoves));
    }
    case Opcode::kShflXor: {
      const std::optional<uint64_t> mask = kernel.constant_bits(op.lane());
      return mask && *mask < width ? value : static_cast<Moves>(common & kWarpMove);
    }
    default:  // the lane that is so far above or below
      return static_cast<Moves>(common & kWarpMove);
  }
}

}  // namespace heddle::ir
