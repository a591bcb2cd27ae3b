// What compiling says: of any source, and of ptxas, for which a stand-in prints what is to be said.
#include "heddle/runtime/compile.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "codegen/toolchain/tool_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/text_source.h"

namespace heddle::runtime {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr absl::string_view kWgmma = R"(
  %s = shared {extents = [4096], align = 1024} : view<bf16, shared, 1>
  %d = smem.desc %s, %z {leading = 1024, stride = 128, swizzle = 0} : smem_desc<bf16>
  %zeros = const 0.0 : frag<f32, 4>
  %start = wgmma.begin %zeros : pending<f32, 4>
  %q = wgmma %start, %d, %d : pending<f32, 4> loc("gemm.cc":41)
  wgmma.commit
  %sum = wgmma.wait %q {groups = 0} : frag<f32, 4>
  %e = extract %sum {index = 0} : f32
  store %y, %e, %z
)";
constexpr absl::string_view kPlain = "  %e = const 1.0 : f32\n  store %y, %e, %z\n";

class SlowWgmma : public testing::Test {
 protected:
  // What compiling the kernel gives where ptxas prints this besides; %LINE stands for the line of
  // its wgmma.
  Status compile(absl::string_view body, absl::string_view said, bool allow = false) {
    const TextSource source(
        absl::StrCat("kernel @gemm(%y: view<f32, global, 1> [?] strides [1]) block(128, 1, 1) "
                     "target(sm_90a) {\n  %z = const 0 : i32\n",
                     body, "}\n"));
    const std::string cubin =
        codegen::write_file(dir_.file("cubin"), codegen::make_cubin(90, {"gemm"}));
    const std::string ptxas = codegen::write_fake_ptxas(
        dir_.file("ptxas"),
        absl::StrCat("line=$(cat | grep -n wgmma.mma_async | head -1 | cut -d: -f1)\ncp '", cubin,
                     "' \"$out\"\nsed \"s/%LINE/$line/\" >&2 <<'END'\n", said, "END\n"));
    return compile_source(source, {},
                          {.block = {128, 1, 1},
                           .target = "sm_90a",
                           .ptxas_path = ptxas,
                           .allow_slow_wgmma = allow})
        .status();
  }

  codegen::TempDir dir_;
};

constexpr absl::string_view kSerialized =
    "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
    "serialized "
    "due to insufficient register resources for the wgmma pipeline in around line %LINE in the "
    "function 'gemm'\n";

TEST_F(SlowWgmma, IsAnErrorWithItsLine) {
  const Status status = compile(kWgmma, kSerialized);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  const std::string message(status.message());
  EXPECT_THAT(message,
              HasSubstr("kernel 'gemm' (gemm.cc:10): ptxas gave up the speed of its wgmmas:\n"
                        "  (C7510) Potential Performance Loss: wgmma.mma_async instructions "
                        "are serialized"));
  EXPECT_THAT(message, HasSubstr(" comes from: %q = wgmma %start, %d, %d : pending<f32, 4> "
                                 "(gemm.cc:41)"));
  EXPECT_THAT(message, HasSubstr("CompileOptions{.allow_slow_wgmma = true}"));
}

TEST_F(SlowWgmma, IsAllowedWhereAskedFor) {
  EXPECT_EQ(compile(kWgmma, kSerialized, true), OkStatus());
}

TEST_F(SlowWgmma, NotesWithoutALineAndSpillsCountToo) {
  EXPECT_THAT(
      std::string(compile(kWgmma,
                          "ptxas info    : (C7508) Potential Performance Loss: "
                          "'setmaxnreg' ignored to maintain minimum register requirements.\n")
                      .message()),
      HasSubstr("\n  (C7508) Potential Performance Loss: 'setmaxnreg' ignored"));
  EXPECT_THAT(
      std::string(compile(kWgmma,
                          "ptxas info    : Compiling entry function 'gemm' for 'sm_90a'\n"
                          "ptxas info    : Function properties for gemm\n"
                          "    16 bytes stack frame, 24 bytes spill stores, 20 bytes spill loads\n"
                          "ptxas info    : Used 255 registers, used 1 barriers\n")
                      .message()),
      HasSubstr("it needs more than 255 registers a thread, and spills 24 bytes to memory"));
}

