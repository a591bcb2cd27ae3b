#include "heddle/codegen/toolchain/ptxas_report.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heddle::codegen {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Diagnostic only_diagnostic(absl::string_view printed) {
  const PtxasReport report = parse_ptxas_output(printed);
  EXPECT_EQ(report.diagnostics.size(), 1) << printed;
  EXPECT_THAT(report.other, IsEmpty());
  return report.diagnostics.empty() ? Diagnostic() : report.diagnostics[0];
}

TEST(PtxasReport, ReadsStatisticsOfEveryEntry) {
  // ptxas 13.0.88, two kernels and a device function.
  PtxasReport report =
      parse_ptxas_output(R"(ptxas info    : 100 bytes gmem, 64 bytes cmem[3], 8 bytes cmem[4]
ptxas info    : Compiling entry function 'k$2' for 'sm_80'
ptxas info    : Function properties for k$2
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 4 barriers, 1000 bytes smem, 760 bytes cmem[0]
ptxas info    : Compile time = 2.305 ms
ptxas info    : Compiling entry function 'k1' for 'sm_80'
ptxas info    : Function properties for k1
    368 bytes stack frame, 420 bytes spill stores, 512 bytes spill loads
ptxas info    : Used 24 registers, used 1 barriers, 368 bytes cumulative stack size
ptxas info    : Compile time = 1.699 ms
ptxas info    : Function properties for f
    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
)");
  EXPECT_THAT(report.diagnostics, IsEmpty());
  EXPECT_EQ(report.other, "");
  ASSERT_EQ(report.entries.size(), 2);
  EXPECT_EQ(report.entries[0], (EntryReport{"k$2", 8, 0, 0, 0, 1000, 4, 0, 0}));
  EXPECT_EQ(report.entries[1], (EntryReport{"k1", 24, 368, 420, 512, 0, 1, 0, 0}));
  EXPECT_EQ(report.find("k1"), &report.entries[1]);
  EXPECT_EQ(report.find("f"), nullptr);
}

TEST(PtxasReport, ReadsTheLogOfTheLibrary) {
  // nvPTXCompiler 13.0: lines that go on with one begin in another way.
  const PtxasReport report = parse_ptxas_output(R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
ptxas         .     24 bytes stack frame, 68 bytes spill stores, 80 bytes spill loads
ptxas info    : Used 24 registers, used 1 barriers, 24 bytes cumulative stack size, 64 bytes smem
ptxas info    : Compile time = 30.680 ms
)");
  EXPECT_THAT(report.diagnostics, IsEmpty());
  EXPECT_EQ(report.other, "");
  ASSERT_EQ(report.entries.size(), 1);
  EXPECT_EQ(report.entries[0], (EntryReport{"k", 24, 24, 68, 80, 64, 1, 0, 0}));
}

TEST(PtxasReport, OldVersionsDoNotSayBarriers) {
  // ptxas 12.4.131
  const PtxasReport report = parse_ptxas_output(R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 255 registers
)");
  ASSERT_EQ(report.entries.size(), 1);
  EXPECT_EQ(report.entries[0].registers, 255);
  EXPECT_EQ(report.entries[0].barriers, std::nullopt);
}

TEST(PtxasReport, ReadsErrorsWithTheirLines) {
  const PtxasReport report = parse_ptxas_output(
      "ptxas /proc/self/fd/0, line 17; error   : Barrier number '77' out of range, expected to be "
      "in range [0..15]\n"
      "ptxas /proc/self/fd/0, line 22; fatal   : Parsing error near '}': syntax error\n"
      "ptxas fatal   : Ptx assembly aborted due to errors\n");
  EXPECT_THAT(
      report.diagnostics,
      ElementsAre(Diagnostic{Severity::kError, 17, "",
                             "Barrier number '77' out of range, expected to be in range [0..15]"},
                  Diagnostic{Severity::kFatal, 22, "", "Parsing error near '}': syntax error"},
                  Diagnostic{Severity::kFatal, 0, "", "Ptx assembly aborted due to errors"}));
  for (const Diagnostic& said : report.diagnostics) EXPECT_TRUE(said.is_error());
}

TEST(PtxasReport, ReadsWarnings) {
  EXPECT_EQ(
      only_diagnostic("ptxas /proc/self/fd/0, line 11; warning : Program is doing double "
                      "precision computations.\n"),
      (Diagnostic{Severity::kWarning, 11, "", "Program is doing double precision computations."}));
  const Diagnostic spills = only_diagnostic(
      "ptxas warning : Registers are spilled to local memory in function 'k', 420 bytes spill "
      "stores, 512 bytes spill loads");
  EXPECT_EQ(spills.severity, Severity::kWarning);
  EXPECT_EQ(spills.ptx_line, 0);
  EXPECT_FALSE(spills.is_error());
  EXPECT_FALSE(spills.is_performance_note());
  EXPECT_EQ(severity_name(spills.severity), "warning");
}

