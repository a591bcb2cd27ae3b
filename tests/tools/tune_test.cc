// heddle tune: what is measured, kept and used, with made-up times in the place of a GPU's.
#include <chrono>
#include <cstdlib>
#include <map>
#include <thread>
#include <vector>

#include "heddle/heddle.h"
#include "heddle/kernels/gemm/config.h"
#include "heddle/runtime/tuning/tunable.h"
#include "heddle/tools/command/commands.h"
#include "support/matchers.h"
#include "tools/command_testing.h"

namespace heddle::tools {
namespace {

using codegen::TempDir;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// y = 1, by blocks of so many threads. One of 4 cannot be launched, of 77 elements none of 128 either, which the model chooses;
// one of 512 computes something else.
struct FillProblem {
  int64_t n;
  std::string to_string() const { return absl::StrCat(n); }
};
struct FillConfig {
  int threads = 0;
  std::string to_string() const { return absl::StrCat(threads, " threads"); }
};
const runtime::Tunable<FillProblem, FillConfig> tunable_fill(
    "fill",
    [](const FillProblem&, const DeviceInfo&) {
      return std::vector<FillConfig>{{32}, {64}, {4}, {128}, {256}, {512}};
    },
    [](const FillProblem&, const DeviceInfo&) { return FillConfig{128}; });
int last_threads = 0;

Status tuned_fill(const Stream& stream, const TensorRef<float, 1>& y) {
  static const auto kernel = define_kernel(
      "tuned_fill(x, value)", [](Tensor<float, 1> x, Float value) { x(thread_idx.x) = value; });
  last_threads = tunable_fill.choose({y.extents[0]}, stream.device().info()).threads;
  if (last_threads == 4) return UnimplementedError("4 threads are too few");
  if (last_threads == 128 && y.extents[0] == 77) return UnimplementedError("128 are too many");
  return kernel.launch(stream, {.grid = 1, .block = static_cast<int>(y.extents[0])}, y,
                       last_threads == 512 ? 1.5f : 1.0f);
}
const Registered registered_fill({.name = "tuned_fill",
                                  .summary = "y = 1",
                                  .arguments = {"y: f32[n]"},
                                  .functions = {host_function(tuned_fill)},
                                  .sizes = {{"n", 32}}});

// Two problems, of which the second follows from the choice for the first.
Status tuned_pair(const Stream& stream, const TensorRef<float, 1>& y) {
  if (Status s = tuned_fill(stream, y); !s.ok()) return s;
  const int first = last_threads;
  last_threads = tunable_fill.choose({1000 + first}, stream.device().info()).threads + first;
  return OkStatus();
}
const Registered registered_pair({.name = "tuned_pair",
                                  .summary = "y = 1",
                                  .arguments = {"y: f32[n]"},
                                  .functions = {host_function(tuned_pair)},
                                  .sizes = {{"n", 32}}});

class TuneTest : public ::testing::Test {
 protected:
  TuneTest() { setenv("HEDDLE_CACHE_DIR", dir_.file("cache").c_str(), 1); }
  ~TuneTest() override { unsetenv("HEDDLE_CACHE_DIR"); }

  // With the times of candidates by their threads.
  Exit tune(TuneOptions options, std::map<int, double> times) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const auto timer = [=, this](const Launch& launch, int, int bursts) -> StatusOr<double> {
      if (Status s = launch(0); !s.ok()) return s;
      if (bursts > 1) {
        looked_closer_.push_back(last_threads);
        std::this_thread::sleep_for(a_closer_look_);
      }
      if (times.count(last_threads) == 0) return InternalError("it never ended");
      return times.at(last_threads);
    };
    const Exit exit = tune_kernel(options, timer);
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    return exit;
  }
  static TuneOptions of_fill(std::vector<std::string> shapes = {}) {
    TuneOptions options;
    options.choice.kernel = "tuned_fill";
    options.device = "interp";
    options.shapes = std::move(shapes);
    return options;
  }
  // The threads that a launch on n elements has.
  static int threads(int64_t n) {
    const Device device = Device::open("interp").value();
    const Buffer y = device.allocate(static_cast<size_t>(4 * n)).value();
    EXPECT_THAT(tuned_fill(device.default_stream(), as_tensor<float>(y, {n})), IsOk());
    return last_threads;
  }
  std::vector<std::string> environment() const {
    return {absl::StrCat("HEDDLE_CACHE_DIR=", dir_.file("cache"))};
  }