// Each note has its remedy, and one that several notes share is said once.
TEST_F(SlowWgmma, SaysWhatHelps) {
  struct Case {
    const char* note;
    const char* fix;
  };
  const Case cases[] = {
      {"Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at "
       "entry.",
       "give the kernel a fixed block, CompileOptions{.block = …}"},
      {"Potential Performance Loss: 'setmaxnreg' ignored to allow debugging.",
       "compile without --device-debug"},
      {"Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register "
       "requirements.",
       "leave more registers to the threads that give some away"},
      {"Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
       "insufficient register resources for the wgmma pipeline in the function 'gemm'",
       "use smaller tiles, or more warp groups for each"},
      {"Potential Performance Loss: wgmma.mma_async instructions are serialized due to non wgmma "
       "instructions reading accumulator registers of  a wgmma in the function 'gemm'",
       "settle the fragment with wgmma.wait before anything else uses its registers"},
      {"wgmma.wait_group is injected in around line %LINE by compiler to allow use of registers",
       "settle the fragment with wgmma.wait before anything else uses its registers"},
      {"Potential Performance Loss: wgmma.mma_async instructions are serialized due to ill formed "
       "pipeline stage in the function 'gemm'",
       "close each group with wgmma.commit, on every path"},
      {"Potential Performance Loss: wgmma.mma_async instructions are serialized due to program "
       "dependence on compiler-inserted WG.DP in divergent path in the function 'gemm'",
       "branch around wgmma and its waits by conditions of whole warp groups"},
      {"Potential Performance Loss: something else", "mend what it names"},
  };
  for (const Case& c : cases) {
    const std::string line = absl::StrCat("ptxas info    : (C7599) ", c.note, "\n");
    EXPECT_THAT(std::string(compile(kWgmma, absl::StrCat(line, line)).message()),
                HasSubstr(absl::StrCat("\n  fix: ", c.fix, ", or take the kernel as it is with ")));
  }
}

// 128 accumulators do not fit into the 24 registers that the threads keep.
TEST(SlowWgmmaOfPtxas, IsAnError) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  const TextSource source(absl::StrReplaceAll(
      absl::StrCat("kernel @gemm(%y: view<f32, global, 1> [?] strides [1]) block(384, 1, 1) "
                   "target(sm_90a) {\n  %z = const 0 : i32\n  set_max_registers {count = 24}\n",
                   kWgmma, "}\n"),
      {{"f32, 4>", "f32, 128>"}, {"[4096]", "[16384]"}}));
  CompileOptions options{.block = {384, 1, 1}, .target = "sm_90a"};
  const Status status = compile_source(source, {}, options).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("ptxas gave up the speed of its wgmmas:"),
            HasSubstr("fix: leave more registers to the threads that give some away, or take ")));
  options.allow_slow_wgmma = true;
  EXPECT_EQ(compile_source(source, {}, options).status(), OkStatus());
}

TEST(CompileSource, TakesOptionsOfTheEnvironmentAndSaysWhichItTook) {
  const TextSource source(absl::StrCat(
      "kernel @gemm(%y: view<f32, global, 1> [?] strides [1]) block(32, 1, 1) target(sm_90a) {\n"
      "  %z = const 0 : i32\n",
      kPlain, "}\n"));
  const CompileOptions options{.block = {32, 1, 1}, .stage = Stage::kPtx};
  setenv("HEDDLE_OPTIONS", "--opt-level=1 --keep=none", 1);
  const Status wrong = compile_source(source, {}, options).status();
  setenv("HEDDLE_OPTIONS", "--opt-level=1", 1);
  const auto compilation = compile_source(source, {}, options);
  unsetenv("HEDDLE_OPTIONS");
  EXPECT_THAT(
      std::string(wrong.message()),
      HasSubstr("HEDDLE_OPTIONS: --keep=none: no stage is called 'none'; it takes trace, "));
  ASSERT_TRUE(compilation.ok()) << compilation.status();
  EXPECT_EQ((*compilation)->options.opt_level, 1);
  // A program's own are tested too.
  EXPECT_THAT(std::string(compile_source(source, {}, {.keep = "all,none"}).status().message()),
              HasSubstr("no stage is called 'none'"));
}

TEST(CompileSource, TheDriverMakesNoCubin) {
  const TextSource source(absl::StrCat(
      "kernel @gemm(%y: view<f32, global, 1> [?] strides [1]) block(32, 1, 1) target(sm_90a) {\n"
      "  %z = const 0 : i32\n",
      kPlain, "}\n"));
  EXPECT_THAT(
      std::string(compile_source(source, {}, {.block = {32, 1, 1}, .assembler = Assembler::kDriver})
                      .status()
                      .message()),
      HasSubstr("the driver assembles PTX when it loads it: there is no cubin before"));
  // A program that did not ask for it gets the PTX.
  setenv("HEDDLE_OPTIONS", "--assembler=driver", 1);
  const auto compilation = compile_source(source, {}, {.block = {32, 1, 1}});
  unsetenv("HEDDLE_OPTIONS");
  ASSERT_TRUE(compilation.ok()) << compilation.status();
  EXPECT_THAT((*compilation)->ptx.text, HasSubstr(".entry gemm"));
  EXPECT_EQ((*compilation)->assembly.cubin, "");
}

TEST_F(SlowWgmma, ConcernsKernelsWithWgmmaAlone) {
  EXPECT_EQ(compile(kPlain, kSerialized), OkStatus());
  EXPECT_EQ(compile(kWgmma, "ptxas info    : 0 bytes gmem\n"), OkStatus());
}

