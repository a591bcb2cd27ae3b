// What ptxas makes of whole kernels.
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "codegen/ptx_kernels.h"
#include "codegen/ptx_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/codegen/toolchain/disassemble.h"
#include "heddle/ir/passes/pipeline.h"

namespace heddle::codegen {
namespace {

TEST(PtxAssembled, AFullBlockFitsIntoTheRegisterFile) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  // 96 values that are all alive at the barrier.
  std::string body(kThread);
  for (int i = 0; i < 96; ++i) {
    absl::StrAppend(&body, "%c", i, " = const ", 1024 * i, " : i32\n%o", i, " = add %t, %c", i,
                    " : i32\n%v", i, " = load %x, %o", i, " : f32\n");
  }
  absl::StrAppend(&body, "barrier\n");
  for (int i = 0; i < 96; ++i) {
    absl::StrAppend(&body, "store %y, %v", (i * 7) % 96, ", %o", i, "\n");
  }
  const PtxModule module = ptx_of(kernel_from(kernel_text(body, "block(1024, 1, 1)")));
  const auto assembly = assemble_for(module.text, "sm_90a", {module.entry});
  ASSERT_TRUE(assembly.ok()) << assembly.status();
  EXPECT_LE(assembly->find(module.entry)->registers, 64);
  EXPECT_EQ(65536 / 1024, 64);
}

std::string filetest(absl::string_view name) {
  std::ostringstream text;
  text << std::ifstream(absl::StrCat(HEDDLE_TEST_DATA_DIR "/filetests/", name)).rdbuf();
  return text.str();
}

PtxModule optimized_ptx_of(absl::string_view text) {
  StatusOr<ir::Kernel> kernel = ir::parse(text, "kernel.ir");
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  const Status optimized = ir::run_pipeline(*kernel, ir::kDefaultPipeline);
  EXPECT_TRUE(optimized.ok()) << optimized;
  return ptx_of(*kernel);
}

// The registers of a pending accumulator are tied from its begin to its wait, through the loop:
// ptxas serialises nothing, and moves nothing between the products of a block.
TEST(PtxAssembled, APendingAccumulatorStaysInItsRegisters) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  const PtxModule module = optimized_ptx_of(filetest("wgmma_pipelined.ir"));
  const auto assembly = assemble_for(module.text, "sm_90a", {module.entry});
  ASSERT_TRUE(assembly.ok()) << assembly.status();
  for (const Diagnostic& said : assembly->diagnostics) {
    EXPECT_FALSE(said.is_performance_note()) << said.text;
  }

  HEDDLE_NEEDS_TOOL(kNvdisasm);
  const StatusOr<std::string> listing = disassemble(assembly->cubin);
  ASSERT_TRUE(listing.ok()) << listing.status();
  std::vector<std::string> between;  // the first product and the last
  size_t products = 0, kept = 0;
  for (const SassInstruction& instruction : sass_opcodes(*listing)) {
    if (absl::StartsWith(instruction.opcode, "HGMMA")) {
      ++products;
      kept = between.size();
    } else if (products > 0) {
      between.push_back(instruction.opcode);
    }
  }
  between.resize(kept);
  EXPECT_EQ(products, 4u);
  for (const std::string& opcode : between) {
    EXPECT_FALSE(absl::StartsWith(opcode, "MOV") || absl::StartsWith(opcode, "IMAD.MOV")) << opcode;
  }
}

// An operand a in registers belongs to the tensor cores from its begin to its wait, round a loop too: ptxas
// serialises nothing.
TEST(PtxAssembled, AnOperandInRegistersStaysThere) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  HEDDLE_NEEDS_TOOL(kNvdisasm);
  for (const auto& [file, expected] :
       {std::pair{"wgmma_attention.ir", 9u}, std::pair{"wgmma_registers_carried.ir", 1u}}) {
    const PtxModule module = optimized_ptx_of(filetest(file));
    const auto assembly = assemble_for(module.text, "sm_90a", {module.entry});
    ASSERT_TRUE(assembly.ok()) << assembly.status();
    for (const Diagnostic& said : assembly->diagnostics) {
      EXPECT_FALSE(said.is_performance_note()) << file << ": " << said.text;
    }
    const StatusOr<std::string> listing = disassemble(assembly->cubin);
    ASSERT_TRUE(listing.ok()) << listing.status();
    size_t products = 0, moves = 0;
    for (const SassInstruction& instruction : sass_opcodes(*listing)) {
      const absl::string_view opcode = instruction.opcode;
      products += absl::StartsWith(opcode, "HGMMA") ? 1 : 0;
      const bool moved = absl::StartsWith(opcode, "MOV") || absl::StartsWith(opcode, "IMAD.MOV");
      moves += products > 0 && products < expected && moved ? 1 : 0;
    }
    EXPECT_EQ(products, expected) << file;
    EXPECT_EQ(moves, 0u) << file;
  }
}