  TempDir dir_;
  std::string out_, err_;
  std::chrono::milliseconds a_closer_look_{0};
  std::vector<int> looked_closer_;  // at the candidates with so many threads
};

TEST_F(TuneTest, TheFastestIsKeptAndUsedFromThenOn) {
  EXPECT_EQ(threads(33), 128);
  EXPECT_EQ(tune(of_fill({"33", "n=34"}), {{32, 9}, {64, 2.5}, {128, 3}, {256, 8}, {512, 9}}),
            Exit::kDone)
      << err_;
  EXPECT_EQ(out_,
            absl::StrCat("fill 33: 5 of 6 candidates measured\n"
                         "  model          3.00 us  128 threads\n"
                         "  fastest        2.50 us  64 threads  (1.200x)\n"
                         "fill 34: 5 of 6 candidates measured\n"
                         "  model          3.00 us  128 threads\n"
                         "  fastest        2.50 us  64 threads  (1.200x)\n"
                         "kept in ",
                         dir_.file("cache"), "/tuned; launches on Heddle interpreter use it\n"));
  EXPECT_EQ(err_,
            "heddle: left out: 4 threads: 4 threads are too few\n"
            "heddle: left out: 4 threads: 4 threads are too few\n");
  EXPECT_EQ(threads(33), 64);
  EXPECT_EQ(threads(34), 64);
  EXPECT_EQ(threads(35), 128);
  // Again, with other times.
  EXPECT_EQ(tune(of_fill({"33"}), {{32, 1}, {64, 2.5}, {128, 3}, {256, 8}, {512, 9}}), Exit::kDone);
  EXPECT_EQ(threads(33), 32);
  EXPECT_EQ(threads(34), 64);
}

TEST_F(TuneTest, ACandidateWithOtherResultsIsLeftOut) {
  EXPECT_EQ(tune(of_fill({"39"}), {{32, 9}, {64, 2.5}, {128, 3}, {256, 8}, {512, 2.4}}),
            Exit::kDone);
  EXPECT_THAT(out_, HasSubstr("2.50 us  64 threads"));
  EXPECT_EQ(err_,
            "heddle: left out: 4 threads: 4 threads are too few\n"
            "heddle: left out: 512 threads: 39 elements of its results differ from the model's\n");
  EXPECT_EQ(threads(39), 64);
}

TEST_F(TuneTest, AModelsChoiceThatCannotRunGivesWayToOthers) {
  EXPECT_EQ(tune(of_fill({"77"}), {{32, 9}, {64, 2.5}, {128, 1}, {256, 8}}), Exit::kDone);
  EXPECT_THAT(out_, HasSubstr("  model     cannot run   128 threads\n"
                              "  fastest        2.50 us  64 threads\n"));
  EXPECT_THAT(err_, HasSubstr("heddle: left out: 128 threads: 128 are too many\n"));
  EXPECT_EQ(threads(77), 64);
}

TEST_F(TuneTest, AllTimesAreListedOnDemandFastestFirst) {
  TuneOptions options = of_fill({"41"});
  options.all = true;
  EXPECT_EQ(tune(options, {{32, 9}, {64, 2.5}, {128, 3}, {256, 8}, {512, 2.4}}), Exit::kDone);
  EXPECT_THAT(out_, HasSubstr("(1.200x)\n"
                              "                 2.50 us  64 threads\n"
                              "                 3.00 us  128 threads\n"
                              "                 8.00 us  256 threads\n"
                              "                 9.00 us  32 threads\n"
                              "kept in "));
}

TEST_F(TuneTest, ASecondProblemIsTunedBehindTheFastestOfTheFirst) {
  TuneOptions options = of_fill({"40"});
  options.choice.kernel = "tuned_pair";
  // The first is the fastest with 32 threads, though 256 are near and timed behind them; so is the second.
  EXPECT_EQ(tune(options, {{32 + 128, 2},
                           {64 + 128, 9},
                           {128 + 128, 8},
                           {256 + 128, 2.1},
                           {512 + 128, 9},
                           {32 + 32, 1},
                           {32 + 64, 3},
                           {32 + 256, 3},
                           {32 + 512, 3}}),
            Exit::kDone)
      << err_;
  EXPECT_THAT(out_, HasSubstr("fill 40: 5 of 6 candidates measured\n"));
  EXPECT_THAT(out_, HasSubstr("fill 1032: "));
  EXPECT_THAT(out_, Not(HasSubstr("fill 1128: "))) << "which the model's choice led to";
  EXPECT_THAT(out_, HasSubstr("1.00 us  32 threads"));
}

TEST_F(TuneTest, ABudgetThatIsSpentLeavesCandidatesOut) {
  TuneOptions options = of_fill({"36"});
  options.budget = 0;
  EXPECT_EQ(tune(options, {{128, 3}}), Exit::kDone) << "the model's comes first";
  EXPECT_THAT(out_, StartsWith("fill 36: 1 of 6 candidates measured\n"));
  EXPECT_EQ(
      err_,
      "heddle: the budget of time left out 5 candidates; fix: give more with --budget SECONDS\n");
}

// The model's choice first, with whose results others are compared; then the fastest ones.
TEST_F(TuneTest, ABudgetEndsCloserLooksToo) {
  const std::map<int, double> times = {{32, 2.6}, {64, 2.5}, {128, 2.65}, {256, 2.55}, {512, 9}};
  EXPECT_EQ(tune(of_fill(), times), Exit::kDone) << err_;
  EXPECT_THAT(looked_closer_, ::testing::ElementsAre(128, 64, 256, 32));
  looked_closer_.clear();
  a_closer_look_ = std::chrono::milliseconds(1100);
  TuneOptions options = of_fill({"33"});
  options.budget = 1;
  EXPECT_EQ(tune(options, times), Exit::kDone) << err_;
  EXPECT_THAT(looked_closer_, ::testing::ElementsAre(128));
}

TEST_F(TuneTest, ListsExportsAndImports) {
  TuneOptions options;
  options.list = true;
  EXPECT_EQ(tune(options, {}), Exit::kDone);
  EXPECT_EQ(out_, "nothing is tuned; 'heddle tune gemm --shape 4096x4096x4096' tunes\n");
  EXPECT_EQ(tune(of_fill({"37"}), {{32, 9}, {64, 2}, {128, 3}, {256, 8}, {512, 9}}), Exit::kDone);
  EXPECT_EQ(tune(options, {}), Exit::kDone);
  EXPECT_THAT(out_, StartsWith("fill on Heddle interpreter\n"
                               "  37: 64 threads, 2.00 us (model 3.00 us, 20"));
  const std::string file = dir_.file("all.json");
  options = {};
  options.export_file = file;
  EXPECT_EQ(tune(options, {}), Exit::kDone);
  EXPECT_EQ(out_, absl::StrCat("1 tuning to ", file, "\n"));

  setenv("HEDDLE_CACHE_DIR", dir_.file("other").c_str(), 1);
  options = {};
  options.import_file = file;
  EXPECT_EQ(tune(options, {}), Exit::kDone);
  EXPECT_EQ(out_, absl::StrCat("1 tuning kept in ", dir_.file("other"), "/tuned\n"));
  EXPECT_EQ(threads(37), 64);
  options.import_file = dir_.file("none.json");
  EXPECT_EQ(tune(options, {}), Exit::kMisused);
  EXPECT_EQ(err_, absl::StrCat("heddle: ", dir_.file("none.json"), ": there is no such file\n"));
}

TEST_F(TuneTest, SaysWhatIsWrongWithItsOptions) {
  EXPECT_EQ(tune({}, {}), Exit::kMisused);
  EXPECT_THAT(err_, HasSubstr("tune takes one of a kernel's name, --list, --export FILE and "
                              "--import FILE"));
  TuneOptions options = of_fill();
  options.list = true;
  EXPECT_EQ(tune(options, {}), Exit::kMisused);
  EXPECT_EQ(tune(of_fill({"2x3"}), {}), Exit::kMisused);
  EXPECT_EQ(err_, "heddle: --shape: '2x3' has 2 numbers; kernel 'tuned_fill' takes n, or n=N\n");
  for (const char* const shape : {"0", "big", "m=3", "n=", "n"}) {
    EXPECT_EQ(tune(of_fill({shape}), {}), Exit::kMisused) << shape;
    EXPECT_THAT(err_, HasSubstr("is no size; kernel 'tuned_fill' takes n, or n=N, each from 1 up"));
  }
  options = of_fill();
  options.choice.kernel = "row_sum";
  options.shapes = {"4x8"};
  EXPECT_EQ(tune(options, {}), Exit::kMisused);
  EXPECT_EQ(err_, "heddle: kernel 'row_sum' has nothing to tune: it has one configuration\n");
  EXPECT_EQ(tune(of_fill({"38"}), {}), Exit::kFailed);
  EXPECT_EQ(err_, "heddle: no candidate of fill 38 can be launched: it never ended\n");
}

TEST_F(TuneTest, TheCommandRefusesTheInterpreter) {
  EXPECT_EQ(tune_kernel(of_fill()), Exit::kMisused);
  const Outcome refused =
      heddle_command({"tune", "gemm", "--shape", "64x64x64", "--device", "interp"}, environment());
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("tune measures on a GPU, and interp is an interpreter, whose "
                                     "times say nothing of one; fix: --device cuda:0"));
  const Outcome listed = heddle_command({"tune", "--list"}, environment());
  EXPECT_EQ(listed.exit_code, 0);
  EXPECT_THAT(listed.out, HasSubstr("nothing is tuned"));
}

