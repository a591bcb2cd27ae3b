// What all recipes build on.
#include "codegen/op_recipes.h"

#include <vector>

#include "absl/types/span.h"
#include "heddle/ir/float_bits.h"

namespace heddle::codegen {
namespace {

using ir::AttrKey;
using ir::Opcode;
using ir::Scalar;
using ir::Space;
using ir::Type;
using ir::ValueId;

// A number that is not special in any type, as bits.
uint64_t one_and_a_bit(Scalar scalar) {
  if (is_float(scalar)) return ir::float_bits(scalar, 1.5);
  return scalar == Scalar::kBool ? 1 : 3;
}

}  // namespace

OpKernel::OpKernel(const std::string& name, const ir::Target& target, bool constants)
    : kernel_(name), b_(kernel_), constants_(constants) {
  kernel_.block = {128, 1, 1};
  kernel_.target = &target;
  b_.set_loc(kernel_.intern_loc("op.cc", 7));
}

ValueId OpKernel::view(Scalar scalar) {
  ValueId& view = views_.try_emplace(scalar, ValueId::kNone).first->second;
  if (!valid(view)) {
    view = kernel_.add_param("p", Type::view(scalar, Space::kGlobal, 1), {ir::kDynamic}, {1});
  }
  return view;
}

ValueId OpKernel::shared(Scalar scalar, int64_t count) {
  return b_.create(Opcode::kShared, {}, Type::view(scalar, Space::kShared, 1),
                   {{AttrKey::kExtents, kernel_.intern_ints({count})}});
}

ValueId OpKernel::thread() {
  return b_.create(Opcode::kThreadIdx, {}, ir::kI32Type, {{AttrKey::kAxis, 0}});
}

ValueId OpKernel::data(Type type) {
  if (constants_) return b_.constant(type, one_and_a_bit(type.scalar));
  const ValueId from = view(type.scalar);
  if (type.is_scalar() || type.kind == ir::TypeKind::kVector) {
    return b_.create(Opcode::kLoad, {from, thread()}, type);
  }
  std::vector<ValueId> elements;
  for (int i = 0; i < type.count; ++i) {
    elements.push_back(b_.create(Opcode::kLoad, {from, thread()}, type.element()));
  }
  return b_.create(Opcode::kPack, absl::MakeConstSpan(elements), type);
}

void OpKernel::keep(ValueId value) {
  const Type type = kernel_.type(value);
  if (type.kind == ir::TypeKind::kFragment) {
    for (int i = 0; i < type.count; ++i) {
      keep(b_.create(Opcode::kExtract, {value}, type.element(), {{AttrKey::kIndex, i}}));
    }
  } else {
    b_.create(Opcode::kStore, {view(type.scalar), value, thread()});
  }
}

Recipes recipes() {
  Recipes all;
  add_value_recipes(all);
  add_memory_recipes(all);
  add_async_recipes(all);
  return all;
}

}  // namespace heddle::codegen
