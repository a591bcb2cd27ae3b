#include "heddle/ir/launch/launch_program.h"

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/passes/passes.h"
#include "heddle/ir/text/printer.h"
#include "ir/text/parse_text.h"
#include "ir/verify/support.h"

namespace heddle::ir {
namespace {

using ::testing::HasSubstr;

constexpr absl::string_view kParams =
    "%x: view<f32, global, 2> [?, 48] strides [?, 1], %n: i32, %u: u64, %s: i16, %ok: bool, "
    "%f: f32";

// The parameter block of these arguments, after the program has run.
struct Launch {
  explicit Launch(absl::string_view body)
      : kernel(parse_body("32, 1, 1", kParams, body)),
        layout(launch_layout(kernel, [](OpId) { return true; })),
        block(static_cast<size_t>(layout.bytes), std::byte{0xCD}) {}

  template <class T>
  void set(SlotKind kind, int param, T value) {
    std::memcpy(&block[static_cast<size_t>(layout.find(kind, param)->offset)], &value,
                sizeof value);
  }
  uint64_t run(int64_t rows, int64_t stride, int32_t n, uint64_t u, int16_t s) {
    set(SlotKind::kExtent, 0, rows);
    set(SlotKind::kStride, 0, stride);
    set(SlotKind::kScalar, 1, n);
    set(SlotKind::kScalar, 2, u);
    set(SlotKind::kScalar, 3, s);
    LaunchDims dims;
    EXPECT_TRUE(LaunchProgram(kernel, layout).run(block.data(), dims));
    uint64_t value = 0;
    const LaunchSlot& slot = layout.at_launch.back();
    std::memcpy(&value, &block[static_cast<size_t>(slot.offset)], static_cast<size_t>(slot.bytes));
    return value;
  }

