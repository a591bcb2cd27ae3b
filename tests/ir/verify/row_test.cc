// What the op table, and single ops, ask for: each mistake with its line, message and fix.

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ir/verify/support.h"

namespace heddle::ir {
namespace {

class RowMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(RowMistake, IsLocatedAndExplained) {
  EXPECT_EQ(mistakes_of(with_body(GetParam().body)), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Row, RowMistake,
    ::testing::ValuesIn(std::vector<Mistake>{
        {"TooFewOperands", R"(%a = add %n : i32)",
         "2: 'add' takes 2 operands (a number; a number), but has 1"},
        {"TooManyOperands", R"(barrier %n)", "2: 'barrier' takes 0 operands, but has 1"},
        {"OptionalOperands", R"(%a = load %x : f32)",
         "2: 'load' takes 2 to 3 operands (a view; i32 or i64; a bounds check, optional), but has "
         "1"},
        {"TooManyForOptional", R"(store %x, %f, %n, %n, %n)",
         "2: 'store' takes 3 to 4 operands (a view; an element of the view, or a vector of them; "
         "i32 or i64; a bounds check, optional), but has 5"},
        {"NoOperandsAtAll", R"(assert {message = "m"})",
         "2: 'assert' takes 1 operand (bool), but has 0"},
        {"TooManyResults", R"(%a, %b = add %n, %n : i32, i32)",
         "2: 'add' gives 1 result (a number), but has 2"},
        {"NoResult", R"(add %n, %n)", "2: 'add' gives 1 result (a number), but has 0"},
        {"OperandsDiffer", R"(%a = add %n, %f : i32)",
         "2: operand 2 of 'add' is f32, but operand 1 is i32; they must have one type; convert one "
         "of them"},
        {"NotANumber", R"(%a = add %p, %p : bool)",
         "2: operand 1 of 'add' is bool, but must be a number"},
        {"NotAnInteger", R"(%a = rem %f, %f : f32)",
         "2: operand 1 of 'rem' is f32, but must be an integer"},
        {"NotAFloat", R"(%a = sqrt %n : i32)",
         "2: operand 1 of 'sqrt' is i32, but must be a float"},
        {"NotBits", R"(%a = and %f, %f : f32)",
         "2: operand 1 of 'and' is f32, but must be an integer or a bool"},
        {"WrongResult", R"(%a = add %n, %n : i64)", "2: result 1 of 'add' is i64, but must be i32"},
        {"ComparisonGivesBool", R"(%a = lt %n, %n : i32)",
         "2: result 1 of 'lt' is i32, but must be bool"},
        {"ConditionIsNoBool", R"(if %n {
yield
})",
         "2: operand 1 of 'if' is i32, but must be bool"},
        {"IndexIsNoIndex", R"(%a = load %x, %f : f32)",
         "2: operand 2 of 'load' is f32, but must be i32 or i64"},
        {"NotAView", R"(%a = load %n, %n : i32)",
         "2: operand 1 of 'load' is i32, but must be a view"},
        {"ElementOfAnotherType", R"(store %x, %n, %n)",
         "2: operand 2 of 'store' is i32, but the view's elements are f32; convert it to f32"},
        {"LoadsAnotherType", R"(%a = load %x, %n : i32)",
         "2: result 1 of 'load' is i32, but must be an element of the view, or a vector of them"},
        {"NotACheck", R"(%a = load %x, %n, %p : f32)",
         "2: operand 3 of 'load' is bool, but must be a bounds check"},
        {"ShiftCountIsU32", R"(%a = shl %n, %n : i32)",
         "2: operand 2 of 'shl' is i32, but must be u32"},
        {"NotAVariable", R"(var.store %n, %n)",
         "2: operand 1 of 'var.store' is i32, but must be a variable"},
        {"NotADescriptor", R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%r = wgmma %q, %n, %n : pending<f32, 4>
wgmma.commit
%s = wgmma.wait %r {groups = 0} : frag<f32, 4>)",
         "4: operand 2 of 'wgmma' is i32, but must be a shared-memory descriptor or a pending "
         "fragment\n"
         "4: operand 3 of 'wgmma' is i32, but must be a shared-memory descriptor"},
        {"NotAFragment", R"(%q = wgmma.begin %f : f32)",
         "2: operand 1 of 'wgmma.begin' is f32, but must be a settled fragment"},
        {"NotPending", R"(%z = const 0.0 : frag<f32, 4>
%s = wgmma.wait %z {groups = 0} : frag<f32, 4>)",
         "3: operand 1 of 'wgmma.wait' is frag<f32, 4>, but must be a pending fragment"},
        {"ShapesDiffer", R"(%v = splat %f : vec<f32, 4>
%a = convert %v : i32)",
         "3: operand 1 of 'convert' is vec<f32, 4>, but its result is i32; they must have the same "
         "shape"},
        {"ConvertsNoCheck", R"(%a = convert %n : check)",
         "2: operand 1 of 'convert' is i32, but its result is check; they must have the same "
         "shape"},
        {"ConstantOfACheck", R"(%a = const 0x0 : smem_desc<f16>)",
         "2: result 1 of 'const' is smem_desc<f16>, but must be data"},
        {"VectorTooLong", R"(%a = splat %f : vec<f32, 16>)",
         "2: vec<f32, 16> is no vector: they have 2 to 16 elements and at most 32 bytes; use a "
         "fragment for more"},
        {"LacksAnAttribute", R"(%a = thread_idx : i32)",
         "2: 'thread_idx' lacks its attribute 'axis'; add {axis = ...}"},
        {"AttributeOutOfRange", R"(%a = shfl.xor %f, %n {width = 12} : f32)",
         "2: attribute 'width' of 'shfl.xor' is 12, but must be a power of two from 1 to 32"},
        {"AttributeTooLarge", R"(wgmma.wait {groups = 8})",
         "2: attribute 'groups' of 'wgmma.wait' is 8, but must be a number from 0 to 7"},
        {"AttributeNoMultiple", R"(%s = shared {extents = [8]} : view<f16, shared, 1>
%d = smem.desc %s, %n {leading = 8, stride = 16, swizzle = 0} : smem_desc<f16>)",
         "3: attribute 'leading' of 'smem.desc' is 8, but must be a multiple of 16 from 0 to "
         "262128"},
        {"VolatileIsAFlag", R"(%a = load %x, %n {volatile = 2} : f32)",
         "2: attribute 'volatile' of 'load' is 2, but must be a number from 0 to 1"},
        {"CarriesACheck", R"(%ok = bounds %x, %n : check
%a = if %p : check {
yield %ok
} else {
yield %ok
})",
         "4: operand 1 of 'yield', %ok, is a bounds check, which only the access that it guards "
         "can take; compute the check beside its load or store\n"
         "6: operand 1 of 'yield', %ok, is a bounds check, which only the access that it guards "
         "can take; compute the check beside its load or store"},
        {"CarriesAView", R"(%a = for %i in %n .. %n step %n carry(%v = %x) : view<f32, global, 1> {
yield %v
})",
         "2: operand 4 of 'for', %x, is a view, which must be known where it is used; use the view "
         "itself, and carry an offset into it\n"
         "3: operand 1 of 'yield', %v, is a view, which must be known where it is used; use the "
         "view itself, and carry an offset into it"},
        {"CarriesAVariable", R"(%v = var %n : var<i32>
%a = if %p : var<i32> {
yield %v
} else {
yield %v
})",
         "4: operand 1 of 'yield', %v, is a variable, which can only be read and written; read it "
         "with var.load and pass the value on\n"
         "6: operand 1 of 'yield', %v, is a variable, which can only be read and written; read it "
         "with var.load and pass the value on"},
        {"CarriesADescriptor", R"(%s = shared {extents = [8]} : view<f16, shared, 1>
%d = smem.desc %s, %n {leading = 16, stride = 16, swizzle = 0} : smem_desc<f16>
%a = if %p : smem_desc<f16> {
yield %d
} else {
yield %d
})",
         "5: operand 1 of 'yield', %d, is a shared-memory descriptor, which only wgmma can take; "
         "make it with smem.desc where it is used, and carry its offset\n"
         "7: operand 1 of 'yield', %d, is a shared-memory descriptor, which only wgmma can take; "
         "make it with smem.desc where it is used, and carry its offset"},
        {"VariableOfAView", R"(%v = var %x : var<view<f32, global, 1>>)",
         "2: operand 1 of 'var', %x, is a view, which must be known where it is used; use the view "
         "itself, and carry an offset into it"},
        {"VariableAsData", R"(%v = var %n : var<i32>
%a = add %v, %v : i32)",
         "3: operand 1 of 'add' is var<i32>, but must be a number"},
    }),
    mistake_name);