// A front end only records: whoever compiles verifies, each source in the same way.
TEST(CompileSource, VerifiesWhateverTheSourceIs) {
  const TextSource text(
      R"(kernel @gemm(%y: view<f32, global, 1> [?] strides [1]) block(128, 1, 1) target(sm_90a) {
  %z = const 0 : i32
  %t = thread_idx {axis = x} : i32
  %one = const 1 : i32
  %first = lt %t, %one : bool
  if %first {
    barrier
    yield
  }
  %e = const 1.0 : f32
  store %y, %e, %z
}
)");
  const CompileOptions options{.block = {128, 1, 1}, .stage = Stage::kIr};
  EXPECT_TRUE(text.trace({}).diagnostics.empty());
  const Status of_text = compile_source(text, {}, options).status();
  EXPECT_EQ(of_text.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(of_text.message()), HasSubstr("differs between threads"));

  const auto lambda = define_kernel("gemm(y)", [](Tensor<float, 1> y) {
    If(thread_idx.x < 1, [&] { sync_threads(); });
    y(0) = 1.0f;
  });
  ir::Specialization specialization;
  specialization.block = 128;
  EXPECT_TRUE(lambda.source().trace(specialization).diagnostics.empty());
  EXPECT_EQ(trace_source(lambda.source(), specialization).diagnostics.size(), 1u);
  const Status of_lambda = compile_source(lambda.source(), {}, options).status();
  EXPECT_THAT(std::string(of_lambda.message()), HasSubstr("differs between threads"));
}

// A kernel that loops over its threads while it is traced does not begin to for a block that no
// device has.
TEST(CompileSource, RefusesABlockBeforeItTraces) {
  int traces = 0;
  const auto counted = local_kernel("counted(y)", [&](Tensor<float, 1> y) {
    ++traces;
    y(0) = 1.0f;
  });
  const Status compiled = compile_source(counted.source(), {}, {.block = 1 << 20}).status();
  EXPECT_EQ(compiled.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(compiled.message()),
              HasSubstr("a block of 1048576 x 1 x 1 threads cannot be launched"));
  EXPECT_THAT(std::string(compiled.message()), HasSubstr("compile_test.cc:"));
  EXPECT_FALSE(compile_source(counted.source(), {}, {.block = 32, .cluster = 17}).ok());
  const Device device = Device::open("interp").value();
  const Buffer y = device.upload<float>({0}).value();
  const Status launched = counted.launch(device.default_stream(), {.grid = 1, .block = 1 << 20},
                                         as_tensor<float>(y, {1}));
  EXPECT_EQ(launched.message(), compiled.message());
  EXPECT_EQ(traces, 0);
  EXPECT_TRUE(compile_source(counted.source(), {}, {.block = 32, .stage = Stage::kIr}).ok());
  EXPECT_EQ(traces, 1);
}

TEST(CompileSource, RunsThePassesOfTheEnvironment) {
  const auto twice = define_kernel("twice(y)", [](Tensor<int, 1> y) { y[0] = Int(2) * 21; });
  const auto passes = [&] {
    const auto compiled = compile_source(twice.source(), {}, {.block = 32, .stage = Stage::kIr});
    std::vector<std::string> names;
    if (!compiled.ok()) return std::vector{std::string(compiled.status().message())};
    for (const ir::PassRun& run : (*compiled)->report.passes) names.push_back(run.name);
    return names;
  };
  ASSERT_EQ(setenv("HEDDLE_PASSES", "O1,-dce", 1), 0);
  EXPECT_THAT(passes(), testing::ElementsAre("promote-vars", "unroll", "fold", "cse"));
  const CompileOptions written{.block = 32, .passes = "O0", .stage = Stage::kIr};
  EXPECT_EQ((*compile_source(twice.source(), {}, written))->report.passes.size(), 1u);
  ASSERT_EQ(setenv("HEDDLE_PASSES", "O9", 1), 0);
  EXPECT_THAT(passes()[0], testing::MatchesRegex("kernel 'twice' .*: HEDDLE_PASSES: level O9 "
                                                 "is none of O0, O1, O2, O3 in pipeline 'O9'.*"));
  ASSERT_EQ(unsetenv("HEDDLE_PASSES"), 0);
  EXPECT_GT(passes().size(), 5u);
}

// The kernel ends where tracing was given up: its author's mistake is all there is to say.
TEST(CompileSource, DoesNotVerifyWhatWasAbandoned) {
  struct Recursion {
    static void run(const Tensor<float, 1>& y, const Int& n) {
      If(n > 0, [&] { run(y, n - 1); });
    }
  };
  const auto endless =
      define_kernel("endless(y)", [](Tensor<float, 1> y) { Recursion::run(y, thread_idx.x); });
  ir::Specialization specialization;
  specialization.block = 128;
  const ir::TraceResult traced = trace_source(endless.source(), specialization);
  EXPECT_TRUE(traced.abandoned);
  EXPECT_EQ(traced.diagnostics.size(), 1u) << ir::to_string(traced.diagnostics);
}

}  // namespace
}  // namespace heddle::runtime
