#include "gtest/gtest.h"
#include "heddle/ir/passes/passes.h"
#include "heddle/ir/text/literal.h"
#include "heddle/ir/verify/verifier.h"
#include "ir/passes/pass_text.h"
#include "ir/text/parse_text.h"

namespace heddle::ir {
namespace {

constexpr absl::string_view kParams =
    "%a: i32, %b: i32, %u: u32, %v: u32, %l: i64, %m: i64, %w: u64, %p: bool, %q: bool, "
    "%f: f32, %g: f32, %e: f32, %d: f64, %h: f16, %k: bf16, "
    "%x: view<f32, global, 2> [?, 48] strides [48, 1]";

// A value as an expression: parameters by name, constants as literals, ops by mnemonic.
std::string expression(const Kernel& kernel, ValueId value) {
  const Op* const op = kernel.def(value);
  if (op == nullptr) return std::string(kernel.text(kernel.value(value).name));
  const Type type = kernel.type(value);
  if (const auto bits = kernel.constant_bits(value)) {
    return absl::StrCat(literal_to_string(type.scalar, *bits), type.is_scalar() ? "" : "...");
  }
  std::string text(info(*op).mnemonic);
  if (op->opcode == Opcode::kConvert || op->opcode == Opcode::kBitcast) {
    absl::StrAppend(&text, ".", to_string(type));
  }
  for (const AttrKey key : {AttrKey::kAxis, AttrKey::kIndex, AttrKey::kDim}) {
    if (const auto attr = op->attr(key)) absl::StrAppend(&text, "#", *attr);
  }
  text += "(";
  for (size_t i = 0; i < op->operands.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", expression(kernel, op->operands[i]));
  }
  return text + ")";
}

// What fold makes of %r, the last value that these ops compute.
std::string folded(absl::string_view ops, absl::string_view block = "256, 1, 1") {
  Kernel kernel = parse_body(
      block, kParams,
      absl::StrCat(ops, "%lane_ = const 0 : i32\n%kept = shfl.idx %r, %lane_ : ", to_string([&] {
                     const Kernel k = parse_body(block, kParams, ops);
                     return k.type(value_named(k, "r"));
                   }()),
                   "\n"));
  fold(kernel);
  return expression(kernel, kernel.def(value_named(kernel, "kept"))->operands[0]);
}

// Constants that rules use, by name: one line each.
std::string with(absl::string_view constants, absl::string_view ops) {
  return absl::StrCat(constants, "\n", ops, "\n");
}
constexpr absl::string_view kInts =
    "%c0 = const 0 : i32\n%c1 = const 1 : i32\n%c3 = const 3 : i32\n%c4 = const 4 : i32\n"
    "%c5 = const 5 : i32\n%c8 = const 8 : i32\n%n1 = const -1 : i32\n"
    "%s1 = const 1 : u32\n%s2 = const 2 : u32\n%s3 = const 3 : u32\n%s40 = const 40 : u32\n"
    "%tx = thread_idx {axis = x} : i32\n";
constexpr absl::string_view kFloats =
    "%pz = const 0.0 : f32\n%nz = const -0.0 : f32\n%one = const 1.0 : f32\n"
    "%m1 = const -1.0 : f32\n%two = const 2.0 : f32\n%three = const 3.0 : f32\n"
    "%nan = const 0x7fc00000 : f32\n";

std::string ints(absl::string_view ops) { return folded(with(kInts, ops)); }
std::string floats(absl::string_view ops) { return folded(with(kFloats, ops)); }

TEST(Fold, ConstantsOfEveryKind) {
  EXPECT_EQ(ints("%r = add %c3, %c4 : i32"), "7");
  EXPECT_EQ(ints("%r = sub %c3, %c4 : i32"), "-1");
  EXPECT_EQ(ints("%t = mul %c3, %n1 : i32\n%r = abs %t : i32"), "3");
  EXPECT_EQ(ints("%r = fma %c3, %c4, %c5 : i32"), "17");
  EXPECT_EQ(ints("%r = lt %c3, %c4 : bool"), "true");
  EXPECT_EQ(ints("%r = select %p, %c3, %c3 : i32"), "3");
  EXPECT_EQ(ints("%r = convert %n1 : u32"), "4294967295");
  EXPECT_EQ(floats("%r = add %one, %two : f32"), "3.0");
  EXPECT_EQ(floats("%r = convert %three : i32"), "3");
  EXPECT_EQ(ints("%i = const -3 : i8\n%r = convert %i : i32"), "-3");
  EXPECT_EQ(ints("%i = const -3 : i16\n%r = convert %i : u32"), "4294967293");
  EXPECT_EQ(floats("%r = lt %nan, %one : bool"), "false");
  EXPECT_EQ(folded("%t = const 2.5 : vec<f32, 4>\n%r = add %t, %t : vec<f32, 4>\n"), "5.0...");
}

TEST(Fold, LeavesAloneWhatIsUnspecified) {
  EXPECT_EQ(ints("%r = div %c3, %c0 : i32"), "div(3, 0)");
  EXPECT_EQ(ints("%r = rem %c3, %c0 : i32"), "rem(3, 0)");
  EXPECT_EQ(ints("%t = const -2147483648 : i32\n%r = rem %t, %n1 : i32"), "rem(-2147483648, -1)");
  EXPECT_EQ(floats("%r = sub %nan, %one : f32"), "sub(0x7fc00000, 1.0)");
  EXPECT_EQ(floats("%r = div %pz, %pz : f32"), "div(0.0, 0.0)");
  EXPECT_EQ(floats("%r = abs %nan : f32"), "abs(0x7fc00000)");
  EXPECT_EQ(floats("%r = exp2 %one : f32"), "exp2(1.0)");
  // A NaN that is passed on keeps its bits.
  EXPECT_EQ(floats("%r = neg %nan : f32"), "0xffc00000");
}

TEST(Fold, IntegerSums) {
  EXPECT_EQ(ints("%r = add %a, %c0 : i32"), "a");
  EXPECT_EQ(ints("%r = add %c0, %a : i32"), "a");
  EXPECT_EQ(ints("%r = sub %a, %c3 : i32"), "add(a, -3)");
  EXPECT_EQ(ints("%r = sub %a, %a : i32"), "0");
  EXPECT_EQ(ints("%r = sub %c0, %a : i32"), "neg(a)");
  EXPECT_EQ(ints("%t = add %c3, %a : i32\n%r = add %t, %c4 : i32"), "add(a, 7)");
  EXPECT_EQ(ints("%t = add %a, %c4 : i32\n%r = sub %t, %c4 : i32"), "a");
  EXPECT_EQ(ints("%t = sub %c3, %a : i32\n%r = add %t, %c4 : i32"), "sub(7, a)");
  EXPECT_EQ(ints("%t = add %a, %c4 : i32\n%r = sub %c3, %t : i32"), "sub(-1, a)");
  EXPECT_EQ(ints("%t = sub %a, %b : i32\n%r = add %b, %t : i32"), "a");
  EXPECT_EQ(ints("%t = add %a, %b : i32\n%r = sub %t, %a : i32"), "b");
  EXPECT_EQ(ints("%t = neg %b : i32\n%r = add %t, %a : i32"), "sub(a, b)");
  EXPECT_EQ(ints("%t = neg %b : i32\n%r = sub %a, %t : i32"), "add(a, b)");
  EXPECT_EQ(ints("%t = sub %a, %b : i32\n%r = neg %t : i32"), "sub(b, a)");
  EXPECT_EQ(ints("%t = neg %a : i32\n%r = neg %t : i32"), "a");
  // The largest number wraps around.
  EXPECT_EQ(ints("%t = const 2147483647 : i32\n%s = add %a, %t : i32\n%r = add %s, %c1 : i32"),
            "add(a, -2147483648)");
}

TEST(Fold, IntegerProducts) {
  EXPECT_EQ(ints("%r = mul %a, %c0 : i32"), "0");
  EXPECT_EQ(ints("%r = mul %c1, %a : i32"), "a");
  EXPECT_EQ(ints("%r = mul %a, %n1 : i32"), "neg(a)");
  EXPECT_EQ(ints("%t = mul %a, %c3 : i32\n%r = mul %t, %c5 : i32"), "mul(a, 15)");
  // 32 bits multiply as fast as they shift.
  EXPECT_EQ(ints("%r = mul %a, %c8 : i32"), "mul(a, 8)");
  EXPECT_EQ(folded("%c = const 8 : i64\n%r = mul %l, %c : i64\n"), "shl(l, 3)");
  EXPECT_EQ(folded("%c = const 9223372036854775808 : u64\n%r = mul %w, %c : u64\n"), "shl(w, 63)");
  EXPECT_EQ(folded("%c = const -9223372036854775808 : i64\n%r = mul %l, %c : i64\n"),
            "mul(l, -9223372036854775808)");
  EXPECT_EQ(ints("%r = fma %c3, %a, %b : i32"), "fma(a, 3, b)");
  EXPECT_EQ(ints("%r = fma %a, %c1, %b : i32"), "add(a, b)");
  EXPECT_EQ(ints("%r = fma %a, %c0, %b : i32"), "b");
  EXPECT_EQ(ints("%r = fma %a, %b, %c0 : i32"), "mul(a, b)");
  EXPECT_EQ(ints("%r = fma %c3, %c4, %b : i32"), "add(b, 12)");
}

TEST(Fold, DivisionByPowersOfTwo) {
  EXPECT_EQ(ints("%r = div %a, %c4 : i32"), "div(a, 4)");  // -1 / 4 is 0
  EXPECT_EQ(ints("%r = rem %a, %c4 : i32"), "rem(a, 4)");
  EXPECT_EQ(ints("%r = div %tx, %c4 : i32"), "shr(thread_idx#0(), 2)");
  EXPECT_EQ(ints("%r = rem %tx, %c4 : i32"), "and(thread_idx#0(), 3)");
  EXPECT_EQ(folded("%c = const 16 : u32\n%r = div %u, %c : u32\n"), "shr(u, 4)");
  EXPECT_EQ(folded("%c = const 16 : u32\n%r = rem %u, %c : u32\n"), "and(u, 15)");
  EXPECT_EQ(folded("%c = const 2147483648 : u32\n%r = div %u, %c : u32\n"), "shr(u, 31)");
  EXPECT_EQ(ints("%r = div %a, %c1 : i32"), "a");
  EXPECT_EQ(ints("%r = rem %a, %c1 : i32"), "0");
  EXPECT_EQ(ints("%r = div %a, %n1 : i32"), "neg(a)");
  EXPECT_EQ(ints("%t = div %a, %c3 : i32\n%r = div %t, %c5 : i32"), "div(a, 15)");
  EXPECT_EQ(ints("%t = mul %tx, %c5 : i32\n%r = div %t, %c5 : i32"), "thread_idx#0()");
  EXPECT_EQ(ints("%t = mul %a, %c5 : i32\n%r = div %t, %c5 : i32"), "div(mul(a, 5), 5)");
  EXPECT_EQ(ints("%t = mul %tx, %c8 : i32\n%r = rem %t, %c4 : i32"), "0");
  EXPECT_EQ(ints("%c = const 300 : i32\n%r = rem %tx, %c : i32"), "thread_idx#0()");
  EXPECT_EQ(ints("%c = const 256 : i32\n%r = rem %tx, %c : i32"), "thread_idx#0()");
  EXPECT_EQ(ints("%c = const 255 : i32\n%r = rem %tx, %c : i32"), "rem(thread_idx#0(), 255)");
  EXPECT_EQ(ints("%c = const 256 : i32\n%r = div %tx, %c : i32"), "0");
}

TEST(Fold, RemainderAsksForDivisibility) {
  Kernel kernel = parse_body("256, 1, 1", "%x: view<f32, global, 1> [?] strides [1]",
                             "%n = extent %x {dim = 0} : i32\n%c = const 4 : i32\n"
                             "%t = rem %n, %c : i32\n%kept = shfl.idx %t, %c : i32\n");
  kernel.set_fact({FactKind::kExtentDivisor, 0, 0}, 8);
  fold(kernel);
  EXPECT_EQ(expression(kernel, kernel.def(value_named(kernel, "kept"))->operands[0]), "0");
  ASSERT_EQ(kernel.facts_read().size(), 1u);
  EXPECT_EQ(kernel.facts_read()[0].value, 8);
}

TEST(Fold, MinMaxAbs) {
  EXPECT_EQ(ints("%r = min %a, %a : i32"), "a");
  EXPECT_EQ(ints("%c = const 255 : i32\n%r = min %tx, %c : i32"), "thread_idx#0()");
  EXPECT_EQ(ints("%r = max %n1, %tx : i32"), "thread_idx#0()");
  EXPECT_EQ(ints("%c = const 254 : i32\n%r = min %tx, %c : i32"), "min(thread_idx#0(), 254)");
  EXPECT_EQ(ints("%t = min %a, %c5 : i32\n%r = min %t, %c3 : i32"), "min(a, 3)");
  EXPECT_EQ(ints("%r = abs %tx : i32"), "thread_idx#0()");
  EXPECT_EQ(ints("%r = abs %u : u32"), "u");
  EXPECT_EQ(ints("%t = neg %a : i32\n%r = abs %t : i32"), "abs(a)");
  EXPECT_EQ(ints("%t = neg %u : u32\n%r = abs %t : u32"), "neg(u)");
  EXPECT_EQ(ints("%t = neg %w : u64\n%r = abs %t : u64"), "neg(w)");
  EXPECT_EQ(floats("%r = max %f, %f : f32"), "f");
  EXPECT_EQ(floats("%t = max %f, %one : f32\n%r = max %t, %two : f32"), "max(f, 2.0)");
  EXPECT_EQ(floats("%t = max %f, %one : f32\n%r = max %t, %nan : f32"),
            "max(max(f, 1.0), 0x7fc00000)");
}

TEST(Fold, FloatIdentitiesHoldForEveryBit) {
  EXPECT_EQ(floats("%r = add %f, %nz : f32"), "f");
  EXPECT_EQ(floats("%r = add %f, %pz : f32"), "add(f, 0.0)");
  EXPECT_EQ(floats("%r = sub %f, %pz : f32"), "f");
  EXPECT_EQ(floats("%r = sub %f, %nz : f32"), "sub(f, 0x80000000)");
  EXPECT_EQ(floats("%r = sub %f, %f : f32"), "sub(f, f)");
  EXPECT_EQ(floats("%r = sub %nz, %f : f32"), "neg(f)");
  EXPECT_EQ(floats("%r = sub %pz, %f : f32"), "sub(0.0, f)");
  EXPECT_EQ(floats("%r = mul %f, %one : f32"), "f");
  EXPECT_EQ(floats("%r = mul %m1, %f : f32"), "neg(f)");
  EXPECT_EQ(floats("%r = mul %f, %pz : f32"), "mul(f, 0.0)");
  EXPECT_EQ(floats("%r = div %f, %one : f32"), "f");
  EXPECT_EQ(floats("%r = div %f, %two : f32"), "mul(f, 0.5)");
  EXPECT_EQ(floats("%r = div %f, %three : f32"), "div(f, 3.0)");
  EXPECT_EQ(floats("%c = const 0x7f000000 : f32\n%r = div %f, %c : f32"), "div(f, 1.7014118e+38)");
  EXPECT_EQ(floats("%c = const 0x00400000 : f32\n%r = div %f, %c : f32"), "mul(f, 1.7014118e+38)");
  EXPECT_EQ(floats("%c = const 4.0 : f16\n%r = div %h, %c : f16"), "mul(h, 0.25)");
  EXPECT_EQ(floats("%t = neg %g : f32\n%r = add %f, %t : f32"), "sub(f, g)");
  EXPECT_EQ(floats("%t = neg %f : f32\n%s = neg %g : f32\n%r = mul %t, %s : f32"), "mul(f, g)");
  EXPECT_EQ(floats("%t = neg %f : f32\n%r = mul %t, %three : f32"), "mul(f, -3.0)");
  EXPECT_EQ(floats("%t = sub %f, %g : f32\n%r = neg %t : f32"), "neg(sub(f, g))");
  EXPECT_EQ(floats("%t = add %f, %one : f32\n%r = add %t, %two : f32"), "add(add(f, 1.0), 2.0)");
  EXPECT_EQ(floats("%r = fma %f, %one, %g : f32"), "add(f, g)");
  EXPECT_EQ(floats("%r = fma %m1, %f, %g : f32"), "sub(g, f)");
  EXPECT_EQ(floats("%r = fma %f, %g, %nz : f32"), "mul(f, g)");
  EXPECT_EQ(floats("%r = fma %f, %g, %pz : f32"), "fma(f, g, 0.0)");
}

TEST(Fold, Bits) {
  EXPECT_EQ(ints("%r = and %a, %c0 : i32"), "0");
  EXPECT_EQ(ints("%r = and %n1, %a : i32"), "a");
  EXPECT_EQ(ints("%r = or %a, %c0 : i32"), "a");
  EXPECT_EQ(ints("%r = or %a, %n1 : i32"), "-1");
  EXPECT_EQ(ints("%r = xor %a, %a : i32"), "0");
  EXPECT_EQ(ints("%r = xor %a, %n1 : i32"), "not(a)");
  EXPECT_EQ(ints("%t = not %a : i32\n%r = not %t : i32"), "a");
  EXPECT_EQ(ints("%t = not %a : i32\n%r = and %t, %a : i32"), "0");
  EXPECT_EQ(ints("%t = not %a : i32\n%r = or %a, %t : i32"), "-1");
  EXPECT_EQ(ints("%t = and %a, %c5 : i32\n%r = and %t, %c3 : i32"), "and(a, 1)");
  EXPECT_EQ(ints("%c = const 255 : i32\n%r = and %tx, %c : i32"), "thread_idx#0()");
  EXPECT_EQ(ints("%c = const 254 : i32\n%r = and %tx, %c : i32"), "and(thread_idx#0(), 254)");
  EXPECT_EQ(ints("%r = and %p, %p : bool"), "p");
  EXPECT_EQ(ints("%t = const true : bool\n%r = xor %p, %t : bool"), "not(p)");
  EXPECT_EQ(ints("%r = shl %a, %s40 : i32"), "0");
  EXPECT_EQ(ints("%r = shr %a, %s40 : i32"), "shr(a, 31)");
  EXPECT_EQ(ints("%r = shr %u, %s40 : u32"), "0");
  EXPECT_EQ(ints("%t = shl %a, %s1 : i32\n%r = shl %t, %s2 : i32"), "shl(a, 3)");
  EXPECT_EQ(ints("%s = const 30 : u32\n%t = shl %a, %s : i32\n%r = shl %t, %s2 : i32"), "0");
  EXPECT_EQ(ints("%s = const 30 : u32\n%t = shr %a, %s : i32\n%r = shr %t, %s3 : i32"),
            "shr(a, 31)");
  EXPECT_EQ(ints("%t = shl %tx, %s2 : i32\n%r = shr %t, %s2 : i32"), "thread_idx#0()");
  EXPECT_EQ(ints("%t = shl %a, %s2 : i32\n%r = shr %t, %s2 : i32"), "shr(shl(a, 2), 2)");
  EXPECT_EQ(ints("%z = const 0 : u32\n%r = shl %a, %z : i32"), "a");
}

TEST(Fold, Comparisons) {
  EXPECT_EQ(ints("%r = eq %a, %a : bool"), "true");
  EXPECT_EQ(ints("%r = lt %a, %a : bool"), "false");
  EXPECT_EQ(floats("%r = eq %f, %f : bool"), "eq(f, f)");  // false for a NaN
  EXPECT_EQ(floats("%r = ne %f, %f : bool"), "ne(f, f)");
  EXPECT_EQ(floats("%r = lt %f, %f : bool"), "false");
  EXPECT_EQ(ints("%r = lt %c3, %a : bool"), "gt(a, 3)");
  EXPECT_EQ(ints("%r = le %c3, %a : bool"), "ge(a, 3)");
  EXPECT_EQ(ints("%c = const 256 : i32\n%r = lt %tx, %c : bool"), "true");
  EXPECT_EQ(ints("%r = lt %tx, %c0 : bool"), "false");
  EXPECT_EQ(ints("%t = add %a, %c3 : i32\n%r = eq %t, %c5 : bool"), "eq(a, 2)");
  EXPECT_EQ(ints("%t = add %a, %c3 : i32\n%r = lt %t, %c5 : bool"), "lt(add(a, 3), 5)");
  EXPECT_EQ(ints("%t = sub %a, %b : i32\n%r = ne %t, %c0 : bool"), "ne(a, b)");
  EXPECT_EQ(ints("%t = convert %p : i32\n%r = ne %t, %c0 : bool"), "p");
  EXPECT_EQ(ints("%t = const false : bool\n%r = eq %p, %t : bool"), "not(p)");
  EXPECT_EQ(ints("%t = lt %a, %b : bool\n%r = not %t : bool"), "ge(a, b)");
  EXPECT_EQ(floats("%t = lt %f, %g : bool\n%r = not %t : bool"), "not(lt(f, g))");
  EXPECT_EQ(floats("%t = eq %f, %g : bool\n%r = not %t : bool"), "ne(f, g)");
}

TEST(Fold, Select) {
  EXPECT_EQ(ints("%r = select %p, %a, %a : i32"), "a");
  EXPECT_EQ(ints("%t = const true : bool\n%r = select %t, %a, %b : i32"), "a");
  EXPECT_EQ(ints("%t = not %p : bool\n%r = select %t, %a, %b : i32"), "select(p, b, a)");
  constexpr absl::string_view bools = "%t = const true : bool\n%s = const false : bool\n";
  EXPECT_EQ(folded(with(bools, "%r = select %p, %t, %s : bool")), "p");
  EXPECT_EQ(folded(with(bools, "%r = select %p, %s, %t : bool")), "not(p)");
  EXPECT_EQ(folded(with(bools, "%r = select %p, %q, %s : bool")), "and(p, q)");
  EXPECT_EQ(folded(with(bools, "%r = select %p, %t, %q : bool")), "or(p, q)");
}

TEST(Fold, Conversions) {
  EXPECT_EQ(ints("%t = convert %a : i64\n%r = convert %t : i32"), "a");
  EXPECT_EQ(ints("%t = convert %a : i64\n%r = convert %t : u32"), "convert.u32(a)");
  EXPECT_EQ(ints("%t = convert %l : i32\n%r = convert %t : i64"), "convert.i64(convert.i32(l))");
  EXPECT_EQ(ints("%t = convert %u : i64\n%r = convert %t : u64"), "convert.u64(u)");
  EXPECT_EQ(ints("%t = convert %a : u32\n%r = convert %t : i64"), "convert.i64(convert.u32(a))");
  EXPECT_EQ(ints("%t = convert %tx : u32\n%r = convert %t : i64"), "convert.i64(thread_idx#0())");
  EXPECT_EQ(ints("%t = convert %a : i64\n%r = convert %t : f32"), "convert.f32(a)");
  EXPECT_EQ(ints("%t = convert %p : i32\n%r = convert %t : bool"), "p");
  EXPECT_EQ(ints("%t = convert %p : i32\n%r = convert %t : f32"), "convert.f32(p)");
  EXPECT_EQ(ints("%t = convert %h : f32\n%r = convert %t : f16"), "h");
  EXPECT_EQ(ints("%t = convert %h : f32\n%r = convert %t : f64"), "convert.f64(h)");
  EXPECT_EQ(ints("%t = convert %d : f32\n%r = convert %t : f64"), "convert.f64(convert.f32(d))");
  EXPECT_EQ(ints("%t = convert %f : f64\n%r = convert %t : i32"),  // NaN: 2^31, not 0
            "convert.i32(convert.f64(f))");
  EXPECT_EQ(ints("%t = convert %d : f32\n%r = convert %t : f16"), "convert.f16(convert.f32(d))");
  EXPECT_EQ(ints("%i = convert %f : e5m2\n%t = convert %i : f16\n%r = convert %t : e5m2"),
            "convert.e5m2(convert.f16(convert.e5m2(f)))");  // infinity: 57344
  EXPECT_EQ(ints("%t = bitcast %f : u32\n%r = bitcast %t : f32"), "f");
  EXPECT_EQ(ints("%t = bitcast %f : u32\n%r = bitcast %t : i32"), "bitcast.i32(f)");
}

TEST(Fold, VectorsAndTheirElements) {
  EXPECT_EQ(ints("%v2 = pack %a, %b : vec<i32, 2>\n%r = extract %v2 {index = 1} : i32"), "b");
  EXPECT_EQ(ints("%v4 = splat %a : vec<i32, 4>\n%r = extract %v4 {index = 3} : i32"), "a");
  EXPECT_EQ(ints("%v2 = pack %a, %a : vec<i32, 2>\n%r = neg %v2 : vec<i32, 2>"), "neg(splat(a))");
  EXPECT_EQ(ints("%v2 = pack %c3, %c3 : vec<i32, 2>\n%r = neg %v2 : vec<i32, 2>"), "-3...");
  EXPECT_EQ(ints("%v2 = pack %a, %b : vec<i32, 2>\n%v4 = pack %v2, %v2 : vec<i32, 4>\n"
                 "%r = extract %v4 {index = 2} : i32"),
            "a");
  EXPECT_EQ(ints("%v4 = pack %a, %b, %b, %a : vec<i32, 4>\n"
                 "%r = slice %v4 {index = 1} : vec<i32, 2>"),
            "splat(b)");
  EXPECT_EQ(ints("%v4 = pack %a, %b, %a, %b : vec<i32, 4>\n%s4 = neg %v4 : vec<i32, 4>\n"
                 "%lo = slice %s4 {index = 0} : vec<i32, 2>\n"
                 "%hi = slice %s4 {index = 2} : vec<i32, 2>\n"
                 "%r = pack %lo, %hi : vec<i32, 4>"),
            "neg(pack(a, b, a, b))");
  EXPECT_EQ(ints("%v4 = pack %a, %b, %a, %b : vec<i32, 4>\n%s4 = neg %v4 : vec<i32, 4>\n"
                 "%lo = slice %s4 {index = 2} : vec<i32, 2>\n"
                 "%r = extract %lo {index = 1} : i32"),
            "extract#3(neg(pack(a, b, a, b)))");
}

TEST(Fold, WhatTheLaunchFixes) {
  EXPECT_EQ(folded("%r = block_dim {axis = x} : i32\n"), "256");
  EXPECT_EQ(folded("%r = block_dim {axis = x} : i32\n", "?"), "block_dim#0()");
  EXPECT_EQ(folded("%r = thread_idx {axis = y} : i32\n"), "0");
  EXPECT_EQ(folded("%r = warp_id : i32\n", "32, 1, 1"), "0");
  EXPECT_EQ(folded("%r = extent %x {dim = 1} : i32\n"), "48");
  EXPECT_EQ(folded("%r = extent %x {dim = 0} : i32\n"), "extent#0(x)");
  EXPECT_EQ(folded("%r = stride %x {dim = 0} : i64\n"), "48");
}

// --- Control flow ---

constexpr absl::string_view kOut = "%y: view<i32, global, 1> [?] strides [1], %n: i32, %p: bool";

TEST(Fold, IfWithAKnownCondition) {
  expect_passes("fold,dce", kOut, R"(
    %t = const true : bool
    %z = const 0 : i32
    %o = const 1 : i32
    %v = if %t : i32 {
      %s = add %n, %o : i32
      yield %s
    } else {
      store %y, %z, %z
      yield %z
    }
    store %y, %v, %z
)",
                R"(
    %z = const 0 : i32
    %o = const 1 : i32
    %s = add %n, %o : i32
    store %y, %s, %z
)");
}

TEST(Fold, IfThatGivesOneValueOrItsCondition) {
  expect_passes("fold,dce", kOut, R"(
    %t = const true : bool
    %f = const false : bool
    %z = const 0 : i32
    %v, %w = if %p : i32, bool {
      store %y, %z, %z
      yield %n, %t
    } else {
      yield %n, %f
    }
    %x = select %w, %v, %z : i32
    store %y, %x, %z
)",
                R"(
    %z = const 0 : i32
    if %p {
      store %y, %z, %z
      yield
    }
    %x = select %p, %n, %z : i32
    store %y, %x, %z
)");
}

