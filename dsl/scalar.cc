#include "heddle/dsl/scalar.h"

#include "heddle/ir/float16.h"
#include "heddle/ir/float8.h"
#include "heddle/ir/type.h"

namespace heddle {

half::half(double value) : bits(ir::double_to_f16(value)) {}
float half::to_float() const { return ir::f16_to_float(bits); }

bfloat16::bfloat16(double value) : bits(ir::double_to_bf16(value)) {}
float bfloat16::to_float() const { return ir::bf16_to_float(bits); }

float8_e4m3::float8_e4m3(double value) : bits(ir::double_to_e4m3(value)) {}
float float8_e4m3::to_float() const { return ir::e4m3_to_float(bits); }

float8_e5m2::float8_e5m2(double value) : bits(ir::double_to_e5m2(value)) {}
float float8_e5m2::to_float() const { return ir::e5m2_to_float(bits); }

float8_e8m0::float8_e8m0(double value) : bits(ir::double_to_e8m0(value)) {}
float float8_e8m0::to_float() const { return ir::e8m0_to_float(bits); }

float4_e2m1x2::float4_e2m1x2(double first, double second)
    : bits(ir::doubles_to_e2m1x2(first, second)) {}
float float4_e2m1x2::first() const { return ir::e2m1_to_float(bits); }
float float4_e2m1x2::second() const { return ir::e2m1_to_float(static_cast<uint8_t>(bits >> 4)); }

namespace detail {

#define HEDDLE_SCALAR(type, name) \
  template <>                     \
  ir::Scalar scalar_of<type>() {  \
    return ir::Scalar::name;      \
  }
HEDDLE_SCALAR(bool, kBool)
HEDDLE_SCALAR(int8_t, kI8)
HEDDLE_SCALAR(uint8_t, kU8)
HEDDLE_SCALAR(int16_t, kI16)
HEDDLE_SCALAR(uint16_t, kU16)
HEDDLE_SCALAR(int32_t, kI32)
HEDDLE_SCALAR(uint32_t, kU32)
HEDDLE_SCALAR(int64_t, kI64)
HEDDLE_SCALAR(uint64_t, kU64)
HEDDLE_SCALAR(float8_e4m3, kE4M3)
HEDDLE_SCALAR(float8_e5m2, kE5M2)
HEDDLE_SCALAR(float8_e8m0, kE8M0)
HEDDLE_SCALAR(float4_e2m1x2, kE2M1X2)
HEDDLE_SCALAR(half, kF16)
HEDDLE_SCALAR(bfloat16, kBF16)
HEDDLE_SCALAR(float, kF32)
HEDDLE_SCALAR(double, kF64)
#undef HEDDLE_SCALAR

}  // namespace detail
}  // namespace heddle
