#include "heddle/tools/command/statistics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/text/parser.h"
#include "nlohmann/json.hpp"

namespace heddle::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(StatisticsTest, CountsPtxInstructions) {
  constexpr char kPtx[] = R"(
.version 8.0
.target sm_90a
.address_size 64
.file 1 "a;b.cc"
// add.s32 in a comment; not counted
.extern .shared .align 16 .b8 arena[];
.visible .entry k(.param .u64 p, .param .align 4 .b8 q[8])
.reqntid 256, 1, 1
{
  .reg .pred %p<3>;
  .reg .b32 %r<5>;
  .loc 1 12 0
  mov.u32 %r1, %tid.x;   // mov; again
  add.s32 %r2, %r1, 1; add.s32 %r2, %r2, 1;
$L1:
  @%p1 bra $L1;
  @!%p2 st.global.v4.f32 [%rd1], {%f0, %f1, %f2, %f3};
  /* sub.s32 %r1, %r1, 1; */
  .pragma "nounroll";
L_2: { .reg .b32 t; mov.u32 t, 1; }
  ld.global.v4.f32 {%f0,
      %f1, %f2, %f3}, [%rd1];
  wgmma.fence.sync.aligned;
  ret;
}
)";
  EXPECT_THAT(count_ptx_instructions(kPtx),
              ElementsAre(Pair("add.s32", 2), Pair("bra", 1), Pair("ld.global.v4.f32", 1),
                          Pair("mov.u32", 2), Pair("ret", 1), Pair("st.global.v4.f32", 1),
                          Pair("wgmma.fence.sync.aligned", 1)));
  EXPECT_TRUE(count_ptx_instructions("").empty());
  // Text that ends in the middle of anything.
  for (const char* cut : {"/* ", ".reg", ".loc 1", "@%p1", "add.s32 a, b", "L", "L:", "{"}) {
    EXPECT_LE(count_ptx_instructions(cut).size(), 1u) << cut;
  }
}

TEST(StatisticsTest, CountsOpsInRegionsToo) {
  const StatusOr<ir::Kernel> kernel =
      ir::parse(R"(kernel @k(%x: view<i32, global, 1> [?] strides [1], %n: i32) {
  %zero = const 0 : i32
  %one = const 1 : i32
  %sum = for %i in %zero .. %n step %one carry(%acc = %zero) : i32 {
    %next = add %acc, %i : i32
    yield %next
  }
  store %x, %sum, %zero
}
)",
                "k.ir");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_THAT(count_ops(*kernel), ElementsAre(Pair("add", 1), Pair("const", 2), Pair("for", 1),
                                              Pair("store", 1), Pair("yield", 1)));
}

TEST(StatisticsTest, PrintsATableAndJson) {
  Statistics statistics;
  statistics.kernel = "k";
  statistics.target = "sm_90a";
  statistics.ptx = Counts{{"add.s32", 2}, {"bra", 3}, {"ret", 2}};
  EXPECT_EQ(to_text(statistics),
            "kernel k for sm_90a\n"
            "\n"
            "      7 ptx\n"
            "      3   bra\n"
            "      2   add.s32\n"
            "      2   ret\n");
  codegen::EntryReport report;
  report.registers = 24;
  report.spill_store_bytes = 4;
  report.spill_load_bytes = 8;
  report.shared_bytes = 128;
  statistics.resources = report;
  EXPECT_THAT(
      to_text(statistics),
      ::testing::HasSubstr("24 registers a thread; 4 bytes spilled by stores, 8 by loads; 0 "
                           "bytes of stack\n128 bytes of shared memory a block; "));
  const nlohmann::ordered_json json = to_json(statistics);
  EXPECT_EQ(json["ptx"]["total"], 7);
  EXPECT_EQ(json["ptx"]["by_opcode"]["bra"], 3);
  EXPECT_EQ(json["resources"]["registers"], 24);
  EXPECT_FALSE(json.contains("sass"));
}

}  // namespace
}  // namespace heddle::tools
