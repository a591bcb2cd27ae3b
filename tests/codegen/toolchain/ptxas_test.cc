// The ptxas that is installed, as a program and as a library. Without one these tests skip and say so.
#include "heddle/codegen/toolchain/ptxas.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/codegen/toolchain/cubin.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// A kernel `k(p, n)` with registers of its own and descriptors of two shared-memory tiles.
std::string kernel(absl::string_view body, absl::string_view bounds = ".reqntid 128") {
  return absl::StrCat(R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n)
)",
                      bounds, R"(
{
  .reg .u64 %rd<4>; .reg .f32 %f<64>; .reg .u32 %r<8>; .reg .pred %p<4>; .reg .b64 %da, %db;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [n];
  mov.b64 %da, 0x4000004000010000;
  mov.b64 %db, 0x4000004000010100;
)",
                      body, "\n  ret;\n}\n");
}

constexpr char kClear[] =
    "  mov.f32 %f0, 0f00000000;\n  mov.f32 %f1, %f0;\n  mov.f32 %f2, %f0;\n  mov.f32 %f3, %f0;\n";
constexpr char kFence[] = "  wgmma.fence.sync.aligned;\n";
constexpr char kMma[] =
    "  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %da, %db, 1, 1, "
    "1, "
    "0, 0;\n  wgmma.commit_group.sync.aligned;\n";
constexpr char kWait[] = "  wgmma.wait_group.sync.aligned 0;\n";
constexpr char kStore[] = "  st.global.v4.f32 [%rd1], {%f0, %f1, %f2, %f3};\n";

// More live values than any small number of registers holds.
std::string register_hungry() {
  std::string body;
  for (int i = 0; i < 64; ++i) {
    absl::StrAppend(&body, "  ld.global.f32 %f", i, ", [%rd1+", i * 404, "];\n");
  }
  absl::StrAppend(&body, "  bar.sync 0;\n");
  for (int i = 0; i < 64; ++i) {
    absl::StrAppend(&body, "  st.global.f32 [%rd1+", i * 4, "], %f", (i * 7) % 64, ";\n");
  }
  return body;
}

class RealPtxas : public testing::TestWithParam<Assembler> {
 protected:
  void SetUp() override {
    options_.assembler = GetParam();
    const StatusOr<ToolLocation> ptxas =
        find_tool(GetParam() == Assembler::kLibrary ? Tool::kPtxLibrary : Tool::kPtxas);
    if (!ptxas.ok()) GTEST_SKIP() << "SKIPPED: " << ptxas.status().message();
    version_ = ptxas->version;
    options_.arch = "sm_90a";
    options_.entries = {"k"};
  }

  Assembly must_assemble(const std::string& ptx) {
    StatusOr<Assembly> assembly = assemble(ptx, options_);
    EXPECT_TRUE(assembly.ok()) << assembly.status();
    return assembly.ok() ? *std::move(assembly) : Assembly();
  }
  std::vector<std::string> notes(const std::string& ptx) {
    std::vector<std::string> codes;
    for (const Diagnostic& said : must_assemble(ptx).diagnostics) {
      if (said.is_performance_note()) codes.push_back(said.code);
    }
    return codes;
  }
  bool is_13_0() const { return version_.major == 13 && version_.minor == 0; }

  AssembleOptions options_;
  ToolVersion version_;
};
INSTANTIATE_TEST_SUITE_P(By, RealPtxas, testing::Values(Assembler::kPtxas, Assembler::kLibrary),
                         [](const testing::TestParamInfo<Assembler>& tested) {
                           return tested.param == Assembler::kPtxas ? "Program" : "Library";
                         });

