// Matrix descriptors: what their addresses are computed from, and how many instructions that takes.
#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/ptx_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/codegen/toolchain/disassemble.h"
#include "heddle/ir/passes/pipeline.h"

namespace heddle::codegen {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// The PTX of descriptors, %d0, %d1, … of which pairs are multiplied, behind a parameter %n.
std::string ptx(absl::string_view body, int count) {
  std::string text = absl::StrCat(R"(
kernel @k(%n: i32, %m: i64, %out: view<f32, global, 1> [?] strides [1])
    block(128, 1, 1) target(sm_90a) {
%t = thread_idx {axis = x} : i32
%first = shared {extents = [4096], align = 1024} : view<f16, shared, 1>
%s = shared {extents = [4096], align = 1024} : view<f16, shared, 1>
%zeros = const 0.0 : frag<f32, 4>
%q0 = wgmma.begin %zeros : pending<f32, 4>
)",
                                  body);
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&text, "%q", i + 1, " = wgmma %q", i, ", %d", i, ", %d", i,
                    " : pending<f32, 4>\n");
  }
  absl::StrAppend(&text, "wgmma.commit\n%f = wgmma.wait %q", count,
                  " {groups = 0} : frag<f32, 4>\n%e = extract %f {index = 0} : f32\n"
                  "store %out, %e, %t\n}\n");
  return ptx_of(kernel_from(text), {.line_info = false}).text;
}
std::string descriptor(int i, absl::string_view view, absl::string_view offset) {
  return absl::StrCat("%d", i, " = smem.desc ", view, ", ", offset,
                      " {leading = 32, stride = 1024, swizzle = 128} : smem_desc<f16>\n");
}

// The field of the arena is cut out once; array, leading offset and tile are one constant.
TEST(DescriptorPtx, AddsOneConstantToAFieldThatAllShare) {
  const std::string text =
      ptx(absl::StrCat("%a = const 0 : i32\n%b = const 16 : i32\n", descriptor(0, "%first", "%a"),
                       descriptor(1, "%s", "%b")),
          2);
  EXPECT_THAT(text, ContainsRegex("mov\\.u32 (%r[0-9]+), heddle_shared;\n"
                                  "\tshr\\.u32 %r[0-9]+, %r[0-9]+, 4;\n"
                                  "\tand\\.b32 %r[0-9]+, %r[0-9]+, 0x3FFF;\n"));
  EXPECT_EQ(count_lines(text, "shr.u32"), 1) << text;
  EXPECT_THAT(text, ContainsRegex("add\\.s32 %r[0-9]+, %r[0-9]+, 131072;\n"
                                  "\tmov\\.b64 %rd[0-9]+, \\{%r[0-9]+, 0x40000040\\};"));
  EXPECT_THAT(text, HasSubstr(absl::StrCat(", ", (2 << 16) + (8192 + 32) / 16, ";")));
}

// Of a product that cannot wrap, the factor counts in 16 bytes; of one that may, the product is shifted.
TEST(DescriptorPtx, CountsProductsInUnits) {
  const auto of = [](absl::string_view index) {
    return ptx(absl::StrCat(
                   "%u = convert %n : u32\n%c = const 3 : u32\n%w = and %u, %c : u32\n",
                   "%small = convert %w : i32\n%k = const 512 : i32\n%o = const 8 : i32\n%a = mul ",
                   index, ", %k : i32\n%b = add %a, %o : i32\n", descriptor(0, "%s", "%b")),
               1);
  };
  EXPECT_THAT(of("%small"), ContainsRegex("mad\\.lo\\.s32 %r[0-9]+, %r[0-9]+, 64, %r[0-9]+;\n"
                                          "\tadd\\.s32 %r[0-9]+, %r[0-9]+, 131585;"));
  EXPECT_THAT(of("%small"), Not(HasSubstr("shr.s32")));
  EXPECT_THAT(of("%n"), ContainsRegex("mul\\.lo\\.s32 %r[0-9]+, %r[0-9]+, 512;\n"
                                      "\tshr\\.s32 %r[0-9]+, %r[0-9]+, 3;\n"
                                      "\tadd\\.s32 %r[0-9]+, %r[0-9]+, %r[0-9]+;\n"
                                      "\tadd\\.s32 %r[0-9]+, %r[0-9]+, 131585;"));
}

