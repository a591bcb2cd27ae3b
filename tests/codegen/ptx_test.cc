// The module around a kernel, and what it tells of the source.
#include "heddle/codegen/ptx.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codegen/ptx_kernels.h"
#include "codegen/ptx_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/builder.h"

namespace heddle::codegen {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

TEST(Ptx, DeclaresTheParameterBlockAndTheBlockShape) {
  const PtxModule module = ptx_of(kernel_from(kRowSum));
  EXPECT_EQ(module.entry, "row_sum");
  EXPECT_EQ(module.params.bytes, 48);
  EXPECT_THAT(module.text, HasSubstr(".version 8.0\n.target sm_90a\n.address_size 64\n"));
  EXPECT_THAT(module.text, HasSubstr(".visible .entry row_sum(\n"
                                     "\t.param .b64 row_sum_param_0,  // x\n"
                                     "\t.param .b64 row_sum_param_1,  // x.extent[0]\n"
                                     "\t.param .b64 row_sum_param_2,  // x.extent[1]\n"
                                     "\t.param .b64 row_sum_param_3,  // x.stride[0]\n"
                                     "\t.param .b64 row_sum_param_4,  // y\n"
                                     "\t.param .b64 row_sum_param_5  // y.extent[0]\n"
                                     ")\n.reqntid 512, 1, 1\n{\n"));
}

// Seven instructions a trip: the row's address (which ptxas moves out), the element's, the load,
// the sum, and the loop.
TEST(Ptx, SumsARow) {
  EXPECT_THAT(ptx(kRowSum), ContainsRegex("\n\\$L1:\n"
                                          "\tshl\\.b64 %rd[0-9]+, %rd[0-9]+, 2;\n"
                                          "\tadd\\.s64 %rd[0-9]+, %rd[0-9]+, %rd[0-9]+;\n"
                                          "\tmad\\.wide\\.s32 %rd[0-9]+, %r[0-9]+, 4, %rd[0-9]+;\n"
                                          "\tld\\.global\\.nc\\.b32 %r[0-9]+, \\[%rd[0-9]+\\];\n"
                                          "\tadd\\.rn\\.f32 %r[0-9]+, %r[0-9]+, %r[0-9]+;\n"
                                          "\tsetp\\.lt\\.s32 %p0, %r[0-9]+, %r[0-9]+;\n"
                                          "\tadd\\.s32 %r[0-9]+, %r[0-9]+, 512;\n"
                                          "\t@%p0 bra \\$L1;\n"
                                          "\\$L2:\n"));
}

TEST(Ptx, LeadsBackToTheSource) {
  const PtxModule module = ptx_of(kernel_from(kRowSum));
  EXPECT_THAT(module.text, HasSubstr(".file 1 \"row_sum.cc\"\n.file 2 \"other.cc\"\n"));
  EXPECT_THAT(module.text, HasSubstr("\t.loc 1 13 0\n\tshl.b64"));
  EXPECT_THAT(module.text, HasSubstr("\t.loc 2 3 0\n"));
  // The body's four instructions come from one line: one .loc.
  EXPECT_EQ(count_lines(module.text, ".loc 1 13 0"), 1);
  EXPECT_THAT(ptx(kRowSum), Not(HasSubstr(".loc")));
}

TEST(Ptx, NamesTheOpOfEveryLine) {
  const ir::Kernel kernel = kernel_from(kRowSum);
  const PtxModule module = ptx_of(kernel);
  const std::vector<std::string> lines = lines_of(module.text);
  ASSERT_EQ(module.line_ops.size(), lines.size());  // line 0 stands for the text behind the last
  int loads = 0;
  for (size_t i = 1; i <= lines.size(); ++i) {
    if (absl::StartsWith(lines[i - 1], "ld.global")) {
      ++loads;
      EXPECT_EQ(kernel.op(module.line_ops[i]).opcode, ir::Opcode::kLoad);
    }
    if (absl::StartsWith(lines[i - 1], "@%p0 bra")) {
      EXPECT_EQ(kernel.op(module.line_ops[i]).opcode, ir::Opcode::kFor);
    }
  }
  EXPECT_EQ(loads, 1);
  EXPECT_FALSE(valid(module.line_ops[1]));
}

TEST(Ptx, IsTheSameEachTime) {
  const ir::Kernel kernel = kernel_from(kRowSum);
  const ir::Kernel copy = kernel;
  const std::string text = ptx_of(kernel).text;
  EXPECT_EQ(ptx_of(kernel).text, text);
  EXPECT_EQ(ptx_of(copy).text, text);
}

TEST(Ptx, BoundsTheThreadsOfADynamicBlock) {
  const std::string text = ptx(kernel_text(absl::StrCat(kThread,
                                                        "%v = load %x, %t : f32\n"
                                                        "store %y, %v, %t"),
                                           "block(?)"));
  EXPECT_THAT(text, HasSubstr(".maxntid 1024\n"));
  EXPECT_THAT(text, Not(HasSubstr(".reqntid")));
}

TEST(Ptx, DeclaresClusters) {
  const std::string body = absl::StrCat(kThread, "%v = load %x, %t : f32\nstore %y, %v, %t");
  EXPECT_THAT(ptx(kernel_text(body, "block(64, 2, 1) cluster(2, 1, 1)")),
              HasSubstr(".reqntid 64, 2, 1\n.reqnctapercluster 2, 1, 1\n"));
  EXPECT_THAT(ptx(kernel_text(body, "block(64, 2, 1) cluster(1, 1, 1) min_blocks(3)")),
              HasSubstr(".reqntid 64, 2, 1\n.minnctapersm 3\n"));
  EXPECT_THAT(ptx(kernel_text(body)), Not(HasSubstr(".minnctapersm")));
  ir::Kernel old = kernel_from(kernel_text(body));
  old.cluster = {2, 1, 1};
  old.target = ir::find_target("sm_80");
  const Status refused = emit_ptx(old).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("sm_80 has no clusters; sm_90 is the first that has"));
}

