// Elements that share an instruction: pairs of halves and of floats, atomics of vectors, 32-byte
// accesses, pairs of 4-bit floats.
#include "absl/strings/str_replace.h"
#include "codegen/ptx_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/codegen/toolchain/disassemble.h"

namespace heddle::codegen {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// The PTX of a body that has %x, a view of such elements, and %t, the thread's number.
std::string ptx_for(absl::string_view target, absl::string_view scalar, absl::string_view body) {
  return ptx_of(kernel_from(absl::StrCat(
                    "kernel @k(%x: view<", scalar,
                    ", global, 1> [?] strides [1]) block(64, 1, 1) target(", target,
                    ") {\n%t = thread_idx {axis = x} : i32\n%z = const 0 : i32\n", body, "}")),
                {.line_info = false})
      .text;
}

// One elementwise op on a vector, loaded and stored.
std::string elementwise(absl::string_view target, absl::string_view scalar, int count,
                        absl::string_view op) {
  const std::string type = absl::StrCat("vec<", scalar, ", ", count, ">");
  return ptx_for(target, scalar,
                 absl::StrCat("%v = load %x, %t : ", type, "\n%w = load %x, %z : ", type,
                              "\n%r = ", op, " : ", type, "\nstore %x, %r, %z\n"));
}

TEST(PackedHalves, TakeOneInstructionAPair) {
  for (const char* scalar : {"f16", "bf16"}) {
    const std::pair<const char*, const char*> cases[] = {
        {"add %v, %w", "add.rn.$x2"},
        {"sub %v, %w", "sub.rn.$x2"},
        {"mul %v, %w", "mul.rn.$x2"},
        {"min %v, %w", "min.$x2"},
        {"max %v, %w", "max.$x2"},
        {"abs %v", "abs.$x2"},
        {"neg %v", "xor.b32"},
        {"fma %v, %w, %v", "fma.rn.$x2"},
        {"min.nan %v, %w", "min.NaN.$x2"},
    };
    for (const auto& [op, instruction] : cases) {
      const std::string text = elementwise("sm_90a", scalar, 8, op);
      EXPECT_EQ(count_lines(text, absl::StrReplaceAll(instruction, {{"$", scalar}}) + " "), 4)
          << text;
      EXPECT_THAT(text, Not(HasSubstr("mov.b32 {"))) << op;  // no halves are taken apart
    }
  }
}

TEST(PackedFloats, TakeOneInstructionAPairOnBlackwell) {
  for (const char* op : {"add %v, %w", "sub %v, %w", "mul %v, %w", "fma %v, %w, %v"}) {
    const std::string name(op, 3);
    const std::string text = elementwise("sm_100", "f32", 4, op);
    EXPECT_EQ(count_lines(text, absl::StrCat(name, ".rn.f32x2 %rd")), 2) << text;
    EXPECT_EQ(count_lines(text, absl::StrCat(name, ".rn.f32 ")), 0) << text;
    EXPECT_THAT(text, HasSubstr(".version 8.6"));
    EXPECT_EQ(count_lines(elementwise("sm_90a", "f32", 4, op), absl::StrCat(name, ".rn.f32 ")), 4);
  }
  EXPECT_THAT(elementwise("sm_120a", "f32", 2, "div %v, %w"), Not(HasSubstr("f32x2")));
}

// ptxas makes one fused instruction of a product and a sum of pairs, whatever they say.
TEST(PackedFloats, AreNotFused) {
  const auto body = [](absl::string_view sum) {
    return absl::StrCat("%v = load %x, %t : vec<f32, 2>\n%m = mul %v, %v : vec<f32, 2>\n", sum,
                        "store %x, %m, %z\n");
  };
  EXPECT_THAT(ptx_for("sm_100", "f32", body("")), HasSubstr("mul.rn.f32x2"));
  EXPECT_THAT(ptx_for("sm_100", "f32", body("%s = max %m, %v : vec<f32, 2>\nstore %x, %s, %t\n")),
              HasSubstr("mul.rn.f32x2"));
  for (const char* sum :
       {"%s = add %m, %v : vec<f32, 2>\nstore %x, %s, %t\n",
        "%s = sub %v, %m : vec<f32, 2>\nstore %x, %s, %t\n",
        "%n = neg %m : vec<f32, 2>\n%s = add %n, %v : vec<f32, 2>\nstore %x, %s, %t\n",
        "%a = extract %m {index = 0} : f32\n%b = extract %m {index = 1} : f32\n"
        "%n = pack %b, %a : vec<f32, 2>\n%s = add %n, %v : vec<f32, 2>\nstore %x, %s, %t\n",
        "%s = for %i in %z .. %t step %o carry(%c = %m) : vec<f32, 2> {\n"
        "%n = add %c, %v : vec<f32, 2>\nyield %n\n}\nstore %x, %s, %t\n"}) {
    const std::string text =
        ptx_for("sm_100", "f32", absl::StrCat("%o = const 1 : i32\n", body(sum)));
    EXPECT_EQ(count_lines(text, "mul.rn.f32 "), 2) << text;
    EXPECT_THAT(text, HasSubstr(".rn.f32x2")) << text;
    EXPECT_THAT(text, Not(HasSubstr("mul.rn.f32x2"))) << text;
  }
  // It takes a product with a zero added for a product.
  const auto fma = [](absl::string_view addend) {
    return ptx_for("sm_100", "f32",
                   absl::StrCat("%v = load %x, %t : vec<f32, 2>\n%k = const ", addend,
                                " : vec<f32, 2>\n%m = fma %v, %v, %k : vec<f32, 2>\n"
                                "%s = add %m, %v : vec<f32, 2>\nstore %x, %s, %z\n"));
  };
  EXPECT_THAT(fma("1.0"), HasSubstr("fma.rn.f32x2"));
  for (const char* zero : {"0.0", "0x80000000"}) {
    EXPECT_THAT(fma(zero), Not(HasSubstr("fma.rn.f32x2")));
    EXPECT_EQ(count_lines(fma(zero), "fma.rn.f32 "), 2);
  }
}

TEST(PackedFloats, LeaveTheLastOfAnOddNumberAlone) {
  const std::string text = ptx_for(
      "sm_100", "f32",
      "%a = load %x, %t : f32\n%v = pack %a, %a, %a : frag<f32, 3>\n"
      "%s = add %v, %v : frag<f32, 3>\n%b = extract %s {index = 2} : f32\nstore %x, %b, %z\n");
  EXPECT_EQ(count_lines(text, "add.rn.f32x2"), 1);
  EXPECT_EQ(count_lines(text, "add.rn.f32 "), 1);
}

// What ptxas makes of it: packed arithmetic, and nothing fused.
TEST(PackedFloats, StayWhatTheyAreInMachineCode) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  const PtxModule module = ptx_of(kernel_from(
      "kernel @k(%x: view<f32, global, 1> [?] strides [1]) block(64, 1, 1) target(sm_100) {\n"
      "%t = thread_idx {axis = x} : i32\n%v = load %x, %t : vec<f32, 4>\n"
      "%m = mul %v, %v : vec<f32, 4>\n%s = add %m, %v : vec<f32, 4>\nstore %x, %s, %t\n}"));
  const auto assembly = assemble_for(module.text, "sm_100", {module.entry});
  ASSERT_TRUE(assembly.ok()) << assembly.status();
  HEDDLE_NEEDS_TOOL(kNvdisasm);
  const StatusOr<std::string> listing = disassemble(assembly->cubin);
  ASSERT_TRUE(listing.ok()) << listing.status();
  auto counts = count_opcodes(sass_opcodes(*listing));
  EXPECT_EQ(counts["FADD2"], 2) << *listing;
  EXPECT_EQ(counts["FFMA2"] + counts["FFMA"], 0) << *listing;
}

