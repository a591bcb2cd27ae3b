// Arithmetic.
#include "heddle/ir/interp/scalar/arithmetic.h"

#include "heddle/ir/interp/scalar/elementwise.h"

namespace heddle::ir::interp {
namespace {

using NoF64 = ScalarList<Scalar::kF16, Scalar::kBF16, Scalar::kF32>;

constexpr OpcodeRow kRows[] = {
    {Opcode::kAdd, binary_row<Add>(Numbers{})},
    {Opcode::kSub, binary_row<Sub>(Numbers{})},
    {Opcode::kMul, binary_row<Mul>(Numbers{})},
    {Opcode::kDiv, binary_row<Div>(Numbers{})},
    {Opcode::kRem, binary_row<Rem>(Integers{})},
    {Opcode::kMin, binary_row<Min>(Numbers{})},
    {Opcode::kMax, binary_row<Max>(Numbers{})},
    {Opcode::kNeg, unary_row<Neg>(Numbers{})},
    {Opcode::kAbs, unary_row<Abs>(Numbers{})},
    {Opcode::kSqrt, unary_row<Sqrt>(Floats{})},
    {Opcode::kRcp, unary_row<Rcp>(Floats{})},
    {Opcode::kAnd, binary_row<And>(BitTypes{})},
    {Opcode::kOr, binary_row<Or>(BitTypes{})},
    {Opcode::kXor, binary_row<Xor>(BitTypes{})},
    {Opcode::kMulHi, binary_row<MulHi>(Integers{})},
    {Opcode::kRcpApprox, unary_row<Rcp>(NoF64{})},
    {Opcode::kExp2, unary_row<Exp2>(NoF64{})},
    {Opcode::kRsqrt, unary_row<Rsqrt>(NoF64{})},
    {Opcode::kLog2, unary_row<Log2>(NoF64{})},
    {Opcode::kSinApprox, unary_row<Sin>(NoF64{})},
    {Opcode::kCosApprox, unary_row<Cos>(NoF64{})},
    {Opcode::kTanhApprox, unary_row<Tanh>(NoF64{})},
    {Opcode::kSaturate, unary_row<Saturate>(Floats{})},
    {Opcode::kMinNan, binary_row<MinNan>(NoF64{})},
    {Opcode::kMaxNan, binary_row<MaxNan>(NoF64{})},
    {Opcode::kFloor, unary_row<Floor>(Floats{})},
    {Opcode::kCeil, unary_row<Ceil>(Floats{})},
    {Opcode::kTrunc, unary_row<Trunc>(Floats{})},
    {Opcode::kRint, unary_row<Rint>(Floats{})},
    {Opcode::kFma, ternary_row<Fma>(ScalarList<Scalar::kI32, Scalar::kU32, Scalar::kI64,
                                               Scalar::kU64, Scalar::kF16, Scalar::kBF16>{})},
};

}  // namespace

Handler arithmetic_handler(Opcode opcode, Scalar scalar) {
  if (opcode == Opcode::kFma && (scalar == Scalar::kF32 || scalar == Scalar::kF64)) {
    return fma_handler(scalar);
  }
  return handler_in(kRows, opcode, scalar);
}

Handler elementwise_handler(Opcode opcode, Scalar scalar) {
  for (const auto table : {arithmetic_handler, bits_handler, compare_handler}) {
    if (const Handler handler = table(opcode, scalar)) return handler;
  }
  return nullptr;
}

}  // namespace heddle::ir::interp