TEST(PtxasReport, FileNamesMayLookLikePlaces) {
  EXPECT_EQ(only_diagnostic("ptxas a, line 3; b, line x, line 12; error   : Unknown symbol '%q'"),
            (Diagnostic{Severity::kError, 12, "", "Unknown symbol '%q'"}));
}

TEST(PtxasReport, FatalErrorsHaveCodesToo) {
  const Diagnostic starved = only_diagnostic(
      "ptxas fatal   : (C7602) Insufficient registers (24) to compile instruction at line 45 in "
      "function k. Try to compile with register target of 58 or higher.");
  EXPECT_EQ(starved.code, "C7602");
  EXPECT_EQ(starved.ptx_line, 45);
  EXPECT_TRUE(starved.is_error());
  EXPECT_FALSE(starved.is_performance_note());
}

struct Note {
  absl::string_view printed, code;
  int line;
};

// All that ptxas 13.0.88 was seen to say with exit code 0, and what 13.5.37 says differently.
constexpr Note kNotes[] = {
    {"(C7505) Potential Performance Loss: 'setmaxnreg' ignored to allow debugging.", "C7505", 0},
    {"(C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count "
     "at entry.",
     "C7508", 0},
    {"(C7509) Potential Performance Loss: wgmma.mma_async instructions are serialized due to the "
     "presence of Extern calls in the function 'k'",
     "C7509", 0},
    {"(C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to wgmma "
     "pipeline crossing function boundary at a function call in the function 'k'",
     "C7510", 0},
    {"(C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
     "insufficient register resources for the wgmma pipeline in the function 'k'",
     "C7511", 0},
    {"(C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
     "insufficient register resources for the wgmma pipeline in the function 'k' in line 20",
     "C7511", 20},
    {"(C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized due to non "
     "wgmma instructions reading accumulator registers of  a wgmma between start and end of the "
     "pipeline stage in the function 'k'",
     "C7514", 0},
    {"(C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized due to non "
     "wgmma instructions reading accumulator registers of  a wgmma between start and end of the "
     "pipeline stage in the function 'k' in line 0",
     "C7514", 0},
    {"(C7517) warpgroup.wait is injected in around line 22 by compiler to allow use of registers "
     "defined by GMMA in function 'k'",
     "C7517", 22},
    {"(C7517) wgmma.wait_group is injected in around line 22 by compiler to allow use of registers "
     "defined by GMMA in function 'k'",
     "C7517", 22},
    {"(C7519) warpgroup.arrive is injected in around line 23 by compiler to allow use of registers "
     "in GMMA in function 'k'",
     "C7519", 23},
    {"(C7520) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
     "program "
     "dependence on compiler-inserted WG.AR in divergent path in the function 'k'",
     "C7520", 0},
};

TEST(PtxasReport, RecognisesPerformanceNotes) {
  for (const Note& note : kNotes) {
    const Diagnostic said = only_diagnostic(absl::StrCat("ptxas info    : ", note.printed, "\n"));
    EXPECT_EQ(said.severity, Severity::kInfo);
    EXPECT_EQ(said.code, note.code);
    EXPECT_EQ(said.ptx_line, note.line);
    EXPECT_TRUE(said.is_performance_note()) << note.printed;
    EXPECT_FALSE(said.is_error());
    // Numbers change between versions; the text alone will do.
    Diagnostic unnumbered = said;
    unnumbered.code.clear();
    EXPECT_TRUE(unnumbered.is_performance_note()) << note.printed;
  }
}

TEST(PtxasReport, OtherInformationIsNoPerformanceNote) {
  const Diagnostic said = only_diagnostic(
      "ptxas info    : Overriding maximum register limit 256 for 'k' with  24 of maxrregcount "
      "option\n");
  EXPECT_EQ(said.severity, Severity::kInfo);
  EXPECT_FALSE(said.is_performance_note());
}

TEST(PtxasReport, KeepsWhatOthersPrint) {
  const PtxasReport report = parse_ptxas_output(
      "ptxas: error while loading shared libraries: libm.so.6\n\nptxas something new\nfoo\r\n");
  EXPECT_THAT(report.diagnostics, IsEmpty());
  EXPECT_EQ(report.other,
            "ptxas: error while loading shared libraries: libm.so.6\nptxas something new\nfoo\n");
}

TEST(PtxasReport, CutOutputDoesNoHarm) {
  const std::string printed =
      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
      "ptxas info    : Function properties for k\n"
      "    8 bytes stack frame, 9 bytes spill stores, 10 bytes spill loads\n"
      "ptxas info    : (C7517) warpgroup.wait is injected in around line 22 by compiler\n"
      "ptxas /proc/self/fd/0, line 99999999999; error   : x\n"
      "ptxas info    : Used 8 registers, used 1 barriers\n";
  for (size_t size = 0; size <= printed.size(); ++size) {
    const PtxasReport report = parse_ptxas_output(printed.substr(0, size));
    EXPECT_LE(report.entries.size(), 1);
  }
  EXPECT_EQ(parse_ptxas_output(printed).entries[0].registers, 8);
}

}  // namespace
}  // namespace heddle::codegen
