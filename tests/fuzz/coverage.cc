#include "fuzz/coverage.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "fuzz/shapes.h"

namespace heddle::fuzz {
namespace {

using ir::Kernel;
using ir::Op;
using ir::OpInfo;
using ir::Role;
using ir::Scalar;

std::string name_of(Scalar scalar) { return std::string(ir::info(scalar).name); }

bool converts(const OpInfo& row) { return row.signature.operands[0].role == Role::kDataLikeT; }

// The types that an op is counted under.
std::string type_of(const Kernel& kernel, const Op& op) {
  const OpInfo& row = info(op);
  if (converts(row)) {
    return absl::StrCat(name_of(kernel.type(op.a()).scalar), " -> ",
                        name_of(kernel.type(op.result()).scalar));
  }
  for (size_t i = 0; i < std::min<size_t>(row.signature.operand_count, op.operands.size()); ++i) {
    if (row.signature.operands[i].role == Role::kT) {
      return name_of(kernel.type(op.operands[i]).scalar);
    }
  }
  return name_of(op.results.empty() ? Scalar::kNone : kernel.type(op.result()).scalar);
}

constexpr ir::Opcode kElementwise[] = {
#define HEDDLE_OP(name, ...)
#define HEDDLE_ELEMENTWISE(name, ...) ir::Opcode::k##name,
#include "heddle/ir/ops.def"
};

}  // namespace

void Coverage::add(const Kernel& kernel) {
  kernel.walk([&](ir::OpId id) {
    const Op& op = kernel.op(id);
    ++ops_;
    ++made_[std::string(info(op).mnemonic)][type_of(kernel, op)];
  });
  for (const std::string& shape : known_shapes()) programs_with_.try_emplace(shape, 0);
  for (const std::string& shape : shapes_of(kernel)) ++programs_with_.at(shape);
}

std::vector<std::string> Coverage::never_made() const {
  std::vector<std::string> never;
  for (int i = 0; i < ir::kOpcodeCount; ++i) {
    std::string mnemonic(ir::info(static_cast<ir::Opcode>(i)).mnemonic);
    if (made_.count(mnemonic) == 0) never.push_back(std::move(mnemonic));
  }
  return never;
}

std::vector<std::string> Coverage::never_made_of_type() const {
  std::vector<std::string> never;
  for (const ir::Opcode opcode : kElementwise) {
    const OpInfo& row = ir::info(opcode);
    const auto found = made_.find(std::string(row.mnemonic));
    if (found == made_.end() || converts(row)) continue;
    for (int i = 0; i < ir::kScalarCount; ++i) {
      const auto scalar = static_cast<Scalar>(i);
      const bool may = row.data_class != ir::DataClass::kNone && admits(row.data_class, scalar) &&
                       supports(ir::default_target(), row.targets, scalar);
      if (may && found->second.count(name_of(scalar)) == 0) {
        never.push_back(absl::StrCat(row.mnemonic, " ", name_of(scalar)));
      }
    }
  }
  return never;
}

}  // namespace heddle::fuzz
