// heddle bench, on an interpreter: the cases, the files that it writes, and what it refuses.
#include "codegen/toolchain/tool_testing.h"
#include "nlohmann/json.hpp"
#include "tools/command_testing.h"

namespace heddle::tools {
namespace {

using codegen::TempDir;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Outcome bench(Arguments arguments, const std::vector<std::string>& environment = {}) {
  arguments.insert(arguments.begin(), "bench");
  std::vector<std::string> all = environment;
  if (const char* const path = std::getenv("PATH")) all.push_back(absl::StrCat("PATH=", path));
  return heddle_command(arguments, all);
}

// Tests that load libheddle.so into Python.
class BenchRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (HEDDLE_SANITIZED) GTEST_SKIP() << "Python loads no library that a sanitizer watches";
  }
};

// Of the interpreter and of one round.
Arguments quick(Arguments arguments) {
  arguments.insert(arguments.end(), {"--device", "interp", "--rounds", "1"});
  return arguments;
}

TEST_F(BenchRunTest, MeasuresEachTypeAtEachShape) {
  const TempDir dir;
  const std::string file = dir.file("figures.json");
  const Outcome outcome = bench(quick({"softmax", "--shape", "3x40", "--shape", "rows=2,columns=33",
                                       "--dtype", "f32,bf16", "--json", file}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("softmax bf16 2x33 "));
  const json result = json::parse(slurp(file));
  EXPECT_EQ(result["benchmark"], "bench");
  EXPECT_EQ(result["command"].get<std::string>().substr(0, 28), "heddle bench softmax --shape");
  ASSERT_EQ(result["figures"].size(), 4u);
  const json& figure = result["figures"][2];
  EXPECT_EQ(figure["kernel"], "softmax");
  EXPECT_EQ(figure["settings"], json({{"dtype", "bf16"}}));
  EXPECT_EQ(figure["shape"], "3x40");
  EXPECT_EQ(figure["sizes"], json({{"columns", 40}, {"rows", 3}}));
  EXPECT_EQ(figure["bytes"], 2 * 3 * 40 * 2);
  EXPECT_GT(figure["times"]["heddle"]["p50_us"], 0);
  EXPECT_GE(figure["times"]["heddle"]["p90_us"], figure["times"]["heddle"]["p50_us"]);
  EXPECT_GT(figure["times"]["copy"]["p50_us"], 0);
  EXPECT_NEAR(figure["of_copy"].get<double>(),
              figure["times"]["copy"]["p50_us"].get<double>() /
                  figure["times"]["heddle"]["p50_us"].get<double>(),
              1e-6);
}

TEST_F(BenchRunTest, DrawsAndWritesAPage) {
  const TempDir dir;
  const Outcome outcome = bench(quick({"rms_norm", "--shape", "2x16", "--shape", "2x64", "--plot",
                                       dir.file("speed.svg"), "--report", dir.file("page")}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(slurp(dir.file("speed.svg")), AllOf(HasSubstr("<svg"), HasSubstr("rms_norm f32 1e-6"),
                                                  HasSubstr("heddle, columns 64")));
  EXPECT_THAT(slurp(dir.file("page/index.html")),
              AllOf(HasSubstr("<!doctype html>"), HasSubstr("rms_norm f32 2x64 eps=1e-6"),
                    HasSubstr("<svg"), Not(HasSubstr("src=")), Not(HasSubstr("href="))));
}

TEST_F(BenchRunTest, TakesPlacesWithinTheirTensors) {
  // Targets and ids beyond the columns would be faults that the interpreter reports.
  for (const Arguments& arguments :
       {Arguments{"cross_entropy", "--shape", "5x7"},
        {"embedding", "--size", "n=9", "--size", "vocabulary=5", "--size", "columns=4"},
        {"sort_pairs", "--shape", "100", "--set", "dtype=u32"}}) {
    const Outcome outcome = bench(quick(arguments));
    EXPECT_EQ(outcome.exit_code, 0) << arguments[0] << ": " << outcome.err;
  }
}

TEST_F(BenchRunTest, MeasuresASuite) {
  const TempDir dir;
  std::ofstream(dir.file("suite.json")) << R"([
    {"kernel": "reduce", "shapes": ["rows=3,columns=5"], "dtypes": ["bf16"], "settings": ["op=argmax"]},
    {"kernel": "topk", "shapes": ["2x20"], "settings": ["k=3"]}])";
  const Outcome outcome =
      bench(quick({"--suite", dir.file("suite.json"), "--json", dir.file("figures.json")}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json figures = json::parse(slurp(dir.file("figures.json")))["figures"];
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0]["settings"]["op"], "argmax");
  EXPECT_EQ(figures[1]["sizes"], json({{"columns", 20}, {"k", 3}, {"rows", 2}}));
}

// All kernels, shapes and settings of the suites that come along exist.
TEST(BenchTest, SuitesAreOfWhatThereIs) {
  for (const char* const name : {"smoke", "full"}) {
    // Cases are bound before the device is opened.
    expect_one_line(bench({"--suite", name, "--device", "nowhere"}), 2, HasSubstr("nowhere"));
  }
}

TEST(BenchTest, RefusesWhatItCannotMeasure) {
  const TempDir dir;
  const std::string what =
      "bench takes a kernel's name or --suite, such as 'heddle bench softmax --shape 8192x8192 "
      "--dtype bf16 --against torch'";
  expect_misused(bench({}), what);
  expect_misused(bench({"softmax", "--suite", "smoke"}), what);
  expect_misused(bench({"softmx"}), HasSubstr("unknown kernel 'softmx'; did you mean 'softmax'?"));
  expect_misused(
      bench({"softmax", "--shape", "8"}),
      "--shape: '8' has 1 number; kernel 'softmax' takes rowsxcolumns, or rows=N,columns=N");
  expect_misused(bench({"softmax", "--dtype", "f64"}), HasSubstr("f64"));
  expect_misused(bench({"softmax", "--against", "torsh"}),
                 "--against: unknown peer 'torsh'; did you mean 'torch'?; peers: torch, "
                 "torch.compile, triton, cub");
  expect_misused(
      bench(quick({"softmax", "--against", "torch"})),
      "--against: peers run on a GPU, and interp is an interpreter; fix: leave --against "
      "out");
  expect_misused(bench({"--suite", "smoke", "--dtype", "f32"}),
                 HasSubstr("a suite says itself which shapes"));
  expect_misused(bench({"--suite", dir.file("none.json")}), HasSubstr("cannot be read"));
  expect_misused(bench(quick({"softmax", "--json", dir.file("none/figures.json")})),
                 HasSubstr("none/figures.json"));
}

TEST(BenchTest, SaysWhatIsWrongWithASuite) {
  const TempDir dir;
  const auto suite = [&](const char* text) {
    std::ofstream(dir.file("suite.json")) << text;
    return bench(quick({"--suite", dir.file("suite.json")}));
  };
  expect_misused(suite("{"), HasSubstr("this is no JSON array; a suite is ["));
  expect_misused(suite("[{}]"), HasSubstr("an entry has no kernel"));
  expect_misused(suite(R"([{"kernel": "softmax", "shape": ["1x1"]}])"),
                 HasSubstr("'shape' is unknown"));
  expect_misused(suite(R"([{"kernel": "softmax", "shapes": [8]}])"),
                 HasSubstr("'shapes' is no array of texts"));
  expect_misused(suite("[]"), "--suite: there are no cases in it");
}

TEST(BenchTest, SaysWhatIsMissing) {
  expect_one_line(bench(quick({"softmax"}), {"HEDDLE_PYTHON=/no/python"}), 1,
                  AllOf(HasSubstr("bench measures in Python, and /no/python cannot be started"),
                        HasSubstr("fix: install Python 3, or set HEDDLE_PYTHON to it")));
  expect_one_line(bench(quick({"softmax", "--shape", "1x8"}), {"HEDDLE_LIBRARY=/no/library"}), 1,
                  HasSubstr("/no/library"));
}

}  // namespace
}  // namespace heddle::tools