// ptxas makes an instruction that lanes of one address share of unsigned sums with 1 alone.
TEST(Atomics, SumsOfIntegersAreUnsigned) {
  const auto sum = [](absl::string_view scalar) {
    return ptx_for("sm_90a", scalar,
                   absl::StrCat("%v = const 1 : ", scalar, "\n%a = atomic %x, %v, %z {op = add} : ",
                                scalar, "\nstore %x, %a, %t\n"));
  };
  EXPECT_THAT(sum("i32"), HasSubstr(".global.add.u32 "));
  EXPECT_THAT(sum("u32"), HasSubstr(".global.add.u32 "));
  EXPECT_THAT(sum("i64"), HasSubstr(".global.add.u64 "));
  EXPECT_THAT(sum("u64"), HasSubstr(".global.add.u64 "));
}

TEST(VectorAtomics, AreOneInstruction) {
  const auto atomic = [](absl::string_view scalar, int count, absl::string_view use) {
    const std::string type = absl::StrCat("vec<", scalar, ", ", count, ">");
    return ptx_for("sm_90a", scalar,
                   absl::StrCat("%v = load %x, %t : ", type,
                                "\n%a = atomic %x, %v, %z {op = add} : ", type, "\n", use));
  };
  constexpr char kStore[] = "store %x, %a, %t\n";
  EXPECT_THAT(atomic("f32", 4, kStore),
              ContainsRegex("atom\\.relaxed\\.gpu\\.global\\.add\\.v4\\.f32 \\{%r[0-9]+, %r[0-9]+, "
                            "%r[0-9]+, %r[0-9]+\\}, \\[%rd[0-9]+\\], \\{%r[0-9]+, %r[0-9]+, "
                            "%r[0-9]+, %r[0-9]+\\};"));
  EXPECT_THAT(atomic("f32", 2, kStore), HasSubstr(".global.add.v2.f32 {"));
  EXPECT_THAT(atomic("f16", 2, kStore), ContainsRegex("\\.global\\.add\\.noftz\\.f16x2 %r"));
  EXPECT_THAT(atomic("bf16", 4, kStore), HasSubstr(".global.add.noftz.v2.bf16x2 {"));
  EXPECT_THAT(atomic("f16", 8, kStore), HasSubstr(".global.add.noftz.v4.f16x2 {"));
  EXPECT_THAT(atomic("f16", 8, kStore), HasSubstr(".version 8.1"));
}

