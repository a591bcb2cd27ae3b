#include "heddle/codegen/toolchain/disassemble.h"

#include <stdlib.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codegen/toolchain/tool_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/codegen/toolchain/ptxas.h"
#include "heddle/codegen/toolchain/tool_path.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

std::string message(const Status& status) { return std::string(status.message()); }

// nvdisasm 13.5.37 --print-code --print-line-info, shortened.
constexpr char kNvdisasm[] = R"(	.target	sm_90a

	.elftype	@"ET_EXEC"


//--------------------- .text.k                   --------------------------
	.section	.text.k,"ax",@progbits
	.align	128
        .global         k
        .type           k,@function
        .size           k,(.L_x_4 - k)
        .other          k,@"STO_CUDA_ENTRY STV_DEFAULT"
k:
.text.k:
	//## File "/src/my "odd" kernel.cc", line 42
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   LDG.E.128 R4, desc[UR6][R2.64] ;
	//## File "/src/other.h", line 43 inlined at "/src/kernel.cc", line 7
        /*0040*/                   ISETP.GT.U32.AND P0, PT, R5, 0x64, PT ;
.L_x_1:
        /*0050*/               @P0 EXIT ;
        /*0090*/             @!UP1 HGMMA.64x8x16.F32.BF16 R24, gdesc[UR4], R24, gsb0 ;