TEST(Fold, LoopsThatRunNeverOrOnce) {
  expect_passes("fold,dce", kOut, R"(
    %z = const 0 : i32
    %o = const 1 : i32
    %k = const 256 : i32
    %tx = thread_idx {axis = x} : i32
    %a = for %i in %z .. %z step %o carry(%c = %n) : i32 {
      store %y, %i, %z
      yield %i
    }
    %b = for %h in %tx .. %k step %k carry(%g = %a) : i32 {
      %s = add %g, %h : i32
      %q = for %j in %z .. %o step %o carry(%d = %s) : i32 {
        %m = mul %d, %h : i32
        yield %m
      }
      yield %q
    }
    store %y, %b, %z
)",
                R"(
    %z = const 0 : i32
    %tx = thread_idx {axis = x} : i32
    %s = add %n, %tx : i32
    %m = mul %s, %tx : i32
    store %y, %m, %z
)");
}

TEST(Fold, LoopThatRunsDownOnce) {
  expect_passes("fold,dce", kOut, R"(
    %z = const 0 : i32
    %k = const 4 : i32
    %d = const -4 : i32
    for %i in %k .. %z step %d {
      store %y, %n, %i
      yield
    }
)",
                R"(
    %k = const 4 : i32
    store %y, %n, %k
)");
}