TEST(WideAccesses, AreOneInstructionInGlobalMemoryOnBlackwell) {
  const std::string body =
      "%s = shared {extents = [256]} : view<f32, shared, 1>\n%v = load %x, %t : vec<f32, 8>\n"
      "store %s, %v, %t\n%w = load %s, %z : vec<f32, 8>\nstore %x, %w, %z\n";
  const std::string text = ptx_for("sm_100", "f32", body);
  EXPECT_EQ(count_lines(text, "ld.global.v8.b32"), 1);
  EXPECT_EQ(count_lines(text, "st.global.v8.b32"), 1);
  EXPECT_EQ(count_lines(text, "ld.shared.v4.b32"), 2);
  EXPECT_EQ(count_lines(text, "st.shared.v4.b32"), 2);
  EXPECT_THAT(text, HasSubstr(".version 8.8"));
  const std::string doubles =
      ptx_for("sm_120", "f64", "%v = load %x, %t : vec<f64, 4>\nstore %x, %v, %z\n");
  EXPECT_EQ(count_lines(doubles, "ld.global.v4.b64"), 1);
  EXPECT_EQ(count_lines(doubles, "st.global.v4.b64"), 1);
}

TEST(NarrowFloats, ConvertInPairs) {
  const std::string packed = ptx_for(
      "sm_100a", "f32",
      "%y = shared {extents = [64]} : view<e2m1x2, shared, 1>\n%v = load %x, %t : vec<f32, 8>\n"
      "%p = e2m1.pack %v : vec<e2m1x2, 4>\nstore %y, %p, %z\n"
      "%h = e2m1.unpack %p : vec<f16, 8>\n%w = convert %h : vec<f32, 8>\nstore %x, %w, %t\n");
  EXPECT_EQ(count_lines(packed, "cvt.rn.satfinite.e2m1x2.f32 %b"), 4);
  EXPECT_EQ(count_lines(packed, "cvt.rn.f16x2.e2m1x2 %r"), 4);
  const std::string powers = ptx_for(
      "sm_100a", "f32",
      "%y = shared {extents = [64]} : view<e8m0, shared, 1>\n%v = load %x, %t : vec<f32, 4>\n"
      "%p = convert %v : vec<e8m0, 4>\nstore %y, %p, %z\n"
      "%q = convert.rounded %v {rounding = zero} : vec<e8m0, 4>\nstore %y, %q, %t\n"
      "%w = convert %p : vec<f32, 4>\nstore %x, %w, %t\n");
  EXPECT_EQ(count_lines(powers, "cvt.rp.satfinite.ue8m0x2.f32"), 2);
  EXPECT_EQ(count_lines(powers, "cvt.rz.satfinite.ue8m0x2.f32"), 2);
  EXPECT_EQ(count_lines(powers, "cvt.rn.bf16x2.ue8m0x2"), 4);
}

}  // namespace
}  // namespace heddle::codegen
