// Kernels around single ops, for tests that take every op of the table through the emitter: how to
// build the ops that the signature alone does not tell how to use. op_recipes_value.cc,
// op_recipes_memory.cc and op_recipes_async.cc hold the recipes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "heddle/ir/builder.h"
#include "heddle/ir/kernel.h"

namespace heddle::codegen {

inline constexpr ir::Scalar kAllScalars[] = {
    ir::Scalar::kBool, ir::Scalar::kI8,   ir::Scalar::kU8,     ir::Scalar::kI16, ir::Scalar::kU16,
    ir::Scalar::kI32,  ir::Scalar::kU32,  ir::Scalar::kI64,    ir::Scalar::kU64, ir::Scalar::kE4M3,
    ir::Scalar::kE5M2, ir::Scalar::kE8M0, ir::Scalar::kE2M1X2, ir::Scalar::kF16, ir::Scalar::kBF16,
    ir::Scalar::kF32,  ir::Scalar::kF64};

// A kernel around some ops: operands come from memory, or are constants; results go to memory.
class OpKernel {
 public:
  OpKernel(const std::string& name, const ir::Target& target, bool constants);

  ir::Kernel& kernel() { return kernel_; }
  ir::Builder& b() { return b_; }

  // A parameter, and an array of so many elements.
  ir::ValueId view(ir::Scalar scalar);
  ir::ValueId shared(ir::Scalar scalar, int64_t count);
  ir::ValueId thread();
  // A value of any data type.
  ir::ValueId data(ir::Type type);
  // Makes the result visible: everything in it is stored.
  void keep(ir::ValueId value);

 private:
  ir::Kernel kernel_;
  ir::Builder b_;
  bool constants_;
  std::map<ir::Scalar, ir::ValueId> views_;
};

using Recipe = std::function<void(OpKernel&)>;
struct Recipes {
  std::map<std::string, Recipe> by_name;  // "<op>", "<op>_f32"
  std::set<ir::Opcode> ops;               // that they build
};
Recipes recipes();

// The parts of recipes(): control flow, vectors and texts; memory and atomics; what runs beside the
// threads, or in many of them at once.
void add_value_recipes(Recipes& all);
void add_memory_recipes(Recipes& all);
void add_async_recipes(Recipes& all);

}  // namespace heddle::codegen