TEST(Ptx, MakesIdentifiersOfNames) {
  EXPECT_EQ(ptx_identifier("row_sum"), "row_sum");
  EXPECT_EQ(ptx_identifier("a b-c"), "a_b_c");
  EXPECT_EQ(ptx_identifier("2d"), "_2d");
  EXPECT_EQ(ptx_identifier("$x$"), "_$x$");
  EXPECT_EQ(ptx_identifier(""), "_");
  EXPECT_EQ(ptx_identifier("WARP_SZ"), "WARP_SZ_");
  // ptxas treats kernels of that name in its own way.
  EXPECT_EQ(ptx_identifier("my_cutlass_Cutlass"), "my_cut_lass_Cut_lass");
}

TEST(Ptx, RefusesWhatTheTargetLacks) {
  ir::Kernel kernel("k");
  kernel.block = {32, 1, 1};
  kernel.target = ir::find_target("sm_86");
  ir::Builder b(kernel);
  const ir::ValueId p = kernel.add_param(
      "p", ir::Type::view(ir::Scalar::kBF16, ir::Space::kGlobal, 1), {ir::kDynamic}, {1});
  const ir::ValueId i = b.constant_int(ir::kI32Type, 0);
  const ir::ValueId v = b.create(ir::Opcode::kLoad, {p, i}, ir::Type::of(ir::Scalar::kBF16));
  b.set_loc(kernel.intern_loc("user.cc", 42));
  b.create(ir::Opcode::kStore, {p, b.create(ir::Opcode::kMul, {v, v}), i});
  const Status refused = emit_ptx(kernel).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  const std::string message(refused.message());
  EXPECT_THAT(message, HasSubstr("kernel 'k' has 1 error"));
  EXPECT_THAT(
      message,
      HasSubstr("user.cc:42: error: sm_86 has no mul of bf16; sm_90 is the first that has\n"));
  EXPECT_THAT(message, HasSubstr("fix: compile the kernel for sm_90, or convert to f32 first"));
}

}  // namespace
}  // namespace heddle::codegen