TEST(Fold, ValuesThatLoopsHandOnUnchanged) {
  expect_passes("fold,dce", kOut, R"(
    %z = const 0 : i32
    %o = const 1 : i32
    %a, %b, %c = for %i in %z .. %n step %o carry(%d = %n, %e = %o, %f = %z) : i32, i32, i32 {
      %s = add %f, %e : i32
      %t = mul %d, %e : i32
      store %y, %t, %s
      %u = add %d, %z : i32
      yield %u, %o, %s
    }
    %r = add %a, %b : i32
    store %y, %r, %c
)",
                R"(
    %z = const 0 : i32
    %o = const 1 : i32
    %c = for %i in %z .. %n step %o carry(%f = %z) : i32 {
      %s = add %f, %o : i32
      store %y, %n, %s
      yield %s
    }
    %r = add %n, %o : i32
    store %y, %r, %c
)");
}

TEST(Fold, WhileThatDoesNotRun) {
  expect_passes("fold,dce", kOut, R"(
    %z = const 0 : i32
    %f = const false : bool
    %a = while carry(%c = %n) : i32 {
      store %y, %c, %z
      %g = and %p, %f : bool
      yield %g
    } do(%d) {
      yield %z
    }
    store %y, %a, %z
)",
                R"(
    %z = const 0 : i32
    store %y, %n, %z
    store %y, %n, %z
)");
}