.L_x_0:
        /*00d0*/                   BRA `(.L_x_0);
        /*00e0*/                   NOP;
.L_x_4:
.text.k$2:
        /*0000*/                   NOP;

//--------------------- SYMBOLS --------------------------

	.type		.nv.reservedSmem.offset0,@object
)";

// cuobjdump 13.5.37 --dump-sass, shortened.
constexpr char kCuobjdump[] = R"sass(
	code for sm_90a
	.target	sm_90a

		Function : k
	.headerflags	@"EF_CUDA_ACCELERATORS EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"
        /*0000*/                   LDC R1, c[0x0][0x28] ;           /* 0x00000a00ff017b82 */
                                                                    /* 0x000fe20000000800 */
        /*0010*/              @!P0 BRA 0xf0;                        /* 0xfffffffc00fc7947 */
                                                                    /* 0x000fc0000383ffff */
		..........
)sass";

// All but the text.
auto instruction(const std::string& kernel, uint64_t offset, const std::string& opcode,
                 const std::string& file, int line) {
  return testing::AllOf(testing::Field(&SassInstruction::kernel, kernel),
                        testing::Field(&SassInstruction::offset, offset),
                        testing::Field(&SassInstruction::opcode, opcode),
                        testing::Field(&SassInstruction::file, file),
                        testing::Field(&SassInstruction::line, line));
}

TEST(SassOpcodes, ReadsNvdisasm) {
  const std::string first = "/src/my \"odd\" kernel.cc", second = "/src/other.h";
  EXPECT_THAT(sass_opcodes(kNvdisasm),
              ElementsAre(instruction("k", 0x00, "LDC", first, 42),
                          instruction("k", 0x10, "LDG.E.128", first, 42),
                          instruction("k", 0x40, "ISETP.GT.U32.AND", second, 43),
                          instruction("k", 0x50, "EXIT", second, 43),
                          instruction("k", 0x90, "HGMMA.64x8x16.F32.BF16", second, 43),
                          instruction("k", 0xd0, "BRA", second, 43),
                          instruction("k", 0xe0, "NOP", second, 43),
                          instruction("k$2", 0x00, "NOP", "", 0)));
}

TEST(SassOpcodes, ReadsCuobjdump) {
  const auto all = sass_opcodes(kCuobjdump);
  EXPECT_THAT(
      all, ElementsAre(instruction("k", 0x00, "LDC", "", 0), instruction("k", 0x10, "BRA", "", 0)));
  EXPECT_EQ(all[0].text, "LDC R1, c[0x0][0x28]");
  EXPECT_EQ(all[1].text, "@!P0 BRA 0xf0");
}

TEST(SassOpcodes, Counts) {
  EXPECT_THAT(count_opcodes(sass_opcodes(kCuobjdump)), ElementsAre(Pair("BRA", 1), Pair("LDC", 1)));
  EXPECT_EQ(count_opcodes(sass_opcodes(kNvdisasm))["NOP"], 2);
}

TEST(SassOpcodes, OtherTextHasNone) {
  EXPECT_THAT(sass_opcodes(""), IsEmpty());
  EXPECT_THAT(sass_opcodes("/*0000*/\n/*zz*/ NOP ;\n/*0010\n/*0020*/ @P0\n/*0030*/ NOP\n"),
              IsEmpty());
  const std::string listing = kNvdisasm;
  for (size_t size = 0; size < listing.size(); ++size) {
    EXPECT_LE(sass_opcodes(listing.substr(0, size)).size(), 8);
  }
}

class FakeDisassembler : public testing::Test {
 protected:
  // Hides whatever is installed.
  void SetUp() override {
    for (const char* name : {"HEDDLE_NVDISASM", "HEDDLE_CUOBJDUMP"}) {
      if (const char* value = getenv(name)) before_[name] = value;
      unsetenv(name);
    }
  }
  void TearDown() override {
    for (const char* name : {"HEDDLE_NVDISASM", "HEDDLE_CUOBJDUMP"}) {
      const auto value = before_.find(name);
      value == before_.end() ? unsetenv(name) : setenv(name, value->second.c_str(), 1);
    }
  }

  TempDir temp_;
  std::map<std::string, std::string> before_;
  std::string cubin_ = make_cubin(90, {"k"});
  DisassembleOptions options_;
};

TEST_F(FakeDisassembler, GetsTheCubinAsAFile) {
  options_.nvdisasm_path = write_script(temp_.file("nvdisasm"), "echo \"$@\"; cat \"$3\"");
  const StatusOr<std::string> listing = disassemble(cubin_, options_);
  ASSERT_TRUE(listing.ok()) << listing.status();
  EXPECT_EQ(*listing, absl::StrCat("--print-code --print-line-info /proc/self/fd/0\n", cubin_));
}

TEST_F(FakeDisassembler, SaysWhatWentWrong) {
  options_.nvdisasm_path = write_script(temp_.file("nvdisasm"), "echo broken >&2; exit 3");
  Status status = disassemble(cubin_, options_).status();
  EXPECT_EQ(status.code(), StatusCode::kUnknown);
  EXPECT_EQ(message(status),
            absl::StrCat(options_.nvdisasm_path, " ended with exit code 3 and printed: broken"));
  write_script(options_.nvdisasm_path, "sleep 100");
  options_.timeout = std::chrono::milliseconds(100);
  status = disassemble(cubin_, options_).status();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(message(status), absl::StrCat(options_.nvdisasm_path, " did not end within 0.1 s"));
}

TEST_F(FakeDisassembler, OneAskedForIsNotReplaced) {
  options_.cuobjdump_path = write_script(temp_.file("cuobjdump"), "echo listing");
  options_.nvdisasm_path = temp_.file("missing");
  EXPECT_EQ(disassemble(cubin_, options_).status().code(), StatusCode::kNotFound);
  options_.nvdisasm_path.clear();
  setenv("HEDDLE_NVDISASM", temp_.file("missing").c_str(), 1);
  EXPECT_THAT(message(disassemble(cubin_, options_).status()),
              HasSubstr("nvdisasm from HEDDLE_NVDISASM ("));
}

TEST_F(FakeDisassembler, DamagedCubinsAreNotPassedOn) {
  const Status status = disassemble("text", options_).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(message(status), "the cubin cannot be disassembled: it has only 4 bytes");
}

TEST_F(FakeDisassembler, CuobjdumpGetsAFolderOfItsOwn) {
  options_.cuobjdump_path =
      write_script(temp_.file("cuobjdump"),
                   "echo \"$@\" $TMPDIR; touch $TMPDIR/left_behind; stat -c %a $TMPDIR");
  const StatusOr<std::string> listing = disassemble(cubin_, options_);
  ASSERT_TRUE(listing.ok()) << listing.status();
  EXPECT_TRUE(absl::StartsWith(*listing, "--dump-sass /proc/self/fd/0 /"));
  EXPECT_TRUE(absl::EndsWith(*listing, "\n700\n"));
  const std::string folder = listing->substr(28, listing->find('\n') - 28);
  EXPECT_THAT(folder, HasSubstr("/heddle-"));
  EXPECT_FALSE(std::filesystem::exists(folder));
}

constexpr char kPtx[] = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p) .reqntid 32
{
  .reg .u64 %p; .reg .f32 %f<5>;
  ld.param.u64 %p, [p];
  .loc 1 41 3
  ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%p];
  .loc 1 42 3
  fma.rn.f32 %f1, %f2, %f3, %f4;
  st.global.f32 [%p], %f1;
  ret;
}
.file 1 "/src/my kernel.cc"
)";

class RealDisassembler : public testing::Test {
 protected:
  // Skips without ptxas or the tool.
  void need(Tool tool) {
    const StatusOr<ToolLocation> found = find_tool(tool);
    if (!found.ok()) GTEST_SKIP() << "SKIPPED: " << found.status().message();
    path_ = found->path;
    HEDDLE_NEEDS_TOOL(kPtxas);
    AssembleOptions options;
    options.arch = "sm_90a";
    options.entries = {"k"};
    StatusOr<Assembly> assembly = assemble(kPtx, options);
    ASSERT_TRUE(assembly.ok()) << assembly.status();
    assembly_ = *std::move(assembly);
  }
  std::vector<SassInstruction> instructions(const DisassembleOptions& options) {
    const StatusOr<std::string> listing = disassemble(assembly_.cubin, options);
    EXPECT_TRUE(listing.ok()) << listing.status();
    return listing.ok() ? sass_opcodes(*listing) : std::vector<SassInstruction>();
  }
  void expect_whole(const std::vector<SassInstruction>& instructions) {
    EXPECT_EQ(instructions.size() * 16, assembly_.find("k")->code_bytes);
    std::map<std::string, int> counts = count_opcodes(instructions);
    EXPECT_EQ(counts["LDG.E.128"], 1);
    EXPECT_EQ(counts["FFMA"], 1);
    for (const SassInstruction& instruction : instructions) EXPECT_EQ(instruction.kernel, "k");
  }

  std::string path_;
  Assembly assembly_;
};

TEST_F(RealDisassembler, NvdisasmKnowsSourceLines) {
  need(Tool::kNvdisasm);
  if (IsSkipped()) return;
  const std::vector<SassInstruction> all = instructions({.nvdisasm_path = path_});
  expect_whole(all);
  for (const SassInstruction& instruction : all) {
    if (instruction.opcode == "LDG.E.128") {
      EXPECT_EQ(instruction.line, 41);
    }
    if (instruction.opcode == "FFMA") {
      EXPECT_EQ(instruction.line, 42);
      EXPECT_EQ(instruction.file, "/src/my kernel.cc");
    }
  }
}

TEST_F(RealDisassembler, CuobjdumpWillDo) {
  need(Tool::kCuobjdump);
  if (IsSkipped()) return;
  expect_whole(instructions({.cuobjdump_path = path_}));
}

}  // namespace
}  // namespace heddle::codegen
