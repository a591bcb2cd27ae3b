#include "heddle/codegen/ptx.h"

#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "codegen/ptx_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/codegen/disassemble.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/passes/pipeline.h"

namespace heddle::codegen {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// The PTX of a kernel's text, without places unless asked for.
std::string ptx(absl::string_view text, bool line_info = false) {
  PtxOptions options;
  options.line_info = line_info;
  return ptx_of(kernel_from(text), options).text;
}

// A kernel over x, y (f32) and n with a body.
std::string kernel_text(absl::string_view body, absl::string_view head = "block(128, 1, 1)") {
  return absl::StrCat(
      "kernel @k(%x: view<const f32, global, 1> [?] strides [1], "
      "%y: view<f32, global, 1> [?] strides [1], %n: i32) ",
      head, " {\n", body, "\n}\n");
}
constexpr char kThread[] = "%t = thread_idx {axis = x} : i32\n";

constexpr char kRowSum[] = R"(
kernel @row_sum(%x: view<const f32, global, 2> [?, ?] strides [?, 1],
                %y: view<f32, global, 1> [?] strides [1]) block(512, 1, 1) facts(%x no_overlap 1) {
  %tid = thread_idx {axis = x} : i32 loc("row_sum.cc":10)
  %row = block_idx {axis = x} : i32 loc("row_sum.cc":11)
  %columns = extent %x {dim = 1} : i32 loc("row_sum.cc":12)
  %pitch = stride %x {dim = 0} : i64 loc("row_sum.cc":12)
  %row_wide = convert %row : i64 loc("row_sum.cc":12)
  %start = mul %row_wide, %pitch : i64 loc("row_sum.cc":12)
  %step = const 512 : i32 loc("row_sum.cc":12)
  %zero = const 0.0 : f32 loc("row_sum.cc":12)
  %sum = for %i in %tid .. %columns step %step carry(%acc = %zero) : f32 {
    %ok = bounds %x, %row, %i : check loc("row_sum.cc":13)
    %i_wide = convert %i : i64 loc("row_sum.cc":13)
    %at = add %start, %i_wide : i64 loc("row_sum.cc":13)
    %v = load %x, %at, %ok : f32 loc("row_sum.cc":13)
    %next = add %acc, %v : f32 loc("row_sum.cc":13)
    yield %next loc("row_sum.cc":13)
  } loc("row_sum.cc":12)
  store %y, %sum, %row loc("other.cc":3)
}
)";

// --- The module -----------------------------------------------------------------------------

TEST(Ptx, DeclaresTheParameterBlockAndTheBlockShape) {
  const PtxModule module = ptx_of(kernel_from(kRowSum));
  EXPECT_EQ(module.entry, "row_sum");
  EXPECT_EQ(module.params.bytes, 48);
  EXPECT_THAT(module.text, HasSubstr(".version 8.0\n.target sm_90a\n.address_size 64\n"));
  EXPECT_THAT(module.text, HasSubstr(".visible .entry row_sum(\n"
                                     "\t.param .b64 row_sum_param_0,  // x\n"
                                     "\t.param .b64 row_sum_param_1,  // x.extent[0]\n"
                                     "\t.param .b64 row_sum_param_2,  // x.extent[1]\n"
                                     "\t.param .b64 row_sum_param_3,  // x.stride[0]\n"
                                     "\t.param .b64 row_sum_param_4,  // y\n"
                                     "\t.param .b64 row_sum_param_5  // y.extent[0]\n"
                                     ")\n.reqntid 512, 1, 1\n{\n"));
}

// Seven instructions a trip: the row's address (which ptxas moves out), the element's, the load,
// the sum, and the loop.
TEST(Ptx, SumsARow) {
  EXPECT_THAT(ptx(kRowSum), ContainsRegex("\n\\$L1:\n"
                                          "\tshl\\.b64 %rd[0-9]+, %rd[0-9]+, 2;\n"
                                          "\tadd\\.s64 %rd[0-9]+, %rd[0-9]+, %rd[0-9]+;\n"
                                          "\tmad\\.wide\\.s32 %rd[0-9]+, %r[0-9]+, 4, %rd[0-9]+;\n"
                                          "\tld\\.global\\.nc\\.b32 %r[0-9]+, \\[%rd[0-9]+\\];\n"
                                          "\tadd\\.rn\\.f32 %r[0-9]+, %r[0-9]+, %r[0-9]+;\n"
                                          "\tsetp\\.lt\\.s32 %p0, %r[0-9]+, %r[0-9]+;\n"
                                          "\tadd\\.s32 %r[0-9]+, %r[0-9]+, 512;\n"
                                          "\t@%p0 bra \\$L1;\n"
                                          "\\$L2:\n"));
}

