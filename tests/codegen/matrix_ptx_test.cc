// Loads and stores of matrices: their PTX, packed registers as they are, and that ptxas takes them.
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

// A kernel that has %s, a shared array, %r, an offset in it, and %y to store to.
std::string kernel_text(absl::string_view scalar, absl::string_view body) {
  return absl::StrReplaceAll(R"(
kernel @k(%x: view<$, global, 1> [?] strides [1], %y: view<$, global, 1> [?] strides [1])
    block(64, 1, 1) target(sm_90a) {
%t = thread_idx {axis = x} : i32
%z = const 0 : i32
%eight = const 8 : i32
%s = shared {extents = [1024]} : view<$, shared, 1>
%r = mul %t, %eight : i32
)",
                             {{"$", scalar}}) +
         std::string(body) + "}\n";
}
std::string ptx(absl::string_view scalar, absl::string_view body, bool device_checks = false) {
  return ptx_of(kernel_from(kernel_text(scalar, body)),
                {.line_info = false, .device_checks = device_checks})
      .text;
}
std::string load(int count, bool transpose) {
  return absl::StrCat("%m = ldmatrix %s, %r {count = ", count, transpose ? ", transpose = 1" : "",
                      "} : frag<f16, ", 2 * count,
                      ">\n%e = extract %m {index = 0} : f16\nstore %y, %e, %t\n");
}

TEST(MatrixPtx, NamesCountAndTransposition) {
  EXPECT_THAT(ptx("f16", load(1, false)),
              ContainsRegex("ldmatrix\\.sync\\.aligned\\.m8n8\\.x1\\.shared\\.b16 \\{%r[0-9]+\\}, "
                            "\\[%r[0-9]+\\];"));
  EXPECT_THAT(ptx("f16", load(2, true)),
              ContainsRegex("ldmatrix\\.sync\\.aligned\\.m8n8\\.x2\\.trans\\.shared\\.b16 "
                            "\\{%r[0-9]+, %r[0-9]+\\}, \\[%r[0-9]+\\];"));
  EXPECT_THAT(ptx("f16", load(4, false)),
              ContainsRegex("ldmatrix\\.sync\\.aligned\\.m8n8\\.x4\\.shared\\.b16 \\{%r[0-9]+, "
                            "%r[0-9]+, %r[0-9]+, %r[0-9]+\\}, \\[%r[0-9]+\\];"));
}

// The fragment's registers are the instruction's, whatever the elements: nothing is moved.
TEST(MatrixPtx, CopiesWithoutAMove) {
  const std::pair<const char*, int> elements[] = {{"u8", 16}, {"e4m3", 16}, {"f16", 8},
                                                  {"i16", 8}, {"bf16", 8},  {"f32", 4}};
  for (const auto& [scalar, count] : elements) {
    const std::string text =
        ptx(scalar, absl::StrCat("%m = ldmatrix %s, %r {count = 4} : frag<", scalar, ", ", count,
                                 ">\nstmatrix %s, %m, %z {count = 4}\n%e = load %s, %t : ", scalar,
                                 "\nstore %y, %e, %t\n"));
    EXPECT_THAT(text, ContainsRegex(
                          "x4\\.shared\\.b16 \\{%r[0-9]+, %r[0-9]+, %r[0-9]+, %r[0-9]+\\}, "
                          "\\[%r[0-9]+\\];\n\tstmatrix\\.sync\\.aligned\\.m8n8\\.x4\\.shared\\.b16 "
                          "\\[heddle_shared\\], \\{%r[0-9]+, %r[0-9]+, %r[0-9]+, %r[0-9]+\\};\n"))
        << scalar;
    const auto registers_of = [&](absl::string_view instruction) {
      const size_t start = text.find('{', text.find(std::string(instruction)));
      return text.substr(start, text.find('}', start) - start);
    };
    EXPECT_EQ(registers_of("ldmatrix"), registers_of("stmatrix")) << scalar;
  }
}

TEST(MatrixPtx, PutsConstantsIntoRegisters) {
  EXPECT_THAT(ptx("f16",
                  "%m = const 1.0 : frag<f16, 2>\nstmatrix %s, %m, %r {count = 1, transpose "
                  "= 1}\n%e = load %s, %t : f16\nstore %y, %e, %t\n"),
              ContainsRegex("mov\\.b32 %r[0-9]+, 0x3C003C00;\n\tstmatrix\\.sync\\.aligned\\.m8n8"
                            "\\.x1\\.trans\\.shared\\.b16 \\[%r[0-9]+\\], \\{%r[0-9]+\\};"));
}

// Only lanes that give a row have to be in bounds.
TEST(MatrixPtx, ChecksLanesThatGiveARow) {
  const auto checked = [](int count) {
    return ptx("f16",
               absl::StrCat("%k = bounds %s, %r {width = 8} : check\n",
                            absl::StrReplaceAll(load(count, false), {{"%s, %r", "%s, %r, %k"}})),
               /*device_checks=*/true);
  };
  EXPECT_THAT(checked(2), ContainsRegex("setp\\.ge\\.s32 (%p[0-9]+), %r[0-9]+, 16;\n\tor\\.pred "));
  EXPECT_THAT(checked(2), HasSubstr("__assertfail"));
  EXPECT_THAT(checked(4), Not(HasSubstr("or.pred")));
  EXPECT_THAT(checked(4), HasSubstr("__assertfail"));
}

// One instruction of the machine each.
TEST(MatrixPtx, BecomesOneMachineInstruction) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  const std::string text =
      ptx("f16",
          "%m = ldmatrix %s, %r {count = 4, transpose = 1} : frag<f16, 8>\n"
          "stmatrix %s, %m, %z {count = 4}\n%e = load %s, %t : f16\nstore %y, %e, %t\n");
  const StatusOr<Assembly> assembly = assemble_for(text, "sm_90a", {"k"});
  ASSERT_TRUE(assembly.ok()) << assembly.status();
  HEDDLE_NEEDS_TOOL(kNvdisasm);
  const StatusOr<std::string> listing = disassemble(assembly->cubin);
  ASSERT_TRUE(listing.ok()) << listing.status();
  int loads = 0, stores = 0;
  for (const SassInstruction& i : sass_opcodes(*listing)) {
    loads += absl::StartsWith(i.opcode, "LDSM.16.MT88.4") ? 1 : 0;
    stores += absl::StartsWith(i.opcode, "STSM.16.M88.4") ? 1 : 0;
  }
  EXPECT_EQ(loads, 1) << *listing;
  EXPECT_EQ(stores, 1) << *listing;
}

}  // namespace
}  // namespace heddle::codegen