TEST(Fold, AssertionThatHolds) {
  expect_passes("fold,dce", kOut, R"(
    %z = const 0 : i32
    %t = const true : bool
    assert %t {message = "fine"}
    assert %p {message = "perhaps"}
    store %y, %n, %z
)",
                R"(
    %z = const 0 : i32
    assert %p {message = "perhaps"}
    store %y, %n, %z
)");
}

TEST(Fold, FragmentsKeepTheirRegisters) {
  // The copy is what lives on; it must not become the fragment that wgmma takes over.
  constexpr absl::string_view text = R"(
    %z = const 0 : i32
    %one = const 1.0 : f32
    %i = thread_idx {axis = x} : i32
    %e = convert %i : f32
    %acc = splat %e : frag<f32, 64>
    %ones = const 1.0 : frag<f32, 64>
    %copy = mul %acc, %ones : frag<f32, 64>
    %pending = wgmma.begin %acc : pending<f32, 64>
    %done = wgmma.wait %pending {groups = 0} : frag<f32, 64>
    %v = extract %copy {index = 0} : f32
    %w = extract %done {index = 0} : f32
    %s = add %v, %w : f32
    %t = convert %s : i32
    store %y, %t, %z
)";
  Kernel kernel = parse_body("128, 1, 1", kOut, text);
  fold(kernel);
  EXPECT_EQ(to_string(verify(kernel)), "");
  EXPECT_EQ(kernel.def(value_named(kernel, "v"))->operands[0], value_named(kernel, "copy"));
}

