// Conversions between every two element types.
#include "heddle/ir/interp/scalar/arithmetic.h"
#include "heddle/ir/interp/scalar/elementwise.h"

namespace heddle::ir::interp {
namespace {

template <class To>
struct Convert {
  static constexpr bool kSignless = false;
  template <class From>
  static To apply(From x) {
    if constexpr (std::is_same_v<To, From>) {
      return x;
    } else if constexpr (std::is_same_v<To, Bool>) {
      if constexpr (std::is_same_v<From, E8M0>) {
        return 1;  // it has no zero
      } else if constexpr (std::is_same_v<From, TF32>) {
        return to_float(x) != 0 ? 1 : 0;
      } else if constexpr (kIsHalf<From>) {
        return (x.bits & (0x7FFFu >> (16 - 8 * sizeof(x)))) != 0 ? 1 : 0;
      } else {
        return x != 0 ? 1 : 0;
      }
    } else if constexpr (kIsHalf<To>) {
      if constexpr (kIsHalf<From>) {
        return half_from<To>(to_float(x));
      } else if constexpr (std::is_same_v<From, float>) {
        return half_from<To>(x);
      } else if constexpr (std::is_same_v<From, double>) {
        return half_from<To>(odd_float_from(x));
      } else if constexpr (sizeof(From) < 8) {
        return half_from<To>(odd_float_from(static_cast<double>(x)));
      } else {
        return half_from<To>(odd_float_from(x));
      }
    } else if constexpr (kIsFloat<To>) {
      return static_cast<To>(widen(x));
    } else if constexpr (kIsFloat<From>) {
      return saturate<To, (sizeof(From) == 8 || sizeof(To) == 8)>(widen(x));
    } else {
      return static_cast<To>(x);
    }
  }
};

template <Scalar kFrom, Scalar... kTo>
constexpr HandlerRow row_from(ScalarList<kTo...>) {
  HandlerRow row{};
  ((row[static_cast<size_t>(kTo)] = &run_unary<Convert<Lane<kTo>>, Lane<kTo>, Lane<kFrom>>), ...);
  return row;
}

using ConversionTable = std::array<HandlerRow, kScalarCount>;

template <Scalar... kFrom>
constexpr ConversionTable all_rows(ScalarList<kFrom...>) {
  ConversionTable table{};
  ((table[static_cast<size_t>(kFrom)] = row_from<kFrom>(DataTypes{})), ...);
  return table;
}

// Neighbours lie `kLanes` apart.
const Instr* run_e2m1_pack(const Instr* instr, Warp& warp) {
  E2M1x2* d = warp.reg<E2M1x2>(instr->dst);
  const float* a = warp.reg<float>(instr->a);
  for (uint32_t e = 0; e < instr->count; ++e, d += kLanes, a += 2 * kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      d[l] = {static_cast<uint8_t>(e2m1_from(a[l]) | e2m1_from(a[kLanes + l]) << 4)};
    }
  }
  return instr + 1;
}

const Instr* run_e2m1_unpack(const Instr* instr, Warp& warp) {
  F16* d = warp.reg<F16>(instr->dst);
  const E2M1x2* a = warp.reg<E2M1x2>(instr->a);
  for (uint32_t e = 0; e < instr->count; ++e, d += 2 * kLanes, a += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      d[l] = e2m1_to_f16(a[l].bits);
      d[kLanes + l] = e2m1_to_f16(a[l].bits >> 4);
    }
  }
  return instr + 1;
}

constexpr ConversionTable kTable = all_rows(DataTypes{});

}  // namespace

Handler convert_handler(Scalar from, Scalar to) {
  return kTable[static_cast<size_t>(from)][static_cast<size_t>(to)];
}

Handler e2m1_handler(Opcode opcode) {
  return opcode == Opcode::kE2m1Pack ? run_e2m1_pack : run_e2m1_unpack;
}

}  // namespace heddle::ir::interp