TEST(Ptx, LeadsBackToTheSource) {
  const PtxModule module = ptx_of(kernel_from(kRowSum));
  EXPECT_THAT(module.text, HasSubstr(".file 1 \"row_sum.cc\"\n.file 2 \"other.cc\"\n"));
  EXPECT_THAT(module.text, HasSubstr("\t.loc 1 13 0\n\tshl.b64"));
  EXPECT_THAT(module.text, HasSubstr("\t.loc 2 3 0\n"));
  // The body's four instructions come from one line: one .loc.
  EXPECT_EQ(count_lines(module.text, ".loc 1 13 0"), 1);
  EXPECT_THAT(ptx(kRowSum), Not(HasSubstr(".loc")));
}

TEST(Ptx, NamesTheOpOfEveryLine) {
  const ir::Kernel kernel = kernel_from(kRowSum);
  const PtxModule module = ptx_of(kernel);
  const std::vector<std::string> lines = lines_of(module.text);
  ASSERT_EQ(module.line_ops.size(), lines.size());  // line 0 stands for the text behind the last
  int loads = 0;
  for (size_t i = 1; i <= lines.size(); ++i) {
    if (absl::StartsWith(lines[i - 1], "ld.global")) {
      ++loads;
      EXPECT_EQ(kernel.op(module.line_ops[i]).opcode, ir::Opcode::kLoad);
    }
    if (absl::StartsWith(lines[i - 1], "@%p0 bra")) {
      EXPECT_EQ(kernel.op(module.line_ops[i]).opcode, ir::Opcode::kFor);
    }
  }
  EXPECT_EQ(loads, 1);
  EXPECT_FALSE(valid(module.line_ops[1]));
}

TEST(Ptx, IsTheSameEachTime) {
  const ir::Kernel kernel = kernel_from(kRowSum);
  const ir::Kernel copy = kernel;
  const std::string text = ptx_of(kernel).text;
  EXPECT_EQ(ptx_of(kernel).text, text);
  EXPECT_EQ(ptx_of(copy).text, text);
}

TEST(Ptx, BoundsTheThreadsOfADynamicBlock) {
  const std::string text = ptx(kernel_text(absl::StrCat(kThread,
                                                        "%v = load %x, %t : f32\n"
                                                        "store %y, %v, %t"),
                                           "block(?)"));
  EXPECT_THAT(text, HasSubstr(".maxntid 1024\n"));
  EXPECT_THAT(text, Not(HasSubstr(".reqntid")));
}

TEST(Ptx, DeclaresClusters) {
  const std::string body = absl::StrCat(kThread, "%v = load %x, %t : f32\nstore %y, %v, %t");
  EXPECT_THAT(ptx(kernel_text(body, "block(64, 2, 1) cluster(2, 1, 1)")),
              HasSubstr(".reqntid 64, 2, 1\n.reqnctapercluster 2, 1, 1\n"));
  ir::Kernel old = kernel_from(kernel_text(body));
  old.cluster = {2, 1, 1};
  old.target = ir::find_target("sm_80");
  const absl::Status refused = emit_ptx(old).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("clusters need sm_90"));
}

TEST(Ptx, MakesIdentifiersOfNames) {
  EXPECT_EQ(ptx_identifier("row_sum"), "row_sum");
  EXPECT_EQ(ptx_identifier("a b-c"), "a_b_c");
  EXPECT_EQ(ptx_identifier("2d"), "_2d");
  EXPECT_EQ(ptx_identifier("$x$"), "_$x$");
  EXPECT_EQ(ptx_identifier(""), "_");
  EXPECT_EQ(ptx_identifier("WARP_SZ"), "WARP_SZ_");
  // ptxas treats kernels of that name in its own way.
  EXPECT_EQ(ptx_identifier("my_cutlass_Cutlass"), "my_cut_lass_Cut_lass");
}

TEST(Ptx, RefusesWhatTheTargetLacks) {
  ir::Kernel kernel("k");
  kernel.block = {32, 1, 1};
  kernel.target = ir::find_target("sm_86");
  ir::Builder b(kernel);
  const ir::ValueId p = kernel.add_param(
      "p", ir::Type::view(ir::Scalar::kBF16, ir::Space::kGlobal, 1), {ir::kDynamic}, {1});
  const ir::ValueId i = b.constant_int(ir::kI32Type, 0);
  const ir::ValueId v = b.create(ir::Opcode::kLoad, {p, i}, ir::Type::of(ir::Scalar::kBF16));
  b.set_loc(kernel.intern_loc("user.cc", 42));
  b.create(ir::Opcode::kStore, {p, b.create(ir::Opcode::kMul, {v, v}), i});
  const absl::Status refused = emit_ptx(kernel).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  const std::string message(refused.message());
  EXPECT_THAT(message, HasSubstr("kernel 'k' has 1 error"));
  EXPECT_THAT(message,
              HasSubstr("user.cc:42: error: mul of bf16 needs sm_90, and the kernel is compiled "
                        "for sm_86\n"));
  EXPECT_THAT(message, HasSubstr("fix: compile for sm_90, or convert to f32 first"));
}