TEST(DescriptorPtx, ShiftsOffsetsOf64Bits) {
  const std::string text = ptx(
      absl::StrCat("%k = const 64 : i64\n%a = mul %m, %k : i64\n", descriptor(0, "%s", "%a")), 1);
  EXPECT_THAT(text, ContainsRegex("shr\\.s64 %rd[0-9]+, %rd[0-9]+, 3;\n"
                                  "\tcvt\\.u32\\.u64 %r[0-9]+, %rd[0-9]+;\n\tadd\\.s32"));
}

// Parts that are no multiples of 16 bytes may add up to one, so they are added before the shift.
TEST(DescriptorPtx, AddsOtherPartsToTheAddressFirst) {
  const std::string text = ptx(
      absl::StrCat("%k = const 16 : i32\n%o = const 4 : i32\n%a = mul %n, %k : i32\n",
                   "%b = sub %a, %o : i32\n%p = assume_range %n {divisor = 4} : i32\n",
                   "%v = subview %s, %p, %k : view<f16, shared, 1>\n", descriptor(0, "%s", "%n"),
                   descriptor(1, "%v", "%a"), descriptor(2, "%v", "%b")),
      3);
  // Of %s and %n, of %v's start, and of %v and %b.
  EXPECT_EQ(count_lines(text, "shr.u32"), 3) << text;
  EXPECT_EQ(count_lines(text, "shr.s32"), 1) << text;
}

bool is_product(const std::string& opcode) { return absl::StartsWith(opcode, "HGMMA"); }
bool is_fence(const std::string& opcode) {
  return absl::StartsWith(opcode, "MEMBAR") || absl::StartsWith(opcode, "CCTL") ||
         absl::StrContains(opcode, "ERRBAR");
}

// One k-block of a GEMM that is pipelined one block behind: 64x256x64 for each of two warp groups.
constexpr const char* kHead = R"(
kernel @gemm(%out: view<f32, global, 1> [?] strides [1], %blocks: i32) block(256, 1, 1) target(sm_90a) {
%z = const 0 : i32
%one = const 1 : i32
%stages = const 3 : i32
%phase0 = const 0 : u32
%phase1 = const 1 : u32
%a_bytes = const 8192 : i32
%b_bytes = const 16384 : i32
%four = const 4 : i32
%half = const 4096 : i32
%t = thread_idx {axis = x} : i32
%warp = warp_id : i32
%group = div %warp, %four : i32
%first = eq %t, %z : bool
%a = shared {extents = [24576], align = 1024} : view<bf16, shared, 1>
%b = shared {extents = [49152], align = 1024} : view<bf16, shared, 1>
%bars = shared {extents = [6]} : view<u64, shared, 1>
%own = mul %group, %half : i32
%zeros = const 0.0 : frag<f32, 128>
%start = wgmma.begin %zeros : pending<f32, 128>
)";
// Four k-steps on a stage.
std::string products(absl::string_view acc, absl::string_view stage, int from) {
  std::string text =
      absl::StrCat("%ma", from, " = mul ", stage, ", %a_bytes : i32\n%aa", from, " = add %ma", from,
                   ", %own : i32\n%bb", from, " = mul ", stage, ", %b_bytes : i32\n");
  for (int k = 0; k < 4; ++k) {
    const int i = from + k;
    absl::StrAppend(&text, "%c", i, " = const ", 16 * k, " : i32\n");
    for (const char side : {'a', 'b'}) {
      absl::StrAppend(&text, "%o", std::string(1, side), i, " = add %", std::string(2, side), from,
                      ", %c", i, " : i32\n%d", std::string(1, side), i, " = smem.desc %",
                      std::string(1, side), ", %o", std::string(1, side), i,
                      " {leading = 16, stride = 1024, swizzle = 128} : smem_desc<bf16>\n");
    }
    absl::StrAppend(&text, "%q", i, " = wgmma ",
                    k == 0 ? std::string(acc) : absl::StrCat("%q", i - 1), ", %da", i, ", %db", i,
                    " : pending<f32, 128>\n");
  }
  return text + "wgmma.commit\n";
}
constexpr const char* kTail = R"(
%sum = wgmma.wait %end {groups = 0} : frag<f32, 128>
%e = extract %sum {index = 5} : f32
store %out, %e, %t
}
)";

