#include "heddle/ir/op_info.h"

#include "absl/container/flat_hash_map.h"
#include "heddle/ir/check.h"
#include "heddle/ir/custom_op.h"
#include "heddle/ir/op_rows_internal.h"

namespace heddle::ir {
namespace {

using rows::kOperandNames;
using rows::kOps;

constexpr absl::string_view kScopeNames[] = {"thread", "warp",    "warp group",
                                             "block",  "cluster", "grid"};
static_assert(std::size(kScopeNames) == kScopeCount);

}  // namespace

constinit const detail::OperandIndices detail::kOperandIndices = [] {
  OperandIndices table{};
  for (size_t op = 0; op < kOpcodeCount; ++op) {
    for (int8_t& index : table[op]) index = -1;
    const Signature& signature = kOps[op].signature;
    for (int i = 0; i < signature.operand_count; ++i) {
      int8_t& index = table[op][static_cast<size_t>(signature.operands[i].name)];
      if (index >= 0) throw "a signature of ops.def names two operands alike";
      index = static_cast<int8_t>(i);
    }
  }
  return table;
}();

constinit const std::array<OpInfo, kOpcodeCount> detail::kOpInfos = std::to_array(kOps);

const OpInfo& detail::custom_info(Opcode opcode) { return custom_op(opcode)->row; }

int detail::custom_operand_index(Opcode opcode, OperandName name) {
  const Signature& signature = info(opcode).signature;
  for (int i = 0; i < signature.operand_count; ++i) {
    if (signature.operands[i].name == name) return i;
  }
  return -1;
}

absl::string_view name_of(OperandName name) { return kOperandNames[static_cast<size_t>(name)]; }

absl::string_view name_of(Role role) {
  for (const rows::RoleName& entry : rows::kRoleNames) {
    if (entry.role == role) return entry.name;
  }
  check_failed(__FILE__, __LINE__, "role", "a role without a word");
}

absl::string_view name_of(Scope scope) { return kScopeNames[static_cast<size_t>(scope)]; }

std::optional<Opcode> detail::builtin_opcode(absl::string_view mnemonic) {
  static const auto* const by_mnemonic = [] {
    auto* map = new absl::flat_hash_map<absl::string_view, Opcode>();
    for (int i = 0; i < kOpcodeCount; ++i) map->emplace(kOps[i].mnemonic, static_cast<Opcode>(i));
    return map;
  }();
  const auto it = by_mnemonic->find(mnemonic);
  if (it == by_mnemonic->end()) return std::nullopt;
  return it->second;
}

std::optional<Opcode> opcode_from_mnemonic(absl::string_view mnemonic) {
  const std::optional<Opcode> builtin = detail::builtin_opcode(mnemonic);
  return builtin ? builtin : detail::custom_opcode(mnemonic);
}

}  // namespace heddle::ir
