// `heddle warm`, on what other commands have recorded.
#include "tools/command_testing.h"

namespace heddle::tools {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class WarmTest : public ::testing::Test {
 protected:
  Outcome run(const Arguments& arguments, const std::string& more = "A=b") const {
    return heddle_command(
        arguments, {"HEDDLE_CACHE=", absl::StrCat("HEDDLE_CACHE_DIR=", dir_.file("cache")), more});
  }

  codegen::TempDir dir_;
  const std::string list_ = dir_.file("warm.list");
};

TEST_F(WarmTest, FillsTheCacheForWhatARunHasRecorded) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  make_npy(dir_.file("x.npy"), ir::Scalar::kF32, {2, 4}, [](size_t) { return 1; });
  const Arguments recorded = {"run",      "row_sum", "--in", "x=" + dir_.file("x.npy"),
                              "--device", "interp"};
  for (int again = 0; again < 2; ++again) {
    const Outcome outcome = run(recorded, "HEDDLE_RECORD=" + list_);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  expect_one_line(run(recorded, "HEDDLE_RECORD=/no/list"), 0,
                  HasSubstr("HEDDLE_RECORD: launches cannot be recorded in '/no/list': No such"));
  EXPECT_EQ(slurp(list_), "call row_sum dtype=f32 x:f32[2,4]{4,1} y:f32[2]{1}\n");
  const Outcome first = run({"warm", list_, "--arch", "sm_80"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out,
              ContainsRegex("^1 of 1: call of row_sum\n1 line in [0-9.]+ s: 1 warmed .1 kernel, 0 "
                            "of them from the disk., 0 there already, 0 skipped, 0 failed\n$"));
  EXPECT_THAT(run({"cache", "list"}).out, HasSubstr("row_sum, sm_80, ptxas "));
  const Outcome again = run({"warm", list_, "--arch", "sm_80", "--quiet"});
  EXPECT_THAT(again.out, ContainsRegex("^1 line in [0-9.]+ s: 0 warmed .* 1 there already"));
  std::ofstream(list_, std::ios::app)
      << "call gemm dtype=bf16 a:bf16[64,64]{64,1} b:bf16[64,64]{64,1} d:bf16[64,64]{64,1}\n";
  const Outcome failed = run({"warm", list_, "--arch", "sm_80", "--json"});
  EXPECT_THAT(failed.out, HasSubstr("\"failed\":[{\"line\":2,\"what\":\"call gemm\",\"why\":"));
  EXPECT_EQ(failed.err, "heddle: 1 of the list's 2 lines do not compile\n");
  EXPECT_EQ(failed.exit_code, 1);
}

TEST_F(WarmTest, SaysWhatIsWrong) {
  std::ofstream(list_) << "call softmax x:f32\n";
  expect_one_line(run({"warm", list_}), 2,
                  HasSubstr("warm.list: line 1 is damaged: 'x:f32' is no tensor"));
  expect_one_line(run({"warm", list_ + "x"}), 2,
                  HasSubstr("warm.listx' cannot be read: No such file or directory"));
  expect_one_line(run({"warm", list_, "--arch", "sm_1"}), 2, HasSubstr("unknown target 'sm_1'"));
  expect_one_line(run({"warm", list_, "--device", "interp"}), 2,
                  HasSubstr("--device interp keeps nothing on the disk; fix: name a GPU"));
  expect_one_line(heddle_command({"warm", list_, "--arch", "sm_80"}), 1,
                  HasSubstr("there is no cache on disk to fill; fix: unset HEDDLE_CACHE"));
}

}  // namespace
}  // namespace heddle::tools