// The instructions of the shortest loop with so many products, but for fences of memory.
std::vector<std::string> loop_of(const std::string& text, int products) {
  StatusOr<ir::Kernel> kernel = ir::parse(text, "gemm.ir");
  HEDDLE_CHECK(kernel.ok(), std::string(kernel.status().message()));
  const Status optimized = ir::run_pipeline(*kernel, ir::kDefaultPipeline, {.verify_each = true});
  HEDDLE_CHECK(optimized.ok(), std::string(optimized.message()));
  const PtxModule module = ptx_of(*kernel, {.line_info = false});
  const auto assembly = assemble_for(module.text, "sm_90a", {module.entry});
  HEDDLE_CHECK(assembly.ok(), std::string(assembly.status().message()));
  const StatusOr<std::string> listing = disassemble(assembly->cubin);
  HEDDLE_CHECK(listing.ok(), std::string(listing.status().message()));
  std::vector<std::string> opcodes, loop;
  std::map<std::string, size_t> labels;
  for (const std::string& line : lines_of(*listing)) {
    if (absl::StartsWith(line, ".L") && absl::EndsWith(line, ":")) {
      labels[line.substr(0, line.size() - 1)] = opcodes.size();
    }
    for (const SassInstruction& i : sass_opcodes(line)) opcodes.push_back(i.opcode);
    const size_t name = line.find("`(");
    if (name == std::string::npos) continue;
    const auto label = labels.find(line.substr(name + 2, line.find(')', name) - name - 2));
    if (label == labels.end()) continue;
    const std::vector<std::string> body(
        opcodes.begin() + static_cast<std::ptrdiff_t>(label->second), opcodes.end());
    const bool multiplies = std::count_if(body.begin(), body.end(), is_product) == products;
    if (multiplies && (loop.empty() || body.size() < loop.size())) loop = body;
  }
  loop.erase(std::remove_if(loop.begin(), loop.end(), is_fence), loop.end());
  return loop;
}

// How many instructions other than products stand between the first of them and the last.
int between_products(const std::vector<std::string>& loop) {
  const auto first = std::find_if(loop.begin(), loop.end(), is_product);
  const auto last = std::find_if(loop.rbegin(), loop.rend(), is_product).base();
  return static_cast<int>(std::count_if(first, last, std::not_fn(is_product)));
}

// CUTLASS has 48 instructions for the same block, of them 22 between the products.
TEST(DescriptorPtx, LeavesTheLoopOfAGemmShort) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  HEDDLE_NEEDS_TOOL(kNvdisasm);
  const std::vector<std::string> loop = loop_of(absl::StrCat(kHead, R"(
%end, %s1, %p1, %l1 = for %k in %z .. %blocks step %one
    carry(%acc = %start, %stage = %z, %phase = %phase0, %before = %z) : pending<f32, 128>, i32, u32, i32 {
mbarrier.wait %bars, %stage, %phase
)",
                                                             products("%acc", "%stage", 0), R"(
wgmma.wait {groups = 1}
if %first {
%slot = add %before, %stages : i32
mbarrier.arrive %bars, %slot
yield
}
%up = add %stage, %one : i32
%wraps = eq %up, %stages : bool
%next = select %wraps, %z, %up : i32
%flipped = xor %phase, %phase1 : u32
%parity = select %wraps, %flipped, %phase : u32
yield %q3, %next, %parity, %stage
}
)",
                                                             kTail),
                                                4);
  EXPECT_GE(loop.size(), 4u);
  EXPECT_LE(loop.size(), 44u) << absl::StrJoin(loop, "\n");
  EXPECT_LE(between_products(loop), 21) << absl::StrJoin(loop, "\n");
}

// Descriptors of stages that the host knows are not kept in registers over the loop.
TEST(DescriptorPtx, AreMadeAgainInUnrolledLoops) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  HEDDLE_NEEDS_TOOL(kNvdisasm);
  std::string body = R"(
%end = for %k in %z .. %blocks step %one carry(%acc = %start) : pending<f32, 128> {
)";
  for (int stage = 0; stage < 3; ++stage) {
    absl::StrAppend(&body, "%n", stage, " = const ", stage, " : i32\nmbarrier.wait %bars, %n",
                    stage, ", %phase0\n",
                    products(stage == 0 ? "%acc" : absl::StrCat("%q", 4 * stage - 1),
                             absl::StrCat("%n", stage), 4 * stage),
                    "wgmma.wait {groups = 0}\n");
  }
  const std::vector<std::string> loop =
      loop_of(absl::StrCat(kHead, body, "yield %q11\n}\n", kTail), 12);
  EXPECT_GE(loop.size(), 12u);
  EXPECT_LE(loop.size(), 3 * 35u) << absl::StrJoin(loop, "\n");
  EXPECT_FALSE(absl::c_linear_search(loop, "R2UR")) << absl::StrJoin(loop, "\n");
}

}  // namespace
}  // namespace heddle::codegen
