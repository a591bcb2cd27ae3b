#include "heddle/dsl/scalar.h"

#include "heddle/ir/float16.h"
#include "heddle/ir/type.h"

namespace heddle {

half::half(double value) : bits(ir::double_to_f16(value)) {}
float half::to_float() const { return ir::f16_to_float(bits); }

bfloat16::bfloat16(double value) : bits(ir::double_to_bf16(value)) {}
float bfloat16::to_float() const { return ir::bf16_to_float(bits); }

namespace detail {

#define HEDDLE_SCALAR(type, name) \
  template <>                     \
  ir::Scalar scalar_of<type>() {  \
    return ir::Scalar::name;      \
  }
HEDDLE_SCALAR(bool, kBool)
HEDDLE_SCALAR(int32_t, kI32)
HEDDLE_SCALAR(uint32_t, kU32)
HEDDLE_SCALAR(int64_t, kI64)
HEDDLE_SCALAR(uint64_t, kU64)
HEDDLE_SCALAR(half, kF16)
HEDDLE_SCALAR(bfloat16, kBF16)
HEDDLE_SCALAR(float, kF32)
HEDDLE_SCALAR(double, kF64)
#undef HEDDLE_SCALAR

}  // namespace detail
}  // namespace heddle