TEST_P(RealPtxas, AssemblesAndReports) {
  const std::string ptx = kernel(R"(  .shared .align 16 .b8 tile[256];
  .local .align 4 .b8 stack[400];
  mov.u32 %r2, tile;
  mov.u32 %r3, stack;
  add.u32 %r3, %r3, %r1;
  st.local.u32 [%r3], %r1;
  st.shared.u32 [%r2], %r1;
  bar.sync 3;
  ld.shared.u32 %r4, [%r2+4];
  ld.local.u32 %r5, [%r3+4];
  add.u32 %r4, %r4, %r5;
  st.global.u32 [%rd1], %r4;)");
  const Assembly assembly = must_assemble(ptx);
  ASSERT_EQ(assembly.entries.size(), 1);
  const EntryReport& report = assembly.entries[0];
  EXPECT_EQ(report.name, "k");
  EXPECT_GE(report.registers, 6);
  EXPECT_LE(report.registers, 40);
  EXPECT_EQ(report.shared_bytes, 256);
  EXPECT_EQ(report.stack_frame_bytes, 400);
  EXPECT_EQ(report.spill_store_bytes, 0);
  EXPECT_EQ(report.spill_load_bytes, 0);
  EXPECT_EQ(report.barriers.value_or(4), 4);  // numbers 0 to 3
  EXPECT_GE(report.constant_bytes, 12);       // at least the parameters
  EXPECT_GT(report.code_bytes, 0);
  EXPECT_EQ(report.code_bytes % 16, 0);
  EXPECT_THAT(assembly.diagnostics, IsEmpty());
  EXPECT_GT(assembly.wall_time.count(), 0);
  EXPECT_EQ(assembly.ptxas_version, version_);
  EXPECT_TRUE(read_cubin(assembly.cubin).ok());
  EXPECT_EQ(must_assemble(ptx).cubin, assembly.cubin);  // nothing of the run gets into it
}

TEST_P(RealPtxas, CutCubinsAreFound) {
  const std::string cubin = must_assemble(kernel(kStore)).cubin;
  ASSERT_TRUE(read_cubin(cubin).ok());
  for (size_t size = 0; size < cubin.size(); ++size) {
    EXPECT_TRUE(IsDataLoss(read_cubin(cubin.substr(0, size)).status())) << size;
  }
}

TEST_P(RealPtxas, ReportsEveryKernel) {
  const std::string second = ".visible .entry k$2(.param .u64 p) .reqntid 32 { ret; }\n";
  options_.entries = {"k", "k$2"};
  const Assembly assembly = must_assemble(kernel(kStore) + second);
  EXPECT_EQ(assembly.entries.size(), 2);
  ASSERT_NE(assembly.find("k"), nullptr);
  ASSERT_NE(assembly.find("k$2"), nullptr);
  EXPECT_GT(assembly.find("k")->constant_bytes, assembly.find("k$2")->constant_bytes);

  options_.entries = {"k", "missing"};
  const Status status = assemble(kernel(kStore), options_).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("it holds no code of kernel 'missing'"));
}

TEST_P(RealPtxas, KnowsTheArchitectureOfEveryTarget) {
  for (const char* arch : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"}) {
    options_.arch = arch;
    const std::string ptx =
        absl::StrReplaceAll(kernel("  st.global.u32 [%rd1], %r1;"), {{"sm_90a", "sm_80"}});
    const StatusOr<Assembly> assembly = assemble(ptx, options_);
    if (IsUnimplemented(assembly.status())) continue;  // an older ptxas
    ASSERT_TRUE(assembly.ok()) << assembly.status();
    EXPECT_GE(assembly->find("k")->constant_bytes, 12) << arch;
  }
}

TEST_P(RealPtxas, ErrorsNameLineAndText) {
  const std::string ptx =
      kernel("  add.rn.f32 %f0, %f1, %f2;\n  add.rn.f32 %f0, %q1, %f2;\n  bar.sync 77;");
  std::vector<Diagnostic> said;
  const Status status = assemble(ptx, options_, &said).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("ptxas refused the PTX: PTX line "));
  EXPECT_THAT(message, HasSubstr("PTX line 13: Unknown symbol '%q1' in `add.rn.f32 %f0, %q1, "
                                 "%f2;`"));
  EXPECT_THAT(message, HasSubstr("PTX line 14: Barrier number '77' out of range, expected to be in "
                                 "range [0..15] in `bar.sync 77;`"));
  EXPECT_THAT(message, HasSubstr(absl::StrCat(" ", version_.to_string(), ", target sm_90a)")));
  EXPECT_FALSE(absl::StrContains(message, "aborted due to errors"));
  EXPECT_EQ(std::count_if(said.begin(), said.end(),
                          [](const Diagnostic& d) { return d.is_error() && d.ptx_line == 13; }),
            2);
}

TEST_P(RealPtxas, BrokenPtxIsRefused) {
  for (absl::string_view ptx :
       {absl::string_view(""), absl::string_view("hello"), absl::string_view("\0\0", 2)}) {
    EXPECT_EQ(assemble(ptx, options_).status().code(), StatusCode::kInvalidArgument) << ptx;
  }
}