  Kernel kernel;
  ParamLayout layout;
  std::vector<std::byte> block;
};

TEST(LaunchProgram, ComputesFromScalarsExtentsAndStrides) {
  Launch launch(R"(%rows = extent %x {dim = 0} : i64
%columns = extent %x {dim = 1} : i32
%stride = stride %x {dim = 0} : i64
%wide = convert %columns : i64
%size = mul %rows, %wide : i64
%small = convert %s : i32
%less = lt %n, %small : bool
%a = convert %n : i64
%b = bitcast %u : i64
%chosen = select %less, %a, %b : i64
%c = fma %size, %stride, %chosen : i64
%value = at_launch %c : i64
)");
  EXPECT_EQ(launch.run(10, 64, -3, 77, -2), 10u * 48 * 64 - 3);
  EXPECT_EQ(launch.run(int64_t{1} << 40, 1, -1, uint64_t(-5), -2), (uint64_t{48} << 40) - 5);
}

TEST(LaunchProgram, ReadsTheLowBitsOfAnExtent) {
  Launch launch("%rows = extent %x {dim = 0} : i32\n%v = at_launch %rows : i32\n");
  EXPECT_EQ(launch.run((int64_t{5} << 32) + 9, 0, 0, 0, 0), 9u);
}

TEST(LaunchProgram, SharesAndChainsValues) {
  Launch launch(R"(%two = const 2 : i32
%m = mul %n, %two : i32
%first = at_launch %m : i32
%p = add %first, %m : i32
%q = assume_range %p {min = 0} : i32
%second = at_launch %q : i32
)");
  ASSERT_EQ(launch.layout.at_launch.size(), 2u);
  EXPECT_EQ(launch.run(0, 0, 5, 0, 0), 20u);
}

TEST(LaunchProgram, WhatIsUnspecifiedDoesNoHarm) {
  Launch launch("%q = div %n, %n : i32\n%v = at_launch %q : i32\n");
  EXPECT_EQ(launch.run(0, 0, 3, 0, 0), 1u);
  EXPECT_EQ(launch.run(0, 0, 0, 0, 0), 0u);
}

TEST(LaunchProgram, EqualValuesShareAPlace) {
  Launch launch(R"(%three = const 3 : i32
%a = mul %n, %three : i32
%first = at_launch %a : i32
%promised = assume_range %n {min = 0} : i32
%also_three = const 3 : i32
%b = mul %promised, %also_three : i32
%second = at_launch %b : i32
%c = sub %n, %three : i32
%other = at_launch %c : i32
)");
  ASSERT_EQ(launch.layout.at_launch.size(), 2u);
  EXPECT_EQ(launch.layout.at_launch[0].ops.size(), 2u);
  EXPECT_EQ(launch.run(0, 0, 5, 0, 0), 2u);
}

// Whatever two values differ in keeps their places apart: op, attribute, type, operands, their
// order.
TEST(LaunchProgram, OtherValuesHavePlacesOfTheirOwn) {
  const auto places = [](absl::string_view a, absl::string_view b) {
    return Launch(absl::StrCat(
                      "%three = const 3 : i32\n%four = const 4 : i32\n"
                      "%rows = extent %x {dim = 0} : i32\n%cols = extent %x {dim = 1} : i32\n"
                      "%pitch = stride %x {dim = 0} : i32\n%a = ",
                      a, "\n%b = ", b, "\n%v = at_launch %a : i32\n%w = at_launch %b : i32\n"))
        .layout.at_launch.size();
  };
  EXPECT_EQ(places("mul %n, %three : i32", "mul %n, %three : i32"), 1u);
  EXPECT_EQ(places("mul %n, %three : i32", "mul %n, %four : i32"), 2u);
  EXPECT_EQ(places("mul %n, %three : i32", "add %n, %three : i32"), 2u);
  EXPECT_EQ(places("sub %n, %three : i32", "sub %three, %n : i32"), 2u);
  EXPECT_EQ(places("add %rows, %three : i32", "add %cols, %three : i32"), 2u);
  EXPECT_EQ(places("add %rows, %three : i32", "add %pitch, %three : i32"), 2u);
  EXPECT_EQ(places("mul %n, %rows : i32", "mul %n, %n : i32"), 2u);
  const Launch types(
      "%a = convert %s : i32\n%b = convert %s : u32\n%v = at_launch %a : i32\n"
      "%w = at_launch %b : u32\n");
  EXPECT_EQ(types.layout.at_launch.size(), 2u);
}

TEST(LaunchProgram, TakesChainsOfAnyLength) {
  Kernel kernel = parse_body("32, 1, 1", kParams, "%two = const 2 : i32\n");
  Builder b(kernel);
  ValueId value = kernel.params()[1].value;
  for (int i = 0; i < 200000; ++i) value = b.create(Opcode::kAdd, {value, value});
  b.create(Opcode::kAtLaunch, {value});
  EXPECT_FALSE(unknown_at_launch(kernel, value));
  const ParamLayout layout = launch_layout(kernel, [](OpId) { return true; });
  std::vector<std::byte> block(static_cast<size_t>(layout.bytes), std::byte{1});
  LaunchDims dims;
  EXPECT_TRUE(LaunchProgram(kernel, layout).run(block.data(), dims));
  EXPECT_EQ(block.back(), std::byte{0});
}

TEST(LaunchProgram, RunsForManyThreadsAtOnce) {
  const Launch launch("%q = mul %n, %n : i32\n%v = at_launch %q : i32\n");
  const LaunchProgram program(launch.kernel, launch.layout);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::byte> block = launch.block;
      const auto at = [&](int offset) { return &block[static_cast<size_t>(offset)]; };
      for (int i = 0; i < 20000; ++i) {
        const int32_t n = t * 100 + i / 64 % 3;
        std::memcpy(at(launch.layout.find(SlotKind::kScalar, 1)->offset), &n, sizeof n);
        LaunchDims dims;
        program.run(block.data(), dims);
        int32_t value = 0;
        std::memcpy(&value, at(launch.layout.at_launch[0].offset), sizeof value);
        if (value != n * n) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(LaunchProgram, ValuesLieBehindTheArguments) {
  const Launch launch(R"(%v = at_launch %n : i32
%w = at_launch %u : u64
)");
  ASSERT_EQ(launch.layout.at_launch.size(), 2u);
  int end = 0;
  for (const ParamSlot& slot : launch.layout.slots) end = std::max(end, slot.offset + slot.bytes);
  EXPECT_EQ(launch.layout.at_launch[0].offset, end);
  EXPECT_EQ(launch.layout.at_launch[1].offset % 8, 0);
  EXPECT_EQ(launch.layout.bytes, launch.layout.at_launch[1].offset + 8);
}

TEST(LaunchProgram, WhatTheLaunchPassesNeedsNoPlace) {
  Launch launch(R"(%rows = extent %x {dim = 0} : i32
%three = const 3 : i32
%a = at_launch %rows : i32
%b = at_launch %n : i32
%c = at_launch %three : i32
%ab = add %a, %b : i32
%abc = add %ab, %c : i32
%zero = const 0 : i32
store %x, %f, %abc, %zero
)");
  fold(launch.kernel);
  dce(launch.kernel);
  EXPECT_TRUE(launch_layout(launch.kernel, [](OpId) { return true; }).at_launch.empty())
      << print(launch.kernel);
}

// --- What the launch must fulfil ---

// Runs a program without at_launch values: whether the launch may happen, or why not.
std::string refusal(absl::string_view body, int32_t n, LaunchDims& dims) {
  Launch launch(body);
  launch.set(SlotKind::kExtent, 0, int64_t{9});
  launch.set(SlotKind::kStride, 0, int64_t{64});
  launch.set(SlotKind::kScalar, 1, n);
  const LaunchProgram program(launch.kernel, launch.layout);
  const LaunchDims asked = dims;
  return program.run(launch.block.data(), dims) ? "" : program.refusal(launch.block.data(), asked);
}
std::string refusal(absl::string_view body, int32_t n) {
  LaunchDims dims;
  return refusal(body, n, dims);
}

TEST(LaunchProgram, TestsWhatTheKernelRequires) {
  constexpr absl::string_view kBody = R"(%rows = extent %x {dim = 0} : i32
%same = eq %rows, %n : bool
%wide = extent %x {dim = 0} : i64
require %same, %wide, %n {message = "100%% of % rows, not %", fix = "give % more"}
)";
  EXPECT_EQ(refusal(kBody, 9), "");
  EXPECT_EQ(refusal(kBody, -8), "100% of 9 rows, not -8; fix: give % more");
  // The numbers of the last launch are remembered, and not those of another.
  Launch launch(kBody);
  const LaunchProgram program(launch.kernel, launch.layout);
  launch.set(SlotKind::kExtent, 0, int64_t{9});
  LaunchDims dims;
  for (const int32_t n : {9, 8, 9, 9, 7}) {
    launch.set(SlotKind::kScalar, 1, n);
    EXPECT_EQ(program.run(launch.block.data(), dims), n == 9);
  }
}

TEST(LaunchProgram, TheShapeOfTheLaunchIsKnown) {
  constexpr absl::string_view kBody = R"(%grid = grid_dim {axis = y} : i32
%block = block_dim {axis = x} : i32
%threads = mul %grid, %block : i32
%enough = ge %threads, %n : bool
require %enough, %threads {message = "% threads"}
)";
  LaunchDims dims{.grid = {1, 3, 1}, .block = {32, 1, 1}};
  EXPECT_EQ(refusal(kBody, 96, dims), "");
  EXPECT_EQ(refusal(kBody, 97, dims), "96 threads");
  dims.grid = {kGridOfKernel, 1, 1};
  EXPECT_EQ(refusal(kBody, 32, dims), "");
  EXPECT_EQ(dims.grid[0], 1) << "one block where nobody says more";
}

TEST(LaunchProgram, AnUnnamedGridIsOneBlockOnEachAxis) {
  for (const char* axis : {"x", "y", "z"}) {
    const std::string body =
        absl::StrCat("%grid = grid_dim {axis = ", axis, "} : i32\n%same = eq %grid, %n : bool\n",
                     "require %same, %grid {message = \"% blocks\"}\n");
    LaunchDims dims{.grid = {kGridOfKernel, 1, 1}, .block = {32, 2, 3}};
    EXPECT_EQ(refusal(body, 5, dims), "1 blocks") << axis;
    EXPECT_EQ(refusal(body, 1, dims), "") << axis;
    EXPECT_EQ(dims.grid, (Dim3{1, 1, 1}));
  }
}

TEST(LaunchProgram, TheKernelsOwnGrid) {
  constexpr absl::string_view kBody = R"(%one = const 1 : i32
%rows = extent %x {dim = 0} : i64
launch_grid %n, %rows, %one
%grid = grid_dim {axis = x} : i32
%even = const 2 : i32
%rest = rem %grid, %even : i32
%zero = const 0 : i32
%is_even = eq %rest, %zero : bool
require %is_even, %grid {message = "a grid of %"}
)";
  LaunchDims dims{.grid = {kGridOfKernel, 1, 1}};
  EXPECT_EQ(refusal(kBody, 4, dims), "");
  EXPECT_EQ(dims.grid, (Dim3{4, 9, 1}));
  EXPECT_EQ(refusal(kBody, 4, dims), "") << "the same, named by the launch";
  EXPECT_EQ(refusal(kBody, 6, dims),
            "the launch names a grid of 4x9x1 blocks, and the kernel's own is 6x9x1; fix: leave "
            ".grid out of the launch");
  dims.grid = {kGridOfKernel, 1, 1};
  EXPECT_EQ(refusal(kBody, 5, dims), "a grid of 5");
}

TEST(LaunchProgram, KnowsWhatNoLaunchFulfils) {
  const auto refuses_all = [](absl::string_view body) {
    const Launch launch(
        absl::StrCat("%three = const 3 : i32\n", body, ", %three {message = \"not %\"}\n"));
    return LaunchProgram(launch.kernel, launch.layout).refuses_all();
  };
  EXPECT_EQ(refuses_all("%c = const false : bool\nrequire %c"), "not 3");
  EXPECT_EQ(refuses_all("%c = const true : bool\nrequire %c"), std::nullopt);
  EXPECT_EQ(refuses_all("%c = eq %n, %three : bool\nrequire %c"), std::nullopt);
  EXPECT_EQ(refuses_all("%c = expect %ok {likely = 1} : bool\nrequire %c"), std::nullopt);
  EXPECT_EQ(refuses_all("require %ok"), std::nullopt);
}

TEST(LaunchProgram, AnArgumentMayBeWhatIsRequired) {
  Launch launch("require %ok {message = \"pass true\"}\n");
  const LaunchProgram program(launch.kernel, launch.layout);
  for (const bool argument : {false, true, false}) {
    launch.set(SlotKind::kScalar, 4, argument);
    LaunchDims dims;
    EXPECT_EQ(program.run(launch.block.data(), dims), argument);
  }
}

TEST(LaunchProgram, WhatHoldsInAnyCaseIsDropped) {
  Launch launch(R"(%three = const 3 : i32
%also_three = const 3 : i32
%c = eq %three, %also_three : bool
require %c {message = "never said"}
)");
  fold(launch.kernel);
  dce(launch.kernel);
  EXPECT_THAT(print(launch.kernel), ::testing::Not(HasSubstr("require")));
}

TEST(LaunchProgram, TheVerifierCountsPlacesForNumbers) {
  EXPECT_THAT(mistakes_of(with_body("%q = lt %n, %n : bool\nrequire %q {message = \"is %\"}")),
              HasSubstr("'require' has 0 numbers for a message with 1 places; give the message a "
                        "'%' for each number"));
  EXPECT_THAT(mistakes_of(with_body("%t = thread_idx {axis = x} : i32\n%q = lt %t, %n : bool\n"
                                    "require %q {message = \"\"}")),
              HasSubstr("'require' of what the host cannot know before a launch: it depends on "
                        "'thread_idx' at k.ir:2; ask for relations of integer parameters"));
}

// Whatever makes the grid of itself, by way of other values of the launch too.
TEST(LaunchProgram, TheVerifierRefusesAGridOfItself) {
  const auto mistakes = [](absl::string_view of, absl::string_view made) {
    return mistakes_of(with_body(
        absl::StrCat("%g = ", of, " {axis = x} : i32\n", made, "\nlaunch_grid %n, %v, %n")));
  };
  for (const absl::string_view made :
       {"%v = add %g, %n : i32", "%v = at_launch %g : i32", "%v = assume_range %g {min = 1} : i32",
        "%a = at_launch %g : i32\n%v = mul %a, %n : i32",
        "%a = mul %g, %n : i32\n%b = at_launch %a : i32\n%v = at_launch %b : i32"}) {
    EXPECT_THAT(mistakes("grid_dim", made),
                HasSubstr("'launch_grid' of what the host cannot know before a launch: it depends "
                          "on 'grid_dim' at k.ir:2; make it of integer parameters"));
    EXPECT_EQ(mistakes("block_dim", made), "") << made;
  }
}

TEST(LaunchProgram, TheVerifierNamesWhatIsNotKnown) {
  EXPECT_EQ(mistakes_of(with_body("%t = thread_idx {axis = x} : i32\n%a = add %t, %n : i32\n"
                                  "%v = at_launch %a : i32")),
            "4: 'at_launch' of a value that the host cannot compute: it depends on 'thread_idx' at "
            "k.ir:2; make it of scalar parameters, extents and strides of parameters, and "
            "constants, by arithmetic of integers");
  EXPECT_THAT(mistakes_of(with_body("%zero = const 0 : i32\nfor %i in %zero .. %n step %n {\n"
                                    "%v = at_launch %i : i32\nyield\n}")),
              HasSubstr("it depends on a number of 'for' at k.ir:3;"));
  EXPECT_THAT(mistakes_of(with_body("%a = convert %f : i32\n%v = at_launch %a : i32")),
              HasSubstr("it depends on %f, which is f32;"));
}

}  // namespace
}  // namespace heddle::ir
