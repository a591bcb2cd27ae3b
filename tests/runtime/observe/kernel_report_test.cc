// What a report says of a kernel, as data, text and JSON; ptxas is a stand-in, so that all of it is known.
#include "heddle/runtime/observe/kernel_report.h"

#include "absl/strings/str_replace.h"
#include "runtime/observe/observe_testing.h"

namespace heddle::runtime {
namespace {

class KernelReportTest : public testing::Test {
 protected:
  std::shared_ptr<const Compilation> compile(const TextSource& source, CompileOptions options) {
    ir::Specialization facts;
    facts.facts = {{{ir::FactKind::kAlignment, 0, 0}, 16},
                   {{ir::FactKind::kExtentDivisor, 0, 0}, 1}};
    options.target = "sm_90a";
    options.passes = "dce";
    options.disk_cache = DiskCaching::kOff;
    options.ptxas_path = fake_ptxas(dir_);
    auto compilation = compile_source(source, facts, options);
    EXPECT_TRUE(compilation.ok()) << compilation.status();
    return *compilation;
  }
  codegen::TempDir dir_;
};

TEST_F(KernelReportTest, SaysWhatAnAuthorWantsToKnow) {
  const auto compilation = compile(store_source(), {.block = {256, 1, 1}});
  KernelReport report = kernel_report(*compilation, /*shared_bytes=*/100);
  report.times = {.trace = 1000, .passes = 2000, .emit = 500, .assemble = 8000, .ptxas = 7000};
  ASSERT_EQ(report.remarks.size(), 2u);
  const std::string line = absl::StrCat(report.remarks[1].ptx_line);
  EXPECT_EQ(to_text(report),
            "kernel gemm (gemm.cc:10) for sm_90a\n"
            "block        256x1x1\n"
            "code         64 registers, 24 bytes spilled by stores, 20 by loads, 612 bytes of "
            "shared memory\n"
            "             16 bytes of stack, 512 of static and 100 of dynamic shared memory, 0 of "
            "constants, 16 of instructions\n"
            "made by      ptxas 13.0.88, the program\n"
            "occupancy    4 blocks and 32 of 64 warps a multiprocessor, limited by registers\n"
            "ops          3 traced, 3 after dce\n"
            "ms           1.00 trace, 2.00 passes, 0.50 PTX, 8.00 assembling\n"
            "relies on    argument 0 ('y') starts at a multiple of 16 bytes\n"
            "ptxas says   (C7000) something is odd\n"
            "             gemm.cc:12: (C7510) Potential Performance Loss: it is slow in around "
            "line " +
                line + " in the function 'gemm' [store %y, %e, %z]\n");
  EXPECT_EQ(to_json(report),
            absl::StrReplaceAll(
                R"({
  "name": "gemm",
  "file": "gemm.cc",
  "line": 10,
  "target": "sm_90a",
  "block": [
    256,
    1,
    1
  ],
  "cluster": [
    1,
    1,
    1
  ],
  "passes": "dce",
  "ops_traced": 3,
  "ops_optimized": 3,
  "times_us": {
    "trace": 1000.0,
    "passes": 2000.0,
    "emit": 500.0,
    "assemble": 8000.0,
    "ptxas": 7000.0
  },
  "guards": [
    {
      "argument": 0,
      "name": "y",
      "fact": "align",
      "value": 16,
      "relied_on": true,
      "describe": "starts at a multiple of 16 bytes"
    },
    {
      "argument": 0,
      "name": "y",
      "fact": "extent_div",
      "mode": 0,
      "value": 1,
      "relied_on": false,
      "describe": "has an odd extent in mode 0"
    }
  ],
  "origin": "program",
  "code": {
    "assembler": "ptxas 13.0.88",
    "registers": 64,
    "spill_store_bytes": 24,
    "spill_load_bytes": 20,
    "stack_bytes": 16,
    "static_shared_bytes": 512,
    "dynamic_shared_bytes": 100,
    "constant_bytes": 0,
    "code_bytes": 16,
    "barriers": 1,
    "cubin_bytes": %BYTES
  },
  "occupancy": {
    "blocks": 4,
    "warps": 32,
    "max_warps": 64,
    "limits": [
      "registers"
    ]
  },
  "remarks": [
    {
      "kind": "warning",
      "code": "C7000",
      "text": "something is odd"
    },
    {
      "kind": "performance",
      "code": "C7510",
      "text": "Potential Performance Loss: it is slow in around line %LINE in the function 'gemm'",
      "file": "gemm.cc",
      "line": 12,
      "op": "store %y, %e, %z",
      "ptx_line": %LINE
    }
  ]
})",
                {{"%LINE", line}, {"%BYTES", absl::StrCat(compilation->assembly.cubin.size())}}));
}

TEST_F(KernelReportTest, LeavesOutWhatIsNotKnown) {
  const auto dynamic = compile(store_source(""), {});
  EXPECT_EQ(summary(kernel_report(*dynamic)),
            "64 registers, 24 bytes spilled by stores, 20 by loads, 512 bytes of shared memory");
  const KernelReport ir =
      kernel_report(*compile(store_source(), {.block = {256, 1, 1}, .stage = Stage::kIr}));
  EXPECT_EQ(ir.origin, CodeOrigin::kNobody);
  EXPECT_EQ(summary(ir), "");
  const KernelReport ptx =
      kernel_report(*compile(store_source(), {.block = {256, 1, 1}, .stage = Stage::kPtx}));
  EXPECT_EQ(ptx.origin, CodeOrigin::kDriver);
  EXPECT_FALSE(ptx.code || ptx.occupancy);
  EXPECT_THAT(to_text(ptx),
              testing::HasSubstr("\nmade by      the driver, when it loads the PTX\n"));
  EXPECT_THAT(to_json(ptx), testing::Not(testing::HasSubstr("occupancy")));
}

}  // namespace
}  // namespace heddle::runtime
