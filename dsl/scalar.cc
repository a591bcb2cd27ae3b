#include "heddle/dsl/scalar.h"

#include "heddle/ir/float16.h"
#include "heddle/ir/float8.h"
#include "heddle/ir/tfloat32.h"
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

tfloat32::tfloat32(double value) : bits(ir::double_to_tf32(value)) {}
float tfloat32::to_float() const { return ir::tf32_to_float(bits); }

namespace detail {

#define HEDDLE_SCALAR_TYPE(enumerator, name, bits, scalar_class, storage_only, host) \
  template <>                                                                        \
  ir::Scalar scalar_of<host>() {                                                     \
    return ir::Scalar::enumerator;                                                   \
  }
#include "heddle/ir/scalars.def"

}  // namespace detail
}  // namespace heddle