// --- Memory ---------------------------------------------------------------------------------

TEST(Ptx, MovesVectorsInOneAccess) {
  const std::string text = ptx(
      "kernel @k(%h: view<f16, global, 1> [?] strides [1], %d: view<f64, global, 1> [?] strides "
      "[1], %b: view<bool, global, 1> [?] strides [1]) block(64, 1, 1) {\n"
      "%t = thread_idx {axis = x} : i32\n"
      "%v = load %h, %t : vec<f16, 8>\n%z = const 0 : i32\nstore %h, %v, %z\n"
      "%w = load %d, %t : vec<f64, 2>\nstore %d, %w, %z\n"
      "%o = load %b, %t : vec<bool, 4>\nstore %b, %o, %z\n}");
  EXPECT_THAT(text, ContainsRegex("ld\\.global\\.v4\\.b32 \\{%r[0-9]+, %r[0-9]+, %r[0-9]+, "
                                  "%r[0-9]+\\}, \\[%rd[0-9]+\\];"));
  EXPECT_THAT(text, ContainsRegex("st\\.global\\.v4\\.b32 \\[%rd[0-9]+\\], \\{"));
  EXPECT_THAT(text, ContainsRegex("ld\\.global\\.v2\\.b64 \\{%rd[0-9]+, %rd[0-9]+\\}"));
  EXPECT_EQ(count_lines(text, "ld.global"), 3);
  EXPECT_EQ(count_lines(text, "st.global"), 3);
}

TEST(Ptx, UsesTheReadOnlyPathOnlyWhereNothingOverlaps) {
  const std::string body = absl::StrCat(kThread, "%v = load %x, %t : f32\nstore %y, %v, %t");
  const ir::Kernel unknown = kernel_from(kernel_text(body));
  EXPECT_THAT(ptx_of(unknown).text, HasSubstr("ld.global.b32"));
  // The answer is a guard of what was compiled either way.
  ASSERT_EQ(unknown.facts_read().size(), 1u);
  EXPECT_EQ(unknown.facts_read()[0].fact.kind, ir::FactKind::kNoOverlap);
  EXPECT_EQ(unknown.facts_read()[0].fact.param, 0);
  EXPECT_EQ(unknown.facts_read()[0].value, 0);

  const ir::Kernel known =
      kernel_from(kernel_text(body, "block(128, 1, 1) facts(%x no_overlap 1, %y no_overlap 1)"));
  EXPECT_THAT(ptx_of(known).text, HasSubstr("ld.global.nc.b32"));

  const std::string as_volatile = absl::StrCat(
      kThread, "%v = load %x, %t {volatile = 1} : f32\nstore %y, %v, %t {volatile = 1}");
  const std::string text = ptx(kernel_text(as_volatile, "block(128, 1, 1) facts(%x no_overlap 1)"));
  EXPECT_THAT(text, HasSubstr("ld.volatile.global.b32"));
  EXPECT_THAT(text, HasSubstr("st.volatile.global.b32"));

  const std::string through_y = absl::StrCat(kThread, "%v = load %y, %t : f32\nstore %y, %v, %n");
  EXPECT_THAT(ptx(kernel_text(through_y, "block(128, 1, 1) facts(%y no_overlap 1)")),
              HasSubstr("ld.global.b32"));
}

