// Accesses to memory in PTX: vectors, addresses, shared memory, checks.
#include <regex>
#include <string>

#include "absl/strings/str_cat.h"
#include "codegen/ptx_kernels.h"
#include "codegen/ptx_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/codegen/ptx.h"

namespace heddle::codegen {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

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

// That cache is coherent with nothing: whoever may write x while the kernel runs keeps loads away.
TEST(Ptx, UsesTheReadOnlyPathOnlyWhereNobodyWritesMeanwhile) {
  const auto is_read_only = [](absl::string_view between) {
    const std::string text = ptx(kernel_text(
        absl::StrCat(kThread, "%far = convert %n : i64\n%o = const 1.0 : f32\n%z = const 0 : i32\n",
                     between, "%v = load %x, %t : f32\nstore %y, %v, %t"),
        "block(128, 1, 1) facts(%x no_overlap 1, %y no_overlap 1)"));
    EXPECT_THAT(text, HasSubstr("ld.global."));
    return absl::StrContains(text, "ld.global.nc.b32");
  };
  EXPECT_TRUE(is_read_only(""));
  EXPECT_TRUE(is_read_only("barrier\n"));
  // Until the wait, the grid before may write it, and assemblers move these loads across waits.
  EXPECT_FALSE(is_read_only("grid_dependency.wait\n"));
  // A pointer may be the address of x, and so may an operand of inline PTX.
  EXPECT_FALSE(is_read_only("%p = pointer %far : view<f32, global, 1>\nstore %p, %o, %z\n"));
  EXPECT_TRUE(
      is_read_only("%p = pointer %far : view<f32, global, 1>\n%w = load %p, %z : f32\n"
                   "store %y, %w, %z\n"));
  EXPECT_FALSE(
      is_read_only("inline_ptx.volatile %far, %o {message = \"st.global.b32 [%0], %1;\"}\n"));
  EXPECT_TRUE(
      is_read_only("%m = inline_ptx %n {message = \"mov.b32 %0, %1;\"} : i32\n"
                   "%w = convert %m : f32\nstore %y, %w, %z\n"));
  // Other grids write what is waited for.
  EXPECT_FALSE(is_read_only("grid_dependency.wait\n"));
  EXPECT_FALSE(is_read_only("inline_ptx.volatile {message = \"griddepcontrol.wait;\"}\n"));
  EXPECT_FALSE(is_read_only("fence {scope = system}\n"));
  constexpr absl::string_view kFlag = "%flags = pointer %far : view<i32, global, 1>\n";
  const auto flag = [&](absl::string_view attributes) {
    return is_read_only(
        absl::StrCat(kFlag, "while {\n%s = atomic.load %flags, %z ", attributes,
                     " : i32\n%g = eq %s, %z : bool\nyield %g\n} do {\nyield\n}\n"));
  };
  EXPECT_FALSE(flag("{order = acquire, scope = system}"));
  EXPECT_FALSE(flag("{order = acquire, scope = gpu}"));
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
  // n - 1 does not wrap where it is an offset: so much is left of i32 above the largest offset. n - 65537 may, and
  // then its extension to 64 bits is not that of n, minus 65537.
  const auto behind = [](int distance) {
    return ptx(kernel_text(absl::StrCat("%c = const ", distance,
                                        " : i32\n%before = sub %n, %c : i32\n"
                                        "%v = load %x, %before : f32\nstore %y, %v, %n")));
  };
  EXPECT_THAT(behind(1), AllOf(HasSubstr("+-4]"), Not(HasSubstr("sub.s32"))));
  EXPECT_THAT(behind(65536), AllOf(HasSubstr("+-262144]"), Not(HasSubstr("sub.s32"))));
  EXPECT_THAT(behind(65537), AllOf(HasSubstr("sub.s32"), Not(HasSubstr("+-"))));
}

// A sum that was an offset before is in bounds: behind it, constants and loops are told apart anew.
TEST(Ptx, SplitsSumsThatWereOffsetsBefore) {
  const auto of = [](absl::string_view first) {
    return ptx(
        kernel_text(absl::StrCat(kThread, "%o = const 1 : i32\n%big = const 100000 : i32\n",
                                 "%row = mul %n, %n : i32\nfor %i in %t .. %n step %o {\n",
                                 "%at = add %row, %i : i32\n%next = add %at, %big : i32\n", first,
                                 "%b = load %x, %next : f32\nstore %y, %b, %i\n", "yield\n}\n")));
  };
  // Before the loop the row is added to the view's address, in it the index.
  EXPECT_EQ(count_lines(of("%a = load %x, %at : f32\nstore %y, %a, %i\n"), "add.s32"), 1);
  EXPECT_EQ(count_lines(of(""), "add.s32"), 2);
  // An access that comes later, or that not every thread comes by, says nothing.
  EXPECT_EQ(count_lines(of("%v = load %x, %next : f32\n%a = load %x, %at : f32\n"
                           "%w = add %v, %a : f32\nstore %y, %w, %i\n"),
                        "add.s32"),
            2);
  EXPECT_EQ(count_lines(of("%p = lt %i, %o : bool\nif %p {\n%a = load %x, %at : f32\n"
                           "store %y, %a, %i\nyield\n} else {\nyield\n}\n"),
                        "add.s32"),
            2);
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

// A swizzle's constants move addresses as they move offsets, where the array is aligned to more.
TEST(Ptx, XorsAddressesOfAlignedArrays) {
  const auto of = [](int align, absl::string_view offset) {
    return ptx(
        absl::StrCat("kernel @k(%y: view<f16, global, 1> [?] strides [1]) block(64, 1, 1) {\n",
                     "%t = thread_idx {axis = x} : i32\n%first = shared {extents = [8]} : "
                     "view<f16, shared, 1>\n",
                     "%s = shared {extents = [512], align = ", align, "} : view<f16, shared, 1>\n",
                     "%c = const 32 : i32\n%far = const 256 : i32\n%swizzled = xor %t, %c : i32\n",
                     "%beyond = add %swizzled, %far : i32\n%v = load %s, %", offset,
                     " : f16\nstore %y, %v, %t\nstore %first, %v, %t\n}"));
  };
  const std::string text = of(128, "swizzled");
  EXPECT_THAT(text, ContainsRegex("mad\\.lo\\.s32 (%r[0-9]+), %r[0-9]+, 2, %r[0-9]+;\n"
                                  "\txor\\.b32 %r[0-9]+, %r[0-9]+, 64;"));
  EXPECT_THAT(of(128, "beyond"),
              ContainsRegex("xor\\.b32 (%r[0-9]+), %r[0-9]+, 64;\n"
                            "\tld\\.shared\\.b16 %h[0-9]+, \\[%r[0-9]+\\+512\\];"));
  EXPECT_THAT(of(64, "swizzled"), HasSubstr(", 32;\n\tmad.lo.s32 "));
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

// A promise on the way costs no constant its place in the instruction.
TEST(Ptx, SplitsOffsetsBehindPromises) {
  const std::string text = ptx(kernel_text(absl::StrCat(kThread, R"(
%c = const 4 : i32
%s = add %t, %c : i32
%r = assume_range %s {min = 0, max = 200} : i32
%v = load %x, %r : f32
store %y, %v, %t
)")));
  EXPECT_THAT(text, HasSubstr("+16]"));
}

}  // namespace
}  // namespace heddle::codegen