// bf16 has division and fma everywhere, and sums and products from sm_90 on.
TEST(Fold, PutsInOnlyWhatTheTargetHas) {
  const char* const ops[] = {"%c = const 2.0 : bf16\n%r = div %k, %c : bf16\n",
                             "%c = const 1.0 : bf16\n%r = fma %k, %c, %k : bf16\n",
                             "%c = const -0.0 : bf16\n%r = fma %k, %k, %c : bf16\n"};
  for (const char* const text : ops) {
    for (const char* const arch : {"sm_80", "sm_90"}) {
      Kernel kernel =
          parse_body("32, 1, 1", kParams,
                     absl::StrCat(text, "%z = const 0 : i32\n%s = shfl.idx %r, %z : bf16\n"));
      kernel.target = find_target(arch);
      const Opcode before = kernel.def(value_named(kernel, "r"))->opcode;
      fold(kernel);
      const Op& after = *kernel.def(kernel.def(value_named(kernel, "s"))->operands[0]);
      EXPECT_EQ(after.opcode == before, absl::string_view(arch) == "sm_80") << text << arch;
    }
  }
}

// Beyond 2^63 a u64 is no multiple of what divides its twin among the i64.
TEST(Fold, RemaindersOfLargeUnsignedNumbers) {
  constexpr absl::string_view kJoined =
      "%big = if %p : u64 {\n%s = const 18446744073709551610 : u64\nyield %s\n} else {\n"
      "%t = const 18446744073709551610 : u64\nyield %t\n}\n";
  const auto rem = [&](absl::string_view by) {
    return folded(absl::StrCat(kJoined, "%c = const ", by, " : u64\n%r = rem %big, %c : u64\n"));
  };
  EXPECT_NE(rem("6"), "0");  // 2^64 - 6 is 6 n + 4
  EXPECT_EQ(rem("10"), "0");
  EXPECT_EQ(rem("2"), "0");
  EXPECT_NE(rem("3"), "0");
}

// Nor is it smaller than what is greater than that twin.
TEST(Fold, ExtremaOfLargeUnsignedNumbers) {
  const std::string text =
      "%big = if %p : u64 {\n%s = const 18446744073709551610 : u64\nyield %s\n} else {\n"
      "%t = const 9223372036854775808 : u64\nyield %t\n}\n"
      "%o = const 1 : u64\n%low = and %w, %o : u64\n";
  for (const absl::string_view op : {"min", "max"}) {
    const std::string extremum = folded(absl::StrCat(text, "%r = ", op, " %big, %low : u64\n"));
    EXPECT_EQ(extremum.substr(0, 4), absl::StrCat(op, "(")) << extremum;
  }
}

}  // namespace
}  // namespace heddle::ir