TEST_P(RealPtxas, UnknownTargetsAndVersionsAreToldApart) {
  options_.arch = "sm_91";
  EXPECT_EQ(assemble(kernel(kStore), options_).status().code(), StatusCode::kUnimplemented);
  options_.arch = "sm_90a";
  const Status status =
      assemble(absl::StrReplaceAll(kernel(kStore), {{".version 8.0", ".version 99.0"}}), options_)
          .status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("Unsupported .version 99.0"));
  // Known, but not what the PTX is for.
  options_.arch = "sm_90";
  EXPECT_EQ(assemble(kernel(kStore), options_).status().code(), StatusCode::kInvalidArgument);
}

TEST_P(RealPtxas, MaxRegistersHoldsForKernelsWithBlockShape) {
  const std::string ptx = kernel(register_hungry(), ".reqntid 128");
  EXPECT_GT(must_assemble(ptx).find("k")->registers, 64);
  EXPECT_EQ(must_assemble(ptx).find("k")->spill_store_bytes, 0);
  options_.max_registers = 32;
  const Assembly limited = must_assemble(ptx);
  EXPECT_LE(limited.find("k")->registers, 32);
  EXPECT_GT(limited.find("k")->spill_store_bytes, 0);
  EXPECT_GT(limited.find("k")->spill_load_bytes, 0);
}

TEST_P(RealPtxas, FlagsReachIt) {
  options_.max_registers = 32;
  options_.extra_flags = {"--warn-on-spills"};
  const std::string ptx = kernel(register_hungry());
  const Assembly warned = must_assemble(ptx);
  EXPECT_TRUE(
      std::any_of(warned.diagnostics.begin(), warned.diagnostics.end(), [](const Diagnostic& said) {
        return said.severity == Severity::kWarning && absl::StrContains(said.text, "spilled");
      }));
  options_.extra_flags.push_back("--warning-as-error");
  EXPECT_EQ(assemble(ptx, options_).status().code(), StatusCode::kInvalidArgument);
  // Every flag on the list is one that ptxas has, from 13 on at the latest.
  options_.max_registers = 0;
  for (const std::string& allowed : allowed_ptxas_flags()) {
    std::string flag = allowed.substr(0, allowed.find('|'));
    if (absl::EndsWith(flag, "=N")) flag.replace(flag.size() - 1, 1, "1");
    options_.extra_flags = {flag};
    options_.opt_level = flag == "--device-debug" ? 0 : 3;  // refused together with optimisation
    const Status status = assemble(kernel(kStore), options_).status();
    const bool too_new =
        version_.major < 13 && absl::StrContains(status.message(), "Unknown option");
    EXPECT_TRUE(status.ok() || too_new) << flag << ": " << status;
  }
}

TEST_P(RealPtxas, LineInfoCanBeLeftOut) {
  const size_t with = must_assemble(kernel(kStore)).cubin.size();
  options_.line_info = false;
  EXPECT_LT(must_assemble(kernel(kStore)).cubin.size(), with);
}

TEST_P(RealPtxas, GoodWgmmaMakesNoNote) {
  EXPECT_THAT(notes(kernel(absl::StrCat(kClear, kFence, kMma, kWait, kStore))), IsEmpty());
}

TEST_P(RealPtxas, SetmaxnregNeedsMoreThanTheBlockShape) {
  const std::string body = "  setmaxnreg.dec.sync.aligned.u32 40;\n  st.global.u32 [%rd1], %r1;";
  // Neither a bare kernel nor one of known block shape bounds the registers at entry…
  EXPECT_THAT(notes(kernel(body, "")), testing::ElementsAre("C7508"));
  EXPECT_THAT(notes(kernel(body, ".reqntid 384")), testing::ElementsAre("C7508"));
  EXPECT_THAT(notes(kernel(body, ".maxntid 384")), testing::ElementsAre("C7508"));
  // …these do.
  EXPECT_THAT(notes(kernel(body, ".reqntid 384\n.minnctapersm 1")), IsEmpty());
  EXPECT_THAT(notes(kernel(body, ".reqntid 384\n.maxnreg 168")), IsEmpty());
}