TEST(Ptx, SharesAddressesThatDifferByAConstant) {
  const std::string text = ptx(kernel_text(absl::StrCat(kThread, R"(
%c = const 256 : i32
%u = add %t, %c : i32
%w = add %u, %c : i32
%minus = const -1 : i32
%before = add %t, %minus : i32
%a = load %x, %t : f32
%b = load %x, %u : f32
%d = load %x, %w : f32
%e = load %x, %before : f32
%ab = add %a, %b : f32
%abd = add %ab, %d : f32
%abde = add %abd, %e : f32
store %y, %abde, %n
)")));
  EXPECT_EQ(count_lines(text, "mad.wide.s32"), 2) << text;  // one for x, one for y
  EXPECT_THAT(text, ContainsRegex("ld.global.b32 %r[0-9]+, \\[%rd2\\];"));
  EXPECT_THAT(text, HasSubstr(", [%rd2+1024];"));
  EXPECT_THAT(text, HasSubstr(", [%rd2+2048];"));
  // thread_idx - 1 cannot wrap either.
  EXPECT_THAT(text, HasSubstr(", [%rd2+-4];"));
  // Nothing computes the offsets themselves.
  EXPECT_THAT(text, Not(HasSubstr("add.s32")));
}

TEST(Ptx, LeavesSumsThatMayWrapAlone) {
  // n - 1 may wrap, and then its extension to 64 bits is not that of n, minus 1.
  const std::string text = ptx(kernel_text(R"(
%one = const 1 : i32
%last = sub %n, %one : i32
%v = load %x, %last : f32
store %y, %v, %n
)"));
  EXPECT_THAT(text, HasSubstr("sub.s32"));
  EXPECT_THAT(text, Not(HasSubstr("+-4]")));
}

// So that what does not change with the loop's index can leave the loop.
TEST(Ptx, AddsTheLoopsOwnTermLast) {
  const std::string text = ptx(kRowSum);
  std::smatch match;
  ASSERT_TRUE(std::regex_search(text, match,
                                std::regex("add\\.s64 (%rd[0-9]+), %rd[0-9]+, %rd[0-9]+;\n"
                                           "\tmad\\.wide\\.s32 (%rd[0-9]+), %r[0-9]+, 4, "
                                           "(%rd[0-9]+);\n"
                                           "\tld\\.global\\.nc\\.b32 %r[0-9]+, \\[(%rd[0-9]+)\\]")))
      << text;
  EXPECT_EQ(match[1], match[3]);
  EXPECT_EQ(match[2], match[4]);
}

TEST(Ptx, LaysSharedMemoryOutInOneArena) {
  const auto text_for = [](int floats) {
    return kernel_text(
        absl::StrCat(kThread, "%s = shared {extents = [", floats,
                     "]} : view<f32, shared, 1>\n"
                     "%u = shared {extents = [4], align = 128} : view<f32, shared, 1>\n"
                     "%v = load %x, %t : f32\n%z = const 1 : i32\n"
                     "store %s, %v, %t\nstore %u, %v, %z\nbarrier\n"
                     "%w = load %s, %z : f32\nstore %y, %w, %t"));
  };
  const PtxModule small = ptx_of(kernel_from(text_for(128)));
  EXPECT_THAT(small.text, HasSubstr("\t.shared .align 128 .b8 heddle_shared[528];\n"));
  EXPECT_THAT(small.text, HasSubstr("st.shared.b32 [heddle_shared+4], "));
  EXPECT_THAT(small.text, HasSubstr("ld.shared.b32 %r"));
  EXPECT_EQ(small.shared_bytes, 528);
  EXPECT_EQ(small.dynamic_shared_base, 0);

  // ptxas takes no more than 48 KB in a declaration.
  const PtxModule large = ptx_of(kernel_from(text_for(16384)));
  EXPECT_THAT(large.text, HasSubstr("\n.extern .shared .align 1024 .b8 heddle_shared[];\n"));
  EXPECT_EQ(large.shared_bytes, 0);
  EXPECT_EQ(large.dynamic_shared_base, 65552);
}

TEST(Ptx, PutsDynamicSharedMemoryBehindTheArrays) {
  const PtxModule module = ptx_of(kernel_from(kernel_text(absl::StrCat(kThread, R"(
%s = shared {extents = [3]} : view<f32, shared, 1>
%d = shared.dynamic %n : view<f32, shared, 1>
%v = load %x, %t : f32
%z = const 0 : i32
store %s, %v, %z
store %d, %v, %z
%m = extent %d {dim = 0} : i32
store %y, %v, %m
)"))));
  EXPECT_THAT(module.text, HasSubstr(".extern .shared .align 1024 .b8 heddle_shared[];\n"));
  EXPECT_THAT(module.text, HasSubstr("st.shared.b32 [heddle_shared], "));
  EXPECT_THAT(module.text, HasSubstr("st.shared.b32 [heddle_shared+16], "));
  EXPECT_EQ(module.dynamic_shared_base, 16);
}

TEST(Ptx, DropsBoundsUnlessAskedForThem) {
  const ir::Kernel kernel = kernel_from(kRowSum);
  const std::string without = ptx_of(kernel).text;
  EXPECT_THAT(without, Not(HasSubstr("__assertfail")));
  EXPECT_THAT(without, Not(HasSubstr("row_sum_param_1]")));  // only the check reads the extent
  PtxOptions options;
  options.device_checks = true;
  const PtxModule checked = ptx_of(kernel, options);
  EXPECT_THAT(checked.text, HasSubstr(".extern .func __assertfail"));
  EXPECT_THAT(checked.text, HasSubstr("ld.param.b64 %rd"));
  EXPECT_THAT(checked.text, HasSubstr("row_sum_param_1]"));
  // "index out of the bounds of x", and the access's line.
  EXPECT_THAT(checked.text, HasSubstr("{105, 110, 100, 101, 120, 32, 111, 117, 116"));
  EXPECT_THAT(checked.text, HasSubstr("st.param.b32 [line], 13;"));
}

TEST(Ptx, CallsAssertfail) {
  const PtxModule module = ptx_of(kernel_from(kernel_text(R"(
%z = const 0 : i32
%p = gt %n, %z : bool
assert %p {message = "n"} loc("f.cc":5)
)")));
  EXPECT_THAT(module.text, HasSubstr(".global .align 1 .b8 k_str_0[2] = {110, 0};\n"
                                     ".global .align 1 .b8 k_str_1[5] = {102, 46, 99, 99, 0};\n"
                                     ".global .align 1 .b8 k_str_2[2] = {107, 0};\n"));
  EXPECT_THAT(module.text, ContainsRegex("@%p0 bra \\$L1;\n\tcvta.global.u64 %rd[0-9]+, k_str_0;"));
  EXPECT_THAT(module.text, HasSubstr("st.param.b32 [line], 5;"));
}

// --- Control flow ---------------------------------------------------------------------------

std::string loop_text(absl::string_view start, absl::string_view stop, absl::string_view step) {
  return kernel_text(absl::StrCat(kThread, "%zero = const 0 : i32\n%ten = const 10 : i32\n",
                                  "%start = ", start, "\n%stop = ", stop, "\n%step = ", step, R"(
%r = for %i in %start .. %stop step %step carry(%a = %zero) : i32 {
  %b = add %a, %i : i32
  yield %b
}
%f = convert %r : f32
store %y, %f, %t
)"));
}

TEST(PtxLoop, ComparesTheNextIndexWhereItCannotWrap) {
  const std::string text = ptx(loop_text("const 0 : i32", "sub %n, %t : i32", "const 1 : i32"));
  EXPECT_THAT(text, ContainsRegex("add\\.s32 (%r[0-9]+), %r[0-9]+, 1;\n\tsetp\\.lt\\.s32 %p0, "
                                  "%r[0-9]+, %r[0-9]+;\n\t@%p0 bra \\$L1;"));
  // And may not run at all.
  EXPECT_THAT(text, ContainsRegex("@!%p0 bra \\$L2;\n\\$L1:"));
}

TEST(PtxLoop, ComparesWithALimitWhereTheIndexMightWrap) {
  const std::string text = ptx(loop_text("const 0 : i32", "sub %n, %t : i32", "const 512 : i32"));
  EXPECT_THAT(text, ContainsRegex("sub\\.s32 %r[0-9]+, %r[0-9]+, 512;\n\\$L1:"));
  EXPECT_THAT(text, ContainsRegex("setp\\.lt\\.s32 %p0, %r[0-9]+, %r[0-9]+;\n\tadd\\.s32 "
                                  "%r[0-9]+, %r[0-9]+, 512;\n\t@%p0 bra \\$L1;"));
}

TEST(PtxLoop, CountsTheDistanceWhereEitherMightWrap) {
  const std::string text =
      ptx(loop_text("sub %t, %n : i32", "sub %n, %t : i32", "const 512 : i32"));
  EXPECT_THAT(text, ContainsRegex("setp\\.gt\\.u32 %p0, (%r[0-9]+), 512;\n\tsub\\.u32 %r[0-9]+, "
                                  "%r[0-9]+, 512;\n\tadd\\.s32 %r[0-9]+, %r[0-9]+, 512;"));
  const std::string down = ptx(loop_text("sub %t, %n : i32", "sub %n, %t : i32", "const -3 : i32"));
  EXPECT_THAT(down, ContainsRegex("setp\\.gt\\.s32 %p0, .*\n\t@!%p0 bra"));
  EXPECT_THAT(down, ContainsRegex("setp\\.gt\\.u32 %p0, %r[0-9]+, 3;\n\tsub\\.u32 %r[0-9]+, "
                                  "%r[0-9]+, 3;\n\tadd\\.s32 %r[0-9]+, %r[0-9]+, -3;"));
}

TEST(PtxLoop, NeedsNoGuardWhereItIsSureToRun) {
  const std::string text = ptx(loop_text("const 0 : i32", "const 10 : i32", "const 1 : i32"));
  EXPECT_THAT(text, Not(HasSubstr("@!")));
  EXPECT_THAT(text, HasSubstr("@%p0 bra.uni $L1;"));
  const std::string once = ptx(loop_text("const 0 : i32", "const 10 : i32", "const 10 : i32"));
  EXPECT_THAT(once, Not(HasSubstr("bra")));
  const std::string never = ptx(loop_text("const 3 : i32", "const 3 : i32", "const 1 : i32"));
  EXPECT_THAT(never, Not(HasSubstr("bra")));
  EXPECT_THAT(never, Not(HasSubstr("add.s32")));
}

TEST(PtxLoop, KeepsCarriedValuesInTheirRegisters) {
  const std::string text = ptx(loop_text("const 0 : i32", "const 10 : i32", "const 1 : i32"));
  EXPECT_THAT(text,
              ContainsRegex("\\$L1:\n\tadd\\.s32 (%r[0-9]+), %r[0-9]+, %r[0-9]+;\n\tadd\\.s32"));
  EXPECT_EQ(count_lines(text, "mov.b32"), 2) << text;  // 0 and 0, before the loop
}

TEST(PtxLoop, SwapsCarriedValuesThroughAScratchRegister) {
  const std::string text = ptx(kernel_text(absl::StrCat(kThread, R"(
%one = const 1 : i32
%m = mul %n, %n : i32
%a, %b = for %i in %t .. %n step %one carry(%c = %n, %d = %m) : i32, i32 {
  yield %d, %c
}
%s = sub %a, %b : i32
%f = convert %s : f32
store %y, %f, %t
)")));
  EXPECT_EQ(count_lines(text.substr(text.find("$L1:")), "mov.b32"), 3) << text;
}

TEST(PtxLoop, DoesNotOverwriteWhatIsStillRead) {
  // %b is yielded for %a, but %a is read after %b is computed: they need two registers.
  const std::string text = ptx(kernel_text(absl::StrCat(kThread, R"(
%one = const 1 : i32
%r = for %i in %t .. %n step %one carry(%a = %n) : i32 {
  %b = add %a, %i : i32
  %late = convert %a : f32
  store %y, %late, %i
  yield %b
}
%f = convert %r : f32
store %y, %f, %t
)")));
  EXPECT_EQ(count_lines(text.substr(text.find("$L1:")), "mov.b32"), 1) << text;
}

TEST(PtxBranch, PrintsOnlyWhatIsThere) {
  const auto text_for = [](absl::string_view then, absl::string_view otherwise) {
    return ptx(kernel_text(absl::StrCat(kThread, "%p = lt %t, %n : bool\n%v = load %x, %t : f32\n",
                                        "if %p {\n", then, "\nyield\n} else {\n", otherwise,
                                        "\nyield\n}\nstore %y, %v, %n")));
  };
  // More than is guarded one by one.
  const std::string store =
      "store %y, %v, %t\nstore %y, %v, %t\nstore %y, %v, %t\nstore %y, %v, %t\nstore %y, %v, %t";
  EXPECT_THAT(text_for(store, ""), ContainsRegex("@!%p0 bra \\$L1;\n[^$]*\\$L1:"));
  EXPECT_THAT(text_for("", store), ContainsRegex("@%p0 bra \\$L1;\n[^$]*\\$L1:"));
  EXPECT_THAT(text_for("", ""), Not(HasSubstr("bra")));
  EXPECT_THAT(text_for(store, store),
              ContainsRegex("@!%p0 bra \\$L2;\n[^$]*bra.uni \\$L1;\n\\$L2:\n[^$]*\\$L1:"));
}

TEST(PtxBranch, GuardsAFewAccessesWithoutAJump) {
  const auto text_for = [](absl::string_view branch) {
    return ptx(kernel_text(
        absl::StrCat(kThread, "%p = lt %t, %n : bool\n%v = load %x, %t : f32\n", branch)));
  };
  const std::string store = text_for("if %p {\nstore %y, %v, %t\nyield\n}");
  EXPECT_THAT(store, HasSubstr("@%p0 st.global.b32"));
  EXPECT_THAT(store, Not(HasSubstr("bra")));
  // The load writes where the other branch's value is by then.
  const std::string load = text_for(
      "%r = if %p : f32 {\n%w = load %x, %n : f32\nyield %w\n} else {\n%c = const 1.0 : f32\n"
      "yield %c\n}\nstore %y, %r, %t");
  EXPECT_THAT(load, HasSubstr("mov.b32 %r2, 0x3F800000;"));
  EXPECT_THAT(load, HasSubstr("@%p0 ld.global.b32 %r2, "));
  EXPECT_THAT(load, Not(HasSubstr("bra")));
}

// What the other branch's value would be written over before the branch reads it: the register
// lives on in the loop.
TEST(PtxBranch, GuardsNothingWhoseRegistersAreWrittenOver) {
  // `before` the branch, `first` in it; then it loads at %at.
  const auto text_for = [](absl::string_view before, absl::string_view first) {
    return ptx(kernel_text(absl::StrCat(kThread, R"(
%one = const 1 : i32
%zero = const 0 : i32
%r = for %i in %zero .. %n step %one carry(%a = %t) : i32 {
  %c = gt %a, %zero : bool
)",
                                        before, "\n  %next = if %c : i32 {\n", first, R"(
    %l = load %x, %at : f32
    %k = bitcast %l : i32
    yield %k
  } else {
    yield %zero
  }
  yield %next
}
%f = bitcast %r : f32
store %y, %f, %t)")));
  };
  const std::string elsewhere = "%at = add %i, %one : i32\n";
  // A part of an address, under an addition; a register by another name, stored.
  EXPECT_THAT(text_for("", "%at = add %a, %one : i32"), Not(ContainsRegex("@%p[0-9]+ ld")));
  EXPECT_THAT(text_for("%g = bitcast %a : f32", elsewhere + "store %y, %g, %i"),
              Not(ContainsRegex("@%p[0-9]+ st")));
  // The same where nothing reads the register: guarded.
  EXPECT_THAT(text_for("", elsewhere), ContainsRegex("@%p[0-9]+ ld"));
}

TEST(PtxBranch, JumpsOverWhatMayNotHappenOtherwise) {
  const auto text_for = [](absl::string_view before, absl::string_view branch) {
    return ptx(kernel_text(absl::StrCat(kThread, "%p = lt %t, %n : bool\n", before, branch)));
  };
  const std::string value = "%v = load %x, %t : f32\n";
  // A sum that would be added to its own register in every lane.
  EXPECT_THAT(text_for(value,
                       "%r = if %p : f32 {\n%w = load %x, %n : f32\n%s = add %v, %w : f32\n"
                       "yield %s\n} else {\nyield %v\n}\nstore %y, %r, %t"),
              HasSubstr("bra"));
  // A division is not computed for nothing.
  EXPECT_THAT(text_for(value, "if %p {\n%q = div %v, %v : f32\nstore %y, %q, %t\nyield\n}"),
              HasSubstr("bra"));
  // All lanes of a warp agree: they jump together.
  EXPECT_THAT(ptx(kernel_text(absl::StrCat(kThread, "%z = const 0 : i32\n%p = lt %n, %z : bool\n",
                                           value, "if %p {\nstore %y, %v, %t\nyield\n}"))),
              HasSubstr("bra.uni"));
}

TEST(PtxBranch, SaysWhereWarpsAgree) {
  const std::string text = ptx(kernel_text(absl::StrCat(kThread, R"(
%z = const 0 : i32
%w = warp_id : i32
%p = eq %w, %z : bool
%v = load %x, %t : f32
if %p {
  store %y, %v, %t
  yield
}
)")));
  EXPECT_THAT(text, HasSubstr("@!%p0 bra.uni $L1;"));
  EXPECT_THAT(text, ContainsRegex("shr.u32 %r[0-9]+, %r0, 5;\n\tshfl.sync.idx.b32 %r[0-9]+, "
                                  "%r[0-9]+, 0, 31, 0xFFFFFFFF;"));
}

TEST(PtxBranch, JoinsResultsInOneRegister) {
  const std::string text = ptx(kernel_text(absl::StrCat(kThread, R"(
%p = lt %t, %n : bool
%v = if %p : f32 {
  %a = load %x, %t : f32
  yield %a
} else {
  %b = load %x, %n : f32
  yield %b
}
store %y, %v, %t
)")));
  EXPECT_THAT(text, Not(HasSubstr("mov.b32"))) << text;
}

// --- Arithmetic -----------------------------------------------------------------------------

TEST(Ptx, FlipsSignsAsBitsWhereTheBitsShow) {
  const std::string stored = ptx(kernel_text(
      absl::StrCat(kThread, "%v = load %x, %t : f32\n%m = neg %v : f32\nstore %y, %m, %t")));
  EXPECT_THAT(stored, ContainsRegex("xor\\.b32 %r[0-9]+, %r[0-9]+, 0x80000000;"));
  const std::string added = ptx(kernel_text(absl::StrCat(
      kThread,
      "%v = load %x, %t : f32\n%m = neg %v : f32\n%s = fma %m, %v, %v : f32\nstore %y, %s, %t")));
  EXPECT_THAT(added, HasSubstr("neg.f32 "));
  // Arithmetic on the bits shows them.
  const std::string compared = ptx(kernel_text(absl::StrCat(
      kThread,
      "%v = load %x, %t : f32\n%m = neg %v : f32\n%b = bitcast %m : i32\n%z = const 0 : i32\n"
      "%p = lt %b, %z : bool\n%s = select %p, %v, %m : f32\nstore %y, %v, %t\nif %p {\n"
      "store %y, %v, %z\nyield\n}\n")));
  EXPECT_THAT(compared, ContainsRegex("xor\\.b32 %r[0-9]+, %r[0-9]+, 0x80000000;"));
}

TEST(Ptx, PacksHalves) {
  const std::string text =
      ptx("kernel @k(%h: view<f16, global, 1> [?] strides [1]) block(64, 1, 1) {\n"
          "%t = thread_idx {axis = x} : i32\n%z = const 0 : i32\n"
          "%v = load %h, %t : vec<f16, 4>\n%w = mul %v, %v : vec<f16, 4>\n"
          "%one = const 1.0 : vec<f16, 4>\n%u = add %w, %one : vec<f16, 4>\n"
          "%f = convert %u : vec<f32, 4>\n%g = add %f, %f : vec<f32, 4>\n"
          "%i = convert %g : vec<f16, 4>\nstore %h, %i, %z\n}");
  EXPECT_EQ(count_lines(text, "mul.rn.f16x2"), 2);
  EXPECT_EQ(count_lines(text, "add.rn.f16x2"), 2);
  EXPECT_EQ(count_lines(text, "cvt.f32.f16"), 4);
  EXPECT_EQ(count_lines(text, "cvt.rn.f16x2.f32"), 2);
  EXPECT_THAT(text, HasSubstr(", 0x3C003C00;"));
}

TEST(Ptx, WidensPackedBf16WithoutUnpackingIt) {
  const std::string text = ptx(
      "kernel @k(%h: view<bf16, global, 1> [?] strides [1], %y: view<f32, global, 1> [?] strides "
      "[1]) block(64, 1, 1) {\n%t = thread_idx {axis = x} : i32\n"
      "%v = load %h, %t : vec<bf16, 2>\n%f = convert %v : vec<f32, 2>\nstore %y, %f, %t\n}");
  EXPECT_THAT(text, ContainsRegex("shl\\.b32 %r[0-9]+, %r[0-9]+, 16;\n\tand\\.b32 %r[0-9]+, "
                                  "%r[0-9]+, 0xFFFF0000;"));
  EXPECT_THAT(text, Not(HasSubstr("cvt.")));
}

// --- The warp -------------------------------------------------------------------------------

TEST(PtxWarp, ShufflesInSegments) {
  const auto text_for = [](absl::string_view op) {
    return ptx(
        kernel_text(absl::StrCat(kThread, "%v = load %x, %t : f32\n%two = const 2 : i32\n",
                                 "%nine = const 9 : i32\n%s = ", op, " : f32\nstore %y, %s, %t")));
  };
  EXPECT_THAT(text_for("shfl.xor %v, %two"), HasSubstr(", 2, 31, 0xFFFFFFFF;"));
  EXPECT_THAT(text_for("shfl.up %v, %two"), HasSubstr(", 2, 0, 0xFFFFFFFF;"));
  EXPECT_THAT(text_for("shfl.down %v, %two {width = 8}"), HasSubstr(", 2, 6175, 0xFFFFFFFF;"));
  // A lane outside the segment gives one's own value; PTX would reach into the segment before.
  EXPECT_THAT(text_for("shfl.xor %v, %nine {width = 8}"), Not(HasSubstr("shfl")));
  const std::string unknown = text_for("shfl.idx %v, %n {width = 8}");
  EXPECT_THAT(unknown, ContainsRegex("setp\\.lt\\.u32 %p0, %r[0-9]+, 8;\n\tshfl\\.sync\\.idx"));
  EXPECT_THAT(unknown, HasSubstr("selp.b32"));
}

TEST(PtxWarp, NamesOnlyLanesThatAreThere) {
  const auto text_for = [](absl::string_view block) {
    return ptx(kernel_text(absl::StrCat(kThread, "%v = load %x, %t : f32\n%one = const 1 : i32\n",
                                        "%s = shfl.xor %v, %one : f32\nstore %y, %s, %t"),
                           block));
  };
  EXPECT_THAT(text_for("block(64, 1, 1)"), HasSubstr(", 1, 31, 0xFFFFFFFF;"));
  EXPECT_THAT(text_for("block(20, 1, 1)"), HasSubstr(", 1, 31, 0x000FFFFF;"));
  const std::string partial = text_for("block(48, 1, 1)");
  EXPECT_THAT(partial, ContainsRegex("and\\.b32 %r[0-9]+, %r0, 0xFFFFFFE0;\n\tsub\\.u32 %r[0-9]+, "
                                     "48, %r[0-9]+;\n\tshl\\.b32 %r[0-9]+, 1, %r[0-9]+;"));
  const std::string dynamic = text_for("block(?)");
  EXPECT_THAT(dynamic, HasSubstr("%ntid.z"));
}

// --- With ptxas -----------------------------------------------------------------------------

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

// The registers of a pending accumulator are tied from its begin to its wait, through the loop:
// ptxas serialises nothing, and moves nothing between the products of a block.
TEST(PtxAssembled, APendingAccumulatorStaysInItsRegisters) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  std::ostringstream text;
  text << std::ifstream(HEDDLE_TEST_DATA_DIR "/filetests/wgmma_pipelined.ir").rdbuf();
  absl::StatusOr<ir::Kernel> kernel = ir::parse(text.str(), "wgmma_pipelined.ir");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const absl::Status optimized = ir::run_pipeline(*kernel, ir::kDefaultPipeline);
  ASSERT_TRUE(optimized.ok()) << optimized;
  const PtxModule module = ptx_of(*kernel);
  const auto assembly = assemble_for(module.text, "sm_90a", {module.entry});
  ASSERT_TRUE(assembly.ok()) << assembly.status();
  for (const Diagnostic& said : assembly->diagnostics) {
    EXPECT_FALSE(said.is_performance_note()) << said.text;
  }

  HEDDLE_NEEDS_TOOL(kNvdisasm);
  const absl::StatusOr<std::string> listing = disassemble(assembly->cubin);
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