// gemm, by its command: the kernel that runs is the tuned one, unless HEDDLE_TUNE=off.
TEST_F(TuneTest, GemmUsesWhatWasTuned) {
  const Device device = Device::open("interp").value();
  const kernels::GemmProblem problem{.m = 64, .n = 64, .k = 128};
  const kernels::GemmConfig model = kernels::choose_gemm(problem, device.info());
  std::string chosen;
  for (const kernels::GemmConfig& config : kernels::gemm_configs(problem, device.info())) {
    if (config.m != model.m) chosen = config.to_string();
  }
  ASSERT_THAT(chosen, Not(IsEmpty()));
  ASSERT_THAT(runtime::keep_tuning({device.info().name,
                                    "gemm",
                                    {{problem.to_string(), chosen, model.to_string(), 1, 2, ""}}}),
              IsOk());
  EXPECT_EQ(kernels::tuned_gemm(problem, device.info()).to_string(), chosen);
  for (const char* const name : {"a", "b"}) {
    make_npy(dir_.file(name), ir::Scalar::kF16, {64, 128}, [](size_t i) { return i % 3; });
  }
  const auto ir = [&](std::vector<std::string> more) {
    more.push_back("HEDDLE_DUMP=ir");
    const Outcome run = heddle_command({"run", "gemm", "--device", "interp", "--check", "--in",
                                        "a=" + dir_.file("a"), "--in", "b=" + dir_.file("b")},
                                       more);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.err;
  };
  std::vector<std::string> off = environment();
  off.push_back("HEDDLE_TUNE=off");
  const std::string untuned = ir({absl::StrCat("HEDDLE_CACHE_DIR=", dir_.file("empty"))});
  EXPECT_EQ(ir(off), untuned);
  EXPECT_NE(ir(environment()), untuned);
}

}  // namespace
}  // namespace heddle::tools