// A stage goes back and forth between two blocks; each trip waits for the block's own mbarrier, and
// arrives at the other's. `attributes`: of the arrival, and of the wait.
std::vector<std::string> fences_of_a_handshake(absl::string_view arrival, absl::string_view wait) {
  const std::string text = absl::StrCat(
      R"(kernel @k(%n: i32, %y: view<f32, global, 1> [?] strides [1]) block(32, 1, 1) cluster(2, 1, 1) {
  %z = const 0 : i32
  %one = const 1 : i32
  %zero = const 0.0 : f32
  %t = thread_idx {axis = x} : i32
  %w = shared {extents = [1]} : view<u64, shared, 1>
  %s = shared {extents = [32]} : view<f32, shared, 1>
  %rank = cluster_rank : i32
  %other = sub %one, %rank : i32
  %r = map_shared %w, %other : view<u64, shared_cluster, 1>
  %sum = for %i in %z .. %n step %one carry(%acc = %zero) : f32 {
    %parity = bitcast %i : u32
    mbarrier.wait %w, %z, %parity)",
      wait,
      "\n    %v = load %s, %t : f32\n    %next = add %acc, %v : f32\n    mbarrier.arrive %r, %z",
      arrival, "\n    yield %next\n  }\n  store %y, %sum, %t\n}\n");
  const PtxModule module = ptx_of(kernel_from(text));
  const auto assembly = assemble_for(module.text, "sm_90a", {module.entry});
  HEDDLE_CHECK(assembly.ok(), std::string(assembly.status().message()));
  const StatusOr<std::string> listing = disassemble(assembly->cubin);
  HEDDLE_CHECK(listing.ok(), std::string(listing.status().message()));
  std::vector<std::string> fences;
  bool arrives = false;
  for (const SassInstruction& instruction : sass_opcodes(*listing)) {
    arrives |= absl::StartsWith(instruction.opcode, "SYNCS.ARRIVE");
    for (const absl::string_view fence : {"MEMBAR", "ERRBAR", "CGAERRBAR", "CCTL"}) {
      if (absl::StartsWith(instruction.opcode, fence)) fences.push_back(instruction.opcode);
    }
  }
  EXPECT_TRUE(arrives) << *listing;
  return fences;
}

// A fence of the whole GPU in each trip costs a matrix product a third of its speed.
TEST(PtxAssembled, AnArrivalOfScopeBlockAtAnotherBlocksMbarrierFencesNothing) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  HEDDLE_NEEDS_TOOL(kNvdisasm);
  using testing::Contains;
  using testing::IsEmpty;
  using testing::StartsWith;
  EXPECT_THAT(fences_of_a_handshake(" {scope = block}", " {scope = block}"), IsEmpty());
  EXPECT_THAT(fences_of_a_handshake(" {order = relaxed}", " {order = relaxed}"), IsEmpty());
  EXPECT_THAT(fences_of_a_handshake("", " {scope = block}"), Contains(StartsWith("MEMBAR")));
  EXPECT_THAT(fences_of_a_handshake(" {scope = block}", ""), Contains(StartsWith("CCTL")));
}

// What the machine does in a trip of wgmma_rescaled.ir: how many exponentials between the two waits,
// and how many moves in all.
struct Trip {
  int exponentials = 0;
  int moves = 0;
};
Trip trip_of(absl::string_view text) {
  const PtxModule module = optimized_ptx_of(text);
  const auto assembly = assemble_for(module.text, "sm_90a", {module.entry});
  EXPECT_TRUE(assembly.ok()) << assembly.status();
  for (const Diagnostic& said : assembly->diagnostics) {
    EXPECT_FALSE(said.is_performance_note()) << said.text;
  }
  const StatusOr<std::string> listing = disassemble(assembly->cubin);
  EXPECT_TRUE(listing.ok()) << listing.status();
  Trip trip;
  int waits = 0;
  bool products = false;
  for (const SassInstruction& instruction : sass_opcodes(*listing)) {
    const absl::string_view opcode = instruction.opcode;
    products |= absl::StartsWith(opcode, "HGMMA");
    if (absl::StartsWith(opcode, "WARPGROUP.DEPBAR")) ++waits;
    if (waits == 1 && absl::StartsWith(opcode, "MUFU.EX2")) ++trip.exponentials;
    const bool moves = absl::StartsWith(opcode, "MOV") || absl::StartsWith(opcode, "IMAD.MOV");
    if (products && waits < 3 && moves) ++trip.moves;
  }
  return trip;
}

// A rescaled accumulator is carried pending without a move or a note of ptxas. Where a pin lists
// them, the exponentials are issued in front of the second wait; ptxas moves them behind it otherwise.
TEST(PtxAssembled, APinKeepsWorkInFrontOfAWait) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  HEDDLE_NEEDS_TOOL(kNvdisasm);
  const std::string pinned = filetest("wgmma_rescaled.ir");
  const Trip with = trip_of(pinned);
  EXPECT_EQ(with.exponentials, 64);
  EXPECT_EQ(with.moves, 0);
  const Trip without = trip_of(absl::StrReplaceAll(pinned, {{"pin %weights", ""}}));
  EXPECT_LT(without.exponentials, 64);
}

TEST(PtxAssembled, QuotesNamesOfFilesAsPtxCan) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  ir::Kernel kernel = kernel_from(kRowSum);
  kernel.op(kernel.region(kernel.body()).last).loc = kernel.intern_loc("c:\\a \"b\".cc", 1);
  const PtxModule module = ptx_of(kernel);
  const auto assembly = assemble_for(module.text, "sm_90a", {module.entry});
  EXPECT_TRUE(assembly.ok()) << assembly.status();
}

}  // namespace
}  // namespace heddle::codegen
