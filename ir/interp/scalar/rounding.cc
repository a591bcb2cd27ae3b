// Arithmetic and conversions in another rounding mode than to nearest, which the processor is put
// into for the length of an instruction. This file is compiled with -frounding-math.
#include "heddle/ir/rounding.h"

#include <cfenv>

#include "heddle/ir/interp/scalar/arithmetic.h"
#include "heddle/ir/interp/scalar/elementwise.h"

namespace heddle::ir::interp {
namespace {

class RoundingScope {
 public:
  explicit RoundingScope(uint32_t rounding) : before_(std::fegetround()) {
    constexpr int kModes[kRoundingCount] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(kModes[rounding]);
  }
  ~RoundingScope() { std::fesetround(before_); }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  const int before_;
};

template <Handler kHandler>
const Instr* run_rounded(const Instr* instr, Warp& warp) {
  const RoundingScope scope(instr->aux);
  return kHandler(instr, warp);
}

struct FusedMultiplyAdd {
  template <class T>
  static T apply(T a, T b, T c) {
    return std::fma(a, b, c);
  }
};

template <class To>
struct RoundedConvert {
  template <class From>
  static To apply(From x) {
    if constexpr (std::is_integral_v<To>) {
      return saturate<To, (sizeof(From) == 8 || sizeof(To) == 8)>(std::nearbyint(x));
    } else {
      return static_cast<To>(x);
    }
  }
};

// In one of two ways, whatever the processor does.
const Instr* run_to_power(const Instr* instr, Warp& warp) {
  struct Up {
    static E8M0 apply(float x) { return e8m0_from<true>(x); }
  };
  struct Down {
    static E8M0 apply(float x) { return e8m0_from<false>(x); }
  };
  return static_cast<Rounding>(instr->aux) == Rounding::kUp
             ? run_unary<Up, E8M0, float>(instr, warp)
             : run_unary<Down, E8M0, float>(instr, warp);
}

struct Row {
  Opcode opcode;
  Handler single, twice;  // f32, f64
};
#define HEDDLE_BOTH(run, function) \
  &run_rounded<&run<function, float, float>>, &run_rounded<&run<function, double, double>>
constexpr Row kRows[] = {
    {Opcode::kAddRounded, HEDDLE_BOTH(run_binary, Add)},
    {Opcode::kSubRounded, HEDDLE_BOTH(run_binary, Sub)},
    {Opcode::kMulRounded, HEDDLE_BOTH(run_binary, Mul)},
    {Opcode::kDivRounded, HEDDLE_BOTH(run_binary, Div)},
    {Opcode::kSqrtRounded, HEDDLE_BOTH(run_unary, Sqrt)},
    {Opcode::kRcpRounded, HEDDLE_BOTH(run_unary, Rcp)},
    {Opcode::kFmaRounded, &run_rounded<&run_ternary<FusedMultiplyAdd, float>>,
     &run_rounded<&run_ternary<FusedMultiplyAdd, double>>},
};
#undef HEDDLE_BOTH

struct Conversion {
  Scalar from, to;
  Handler handler;
};
template <Scalar kFrom, Scalar kTo>
constexpr Conversion conversion() {
  return {kFrom, kTo, &run_rounded<&run_unary<RoundedConvert<Lane<kTo>>, Lane<kTo>, Lane<kFrom>>>};
}
constexpr Conversion kConversions[] = {
    conversion<Scalar::kF32, Scalar::kI32>(), conversion<Scalar::kF32, Scalar::kU32>(),
    conversion<Scalar::kF32, Scalar::kI64>(), conversion<Scalar::kF32, Scalar::kU64>(),
    conversion<Scalar::kF64, Scalar::kI32>(), conversion<Scalar::kF64, Scalar::kU32>(),
    conversion<Scalar::kF64, Scalar::kI64>(), conversion<Scalar::kF64, Scalar::kU64>(),
    conversion<Scalar::kI32, Scalar::kF32>(), conversion<Scalar::kU32, Scalar::kF32>(),
    conversion<Scalar::kI64, Scalar::kF32>(), conversion<Scalar::kU64, Scalar::kF32>(),
    conversion<Scalar::kI64, Scalar::kF64>(), conversion<Scalar::kU64, Scalar::kF64>(),
    conversion<Scalar::kF64, Scalar::kF32>(), {Scalar::kF32, Scalar::kE8M0, &run_to_power},
};

}  // namespace

Handler rounded_handler(Opcode opcode, Scalar scalar) {
  for (const Row& row : kRows) {
    if (row.opcode == opcode) return scalar == Scalar::kF32 ? row.single : row.twice;
  }
  return nullptr;
}

Handler rounded_convert_handler(Scalar from, Scalar to) {
  for (const Conversion& row : kConversions) {
    if (row.from == from && row.to == to) return row.handler;
  }
  return nullptr;
}

}  // namespace heddle::ir::interp