TEST_P(RealPtxas, SerialisedWgmmaIsNoted) {
  struct Case {
    const char* name;
    std::string body, code_in_13_0;
  };
  const std::vector<Case> cases = {
      {"read while pending",
       absl::StrCat(kClear, kFence, kMma, "  st.global.f32 [%rd1+64], %f0;\n", kWait, kStore),
       "C7517"},
      {"moved on a back edge",
       absl::StrCat(kClear, "LOOP:\n", kFence, kMma, "  wgmma.wait_group.sync.aligned 1;\n",
                    "  mov.f32 %f4, %f0; mov.f32 %f0, %f1; mov.f32 %f1, %f4;\n"
                    "  sub.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra LOOP;\n",
                    kWait, kStore),
       "C7514"},
  };
  for (const Case& wrong : cases) {
    const std::vector<std::string> codes = notes(kernel(wrong.body));
    EXPECT_FALSE(codes.empty()) << wrong.name;
    if (is_13_0()) {
      EXPECT_THAT(codes, testing::Contains(wrong.code_in_13_0)) << wrong.name;
    }
  }
}

TEST_P(RealPtxas, AMissingFenceIsNoted) {
  if (!is_13_0()) GTEST_SKIP() << "SKIPPED: ptxas " << version_.to_string() << " does not say it";
  EXPECT_THAT(notes(kernel(absl::StrCat(kClear, kMma, kWait, kStore))),
              testing::ElementsAre("C7519"));
}

// Both are the same compiler: of one version they make the same code and say the same.
TEST_P(RealPtxas, ProgramAndLibraryAgree) {
  if (GetParam() == Assembler::kPtxas) GTEST_SKIP() << "SKIPPED: compared by the library's twin";
  const StatusOr<ToolLocation> program = find_tool(Tool::kPtxas);
  if (!program.ok()) GTEST_SKIP() << "SKIPPED: " << program.status().message();
  if (program->version.major != version_.major || program->version.minor != version_.minor) {
    GTEST_SKIP() << "SKIPPED: ptxas is " << program->version.to_string() << ", the library "
                 << version_.to_string();
  }
  AssembleOptions by_program = options_;
  by_program.assembler = Assembler::kPtxas;
  for (const std::string& ptx :
       {kernel(kStore), kernel(register_hungry()),
        kernel(absl::StrCat(kClear, kFence, kMma, "  st.global.f32 [%rd1+64], %f0;\n", kWait,
                            kStore))}) {
    const StatusOr<Assembly> one = assemble(ptx, options_), other = assemble(ptx, by_program);
    ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
    const EntryReport& a = *one->find("k");
    const EntryReport& b = *other->find("k");
    EXPECT_EQ(a.registers, b.registers);
    EXPECT_EQ(a.spill_store_bytes, b.spill_store_bytes);
    EXPECT_EQ(a.code_bytes, b.code_bytes);
    EXPECT_EQ(a.constant_bytes, b.constant_bytes);
    ASSERT_EQ(one->diagnostics.size(), other->diagnostics.size());
    for (size_t i = 0; i < one->diagnostics.size(); ++i) {
      EXPECT_EQ(one->diagnostics[i].text, other->diagnostics[i].text);
      EXPECT_EQ(one->diagnostics[i].code, other->diagnostics[i].code);
    }
  }
}

// A thread that was left behind may be in the library when the program ends.
TEST_P(RealPtxas, ProgramsMayEndWhileItWorks) {
  if (GetParam() == Assembler::kPtxas) GTEST_SKIP() << "SKIPPED: of a process of its own";
  if (HEDDLE_SANITIZED) GTEST_SKIP() << "SKIPPED: a sanitizer takes what is left behind for a leak";
  const std::string ptx = kernel(register_hungry());
  const auto end_early = [&](int ms) {
    options_.timeout = std::chrono::milliseconds(ms);
    (void)assemble(ptx, options_);
    std::exit(0);
  };
  for (int ms = 1; ms <= 12; ++ms) {
    EXPECT_EXIT(end_early(ms), testing::ExitedWithCode(0), "") << ms;
  }
}

TEST_P(RealPtxas, RunsInManyThreadsAtOnce) {
  const std::string ptx = kernel(kStore);
  const std::string expected = must_assemble(ptx).cubin;
  std::vector<int> right(4, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 4; ++i) {
        const StatusOr<Assembly> assembly = assemble(ptx, options_);
        right[t] += assembly.ok() && assembly->cubin == expected ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(right, testing::Each(4));
}

}  // namespace
}  // namespace heddle::codegen
