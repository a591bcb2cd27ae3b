// a * b + c rounded once, in f32 and f64. The build is for any x86-64, whose baseline has no such
// instruction; where the processor at hand has one, it is used.
#include <cmath>

#include "heddle/ir/interp/scalar/elementwise.h"

namespace heddle::ir::interp {
namespace {

struct PortableFma {
  static float apply(float a, float b, float c) {
    // The product is exact in f64; the sum, rounded to odd there, is then rounded only once.
    return static_cast<float>(odd_sum(double{a} * double{b}, double{c}));
  }
  static double apply(double a, double b, double c) { return std::fma(a, b, c); }
};

#if defined(__x86_64__)
#define HEDDLE_FMA_TARGET __attribute__((target("avx2,fma")))

HEDDLE_FMA_TARGET const Instr* run_fma_f32(const Instr* instr, Warp& warp) {
  const uint32_t count = instr->count;
  float* __restrict d = warp.reg<float>(instr->dst);
  const float* a = warp.reg<float>(instr->a);
  const float* b = warp.reg<float>(instr->b);
  const float* c = warp.reg<float>(instr->c);
  for (uint32_t e = 0; e < count; ++e, d += kLanes, a += kLanes, b += kLanes, c += kLanes) {
    for (int l = 0; l < kLanes; ++l) d[l] = __builtin_fmaf(a[l], b[l], c[l]);
  }
  return instr + 1;
}

HEDDLE_FMA_TARGET const Instr* run_fma_f64(const Instr* instr, Warp& warp) {
  const uint32_t count = instr->count;
  double* __restrict d = warp.reg<double>(instr->dst);
  const double* a = warp.reg<double>(instr->a);
  const double* b = warp.reg<double>(instr->b);
  const double* c = warp.reg<double>(instr->c);
  for (uint32_t e = 0; e < count; ++e, d += kLanes, a += kLanes, b += kLanes, c += kLanes) {
    for (int l = 0; l < kLanes; ++l) d[l] = __builtin_fma(a[l], b[l], c[l]);
  }
  return instr + 1;
}

#undef HEDDLE_FMA_TARGET

bool has_instruction() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif

}  // namespace

Handler portable_fma_handler(Scalar scalar) {
  return scalar == Scalar::kF32 ? &run_ternary<PortableFma, float>
                                : &run_ternary<PortableFma, double>;
}

Handler fma_handler(Scalar scalar) {
#if defined(__x86_64__)
  if (has_instruction()) return scalar == Scalar::kF32 ? &run_fma_f32 : &run_fma_f64;
#endif
  return portable_fma_handler(scalar);
}

}  // namespace heddle::ir::interp
