#include "heddle/ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

bool may_tie(const Op& op) {
  const Signature& signature = info(op).signature;
  for (int i = 0; i < signature.operand_count; ++i) {
    if (signature.operands[static_cast<size_t>(i)].tied) return true;
  }
  return false;
}

}  // namespace

IdMap<ValueId, uint32_t> count_uses(const Kernel& kernel) {
  IdMap<ValueId, uint32_t> uses;
  kernel.walk([&](OpId id) {
    for (const ValueId operand : kernel.op(id).operands) ++uses.at(operand);
  });
  return uses;
}

IdMap<ValueId, uint8_t> tied_values(const Kernel& kernel) {
  IdMap<ValueId, uint8_t> tied;
  kernel.walk([&](OpId id) {
    const Op& op = kernel.op(id);
    if (!may_tie(op)) return;
    const Signature& signature = info(op).signature;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      // The last position stands for all further operands where it takes any number.
      const size_t at = i < signature.operand_count ? i : signature.operand_count - size_t{1};
      if (signature.operands[at].tied) tied.at(op.operands[i]) = 1;
    }
  });
  return tied;
}

absl::Span<const ValueId> yielded(const Kernel& kernel, RegionId region) {
  const OpId end = kernel.terminator(region);
  if (!valid(end)) return {};
  return kernel.op(end).operands;
}

}  // namespace heddle::ir