INSTANTIATE_TEST_SUITE_P(
    Rules, RowMistake,
    ::testing::ValuesIn(std::vector<Mistake>{
        {"UndefinedView", R"(%a = undef : view<f32, global, 1>)",
         "2: result 1 of 'undef' is view<f32, global, 1>, but must be data"},
        {"UndefinedPending", R"(%a = undef : pending<f32, 4>
%b = wgmma.wait %a {groups = 0} : frag<f32, 4>)",
         "2: the result of 'undef' is pending<f32, 4>, but must be data"},
        {"VariableHoldsAnotherType", R"(%v = var %n : var<i32>
var.store %v, %f
%a = var.load %v : f32)",
         "3: the variable holds i32, but is given f32; convert the value\n"
         "4: the result of 'var.load' is f32, but the variable holds i32"},
        {"BitcastChangesTheWidth", R"(%a = bitcast %n : f64)",
         "2: 'bitcast' keeps the bits, but i32 has 32 and f64 has 64; use convert to keep the "
         "value instead"},
        {"RoundedConversionThatRoundsNothing", R"(%a = convert %n : i16
%b = convert.rounded %a {rounding = up} : f32)",
         "3: 'convert.rounded' does not convert i16 to f32; use convert: nothing is rounded, or by "
         "way of f32"},
        {"PackOfTwoTypes", R"(%a = pack %n, %f : vec<f32, 2>)",
         "2: operand 1 of 'pack' has elements of i32, but its result has f32; convert them to one "
         "type"},
        {"PackOfTheWrongCount", R"(%a = pack %f, %f : vec<f32, 4>)",
         "2: 'pack' is given 2 elements, but its result has 4"},
        {"PackOfAScalar", R"(%a = pack %f : f32)",
         "2: the result of 'pack' is f32, but must be a vector or a fragment"},
        {"ExtractsFromAScalar", R"(%a = extract %f {index = 0} : f32)",
         "2: operand 1 of 'extract' is f32, but must be a vector or a fragment"},
        {"ExtractsAnotherType", R"(%v = splat %f : vec<f32, 4>
%a = extract %v {index = 0} : i32)",
         "3: the result of 'extract' is i32, but the elements are f32"},
        {"ExtractsBeyondTheEnd", R"(%v = splat %f : vec<f32, 4>
%a = extract %v {index = 4} : f32)",
         "3: 'extract' takes element 4, but vec<f32, 4> ends at 3"},
        {"SlicesAScalar", R"(%v = splat %f : vec<f32, 4>
%a = slice %v {index = 0} : f32)",
         "3: the result of 'slice' is f32, but must be a vector or a fragment of f32"},
        {"SlicesBeyondTheEnd", R"(%v = splat %f : vec<f32, 4>
%a = slice %v {index = 3} : vec<f32, 2>)",
         "3: 'slice' takes elements 3 to 4, but vec<f32, 4> ends at 3"},
        {"SplatsAVector", R"(%v = splat %f : vec<f32, 4>
%a = splat %v : vec<f32, 4>)",
         "3: 'splat' makes a vector or a fragment of one element, not vec<f32, 4> of vec<f32, 4>"},
        {"NoSuchMode", R"(%a = extent %x {dim = 1} : i32)",
         "2: 'extent' asks for mode 1 of %x, which has 1 mode; modes are counted from 0"},
        {"SharedOfTheWrongRank", R"(%s = shared {extents = [4, 4]} : view<f32, shared, 1>)",
         "2: the result of 'shared' is view<f32, shared, 1>, but must be a writable view of 2 "
         "modes in shared memory"},
        {"SharedInGlobal", R"(%s = shared {extents = [4]} : view<f32, global, 1>)",
         "2: the result of 'shared' is view<f32, global, 1>, but must be a writable view of 1 mode "
         "in shared memory"},
        {"SharedWithoutElements", R"(%s = shared {extents = [4, 0]} : view<f32, shared, 2>)",
         "2: a shared array has at least one element in each mode, not 0"},
        {"SharedTooLargeToCount",
         R"(%s = shared {extents = [4294967296, 4294967296]} : view<f32, shared, 2>)",
         "2: a shared array of [4294967296, 4294967296] x f32 fits in no GPU's shared memory"},
        {"DynamicSharedIsFlat", R"(%s = shared.dynamic %n : view<f32, shared, 2>)",
         "2: the result of 'shared.dynamic' is view<f32, shared, 2>, but must be a writable view "
         "of 1 mode in shared memory"},
        {"SubviewOfAnotherType", R"(%s = subview %x, %n, %n : view<i32, global, 1>)",
         "2: the result of 'subview' is view<i32, global, 1>, but must be a view of f32 in global "
         "memory with a mode for each extent"},
        {"SubviewOfAnotherRank", R"(%s = subview %x, %n, %n : view<f32, global, 2>)",
         "2: the result of 'subview' is view<f32, global, 2>, but must be a view of f32 in global "
         "memory with a mode for each extent"},
        {"SubviewDropsConst", R"(%s = subview %c, %n, %n : view<f32, global, 1>)",
         "2: a part of a read-only view is read-only too; make the result view<const f32, ...>"},
        {"BoundsOfAnotherRank", R"(%ok = bounds %c, %n : check)",
         "2: 'bounds' is given 1 coordinate, but %c has 2 modes"},
        {"LoadsThree", R"(%a = load %x, %n : vec<f32, 3>)",
         "2: a memory access moves 1, 2, 4, 8 or 16 elements and at most 16 bytes on sm_90a, not 3 "
         "x f32; access it in parts"},
        {"LoadsTooMuch", R"(%a = load %x, %n : vec<f32, 8>)",
         "2: a memory access moves 1, 2, 4, 8 or 16 elements and at most 16 bytes on sm_90a, not 8 "
         "x f32; access it in parts, or compile the kernel for sm_100, the first that moves 32 "
         "bytes"},
        {"StoresTooMuch", R"(%v = splat %f : vec<f32, 8>
store %x, %v, %n)",
         "3: a memory access moves 1, 2, 4, 8 or 16 elements and at most 16 bytes on sm_90a, not 8 "
         "x f32; access it in parts, or compile the kernel for sm_100, the first that moves 32 "
         "bytes"},
        {"StoresThroughConst", R"(store %c, %f, %n)",
         "2: this store goes through %c, which is read-only; declare the tensor without const, "
         "Tensor<T> instead of Tensor<const T>"},
        {"DescriptorOfGlobal",
         R"(%d = smem.desc %x, %n {leading = 16, stride = 16, swizzle = 0} : smem_desc<f32>)",
         "2: 'smem.desc' describes tiles in shared memory, of types that wgmma multiplies, not "
         "view<f32, global, 1>; copy the tile to a shared array first, of f16, bf16, tf32, e4m3, "
         "e5m2, i8 "
         "or u8"},
        {"TileBetweenUnits", R"(%s = shared {extents = [64]} : view<f16, shared, 1>
%k = const 12 : i32
%d = smem.desc %s, %k {leading = 16, stride = 16, swizzle = 0} : smem_desc<f16>)",
         "4: this tile starts 8 bytes behind a multiple of 16 bytes, and descriptors count in 16 "
         "bytes; start it at a multiple of 8 elements"},
        {"TileBetweenUnitsOfASum", R"(%s = shared {extents = [64]} : view<f16, shared, 1>
%k = const 16 : i32
%l = const -3 : i32
%a = mul %n, %k : i32
%b = add %a, %l : i32
%sum = add %b, %a : i32
%d = smem.desc %s, %sum {leading = 16, stride = 16, swizzle = 0} : smem_desc<f16>)",
         "8: this tile starts 10 bytes behind a multiple of 16 bytes, and descriptors count in 16 "
         "bytes; start it at a multiple of 8 elements"},
        {"TileBetweenUnitsOfASubview", R"(%s = shared {extents = [64]} : view<f16, shared, 1>
%k = const 12 : i32
%l = const 8 : i32
%v = subview %s, %k, %l : view<f16, shared, 1>
%d = smem.desc %v, %l {leading = 16, stride = 16, swizzle = 0} : smem_desc<f16>
%e = smem.desc %v, %k {leading = 16, stride = 16, swizzle = 0} : smem_desc<f16>
%g = smem.desc %v, %n {leading = 16, stride = 16, swizzle = 0} : smem_desc<f16>)",
         "6: this tile starts 8 bytes behind a multiple of 16 bytes, and descriptors count in 16 "
         "bytes; start it at a multiple of 8 elements"},
        {"AccumulatorTooWide", R"(%z = const 0.0 : frag<f32, 132>
%q = wgmma.begin %z : pending<f32, 132>
%s = wgmma.wait %q {groups = 0} : frag<f32, 132>)",
         "3: no wgmma takes pending<f32, 132>; use an accumulator of f32, f16 or i32 with half as "
         "many "
         "elements as its product has columns, or as operand a 16 bytes of elements"},
        {"AccumulatorOfAnotherType", R"(%z = const 0.0 : frag<bf16, 64>
%q = wgmma.begin %z : pending<bf16, 64>
%s = wgmma.wait %q {groups = 0} : frag<bf16, 64>)",
         "3: no wgmma takes pending<bf16, 64>; use an accumulator of f32, f16 or i32 with half as "
         "many "
         "elements as its product has columns, or as operand a 16 bytes of elements"},
        {"WaitDropsAFragment", R"(%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
wgmma.wait %q {groups = 0})",
         "4: 'wgmma.wait' settles 1 fragment, but has 0 results; give it one result for each "
         "fragment"},
        {"WgmmaOfTwoTypes", R"(%s = shared {extents = [64]} : view<f16, shared, 1>
%t = shared {extents = [64]} : view<bf16, shared, 1>
%a = smem.desc %s, %n {leading = 16, stride = 16, swizzle = 0} : smem_desc<f16>
%b = smem.desc %t, %n {leading = 16, stride = 16, swizzle = 0} : smem_desc<bf16>
%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%r = wgmma %q, %a, %b : pending<f32, 4>
wgmma.commit
%o = wgmma.wait %r {groups = 0} : frag<f32, 4>)",
         "8: 'wgmma' does not multiply f16 by bf16 into f32; bring the operands to the types of an "
         "atom: f16 x f16 + f32, f16 x f16 + f16, bf16 x bf16 + f32, tf32 x tf32 + f32, e4m3 or "
         "e5m2 x "
         "e4m3 or e5m2 + f32, e4m3 or e5m2 x e4m3 or e5m2 + f16, i8 x i8 + i32, u8 x u8 + i32, i8 "
         "or "
         "u8 x i8 or u8 + i32"},
    }),
    mistake_name);

}  // namespace
}  // namespace heddle::ir
