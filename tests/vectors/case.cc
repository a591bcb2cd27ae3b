#include "vectors/case.h"

#include "absl/strings/str_cat.h"
#include "heddle/ir/verify/verifier.h"

namespace heddle::vectors {
namespace {

using ir::AttrKey;
using ir::Opcode;
using ir::Role;
using ir::Scalar;
using ir::Type;

// Every element type whose results are recorded.
std::vector<Scalar> scalars() {
  std::vector<Scalar> all;
  for (int i = 0; i < ir::kScalarCount; ++i) {
    const auto scalar = static_cast<Scalar>(i);
    if (scalar != Scalar::kNone) all.push_back(scalar);
  }
  return all;
}

// The type of an operand of that role; kNone where a case has no value for it.
Scalar operand_type(Role role, Scalar t, Scalar u) {
  switch (role) {
    case Role::kT:
      return t;
    case Role::kDataLikeT:
      return u;
    case Role::kBool:
      return Scalar::kBool;
    case Role::kI32:
      return Scalar::kI32;
    case Role::kU32:
      return Scalar::kU32;
    case Role::kI64:
      return Scalar::kI64;
    default:
      return Scalar::kNone;
  }
}

// Every choice of values for the row's attributes: those with enumerators have as many, flags that
// an op may do without are set or not there.
std::vector<std::vector<ir::Attr>> attribute_values(const ir::OpInfo& row) {
  std::vector<std::vector<ir::Attr>> all = {{}};
  for (int i = 0; i < row.attr_count; ++i) {
    const AttrKey key = row.attrs[static_cast<size_t>(i)].key;
    const bool flag = !row.attrs[static_cast<size_t>(i)].required;
    const auto count = flag ? 2 : static_cast<int64_t>(ir::info(key).enumerators.size());
    std::vector<std::vector<ir::Attr>> longer;
    if (flag) longer = all;
    for (const std::vector<ir::Attr>& attrs : all) {
      for (int64_t value = flag ? 1 : 0; value < count; ++value) {
        longer.push_back(attrs);
        longer.back().push_back({key, value});
      }
    }
    all = std::move(longer);
  }
  return all;
}

// Whether a kernel may contain it; its result's type then.
bool exists(Case& c, Scalar t) {
  ir::Kernel kernel("k");
  kernel.block = {32, 1, 1};
  ir::Builder b(kernel);
  std::vector<ir::ValueId> operands;
  for (const Scalar scalar : c.operands) operands.push_back(b.constant(Type::of(scalar), 1));
  const ir::ValueId result = b.create(c.opcode, operands, Type::of(t), c.attrs);
  c.result = kernel.type(result).scalar;
  const ir::ValueId out =
      kernel.add_param("out", Type::view(c.result, ir::Space::kGlobal, 1), {ir::kDynamic}, {1});
  b.create(Opcode::kStore, {out, result, b.constant_int(ir::kI32Type, 0)});
  return verify(kernel, ir::Stage::kEmittable).empty();
}

std::string name_of(const Case& c) {
  std::string name(ir::info(c.opcode).mnemonic);
  for (const ir::Attr& attr : c.attrs) {
    const ir::AttrInfo& key = ir::info(attr.key);
    absl::StrAppend(&name, " {", key.name);
    if (key.kind == ir::AttrKind::kEnum) {
      absl::StrAppend(&name, " = ", key.enumerators[static_cast<size_t>(attr.value)]);
    }
    absl::StrAppend(&name, "}");
  }
  for (const Scalar scalar : c.operands) absl::StrAppend(&name, " ", ir::info(scalar).name);
  absl::StrAppend(&name, " -> ", ir::info(c.result).name);
  return name;
}

void add_cases(Opcode opcode, std::vector<Case>& cases) {
  const ir::OpInfo& row = ir::info(opcode);
  const bool has_t = row.data_class != ir::DataClass::kNone;
  const bool converts = row.signature.operands[0].role == Role::kDataLikeT;
  const auto of_types = [&](Scalar t, Scalar u) {
    for (const std::vector<ir::Attr>& attrs : attribute_values(row)) {
      Case c;
      c.opcode = opcode;
      c.attrs = attrs;
      for (int i = 0; i < row.signature.operand_count; ++i) {
        c.operands.push_back(
            operand_type(row.signature.operands[static_cast<size_t>(i)].role, t, u));
      }
      if (!exists(c, t)) continue;
      c.name = name_of(c);
      cases.push_back(std::move(c));
    }
  };
  for (const Scalar t : scalars()) {
    if (has_t ? !admits(row.data_class, t) : t != Scalar::kI32) continue;
    if (!converts) of_types(t, Scalar::kNone);
    for (const Scalar u : scalars()) {
      if (converts) of_types(t, u);
    }
  }
}

}  // namespace

std::vector<Opcode> recorded_ops() {
  return {
#define HEDDLE_OP(...)
#define HEDDLE_ELEMENTWISE(name, ...) Opcode::k##name,
#include "heddle/ir/ops.def"
      Opcode::kBitcast,
  };
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Opcode opcode : recorded_ops()) add_cases(opcode, cases);
  return cases;
}

ir::ValueId apply(ir::Builder& b, const Case& c, absl::Span<const ir::ValueId> operands) {
  return b.create(c.opcode, operands, Type::of(c.result), c.attrs);
}

Scalar working_type(const Case& c) {
  const ir::Signature& signature = ir::info(c.opcode).signature;
  for (int i = 0; i < signature.operand_count; ++i) {
    if (signature.operands[static_cast<size_t>(i)].role == Role::kT) {
      return c.operands[static_cast<size_t>(i)];
    }
  }
  return c.operands[0];
}

}  // namespace heddle::vectors
