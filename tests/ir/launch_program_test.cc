#include "heddle/ir/launch/launch_program.h"

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/passes/pipeline.h"
#include "heddle/ir/text/printer.h"
#include "ir/text/parse_text.h"

namespace heddle::ir {
namespace {

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
  ASSERT_TRUE(run_pipeline(launch.kernel, "fold,dce").ok());
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

TEST(LaunchProgram, RemembersTheNumbersOfTheLastLaunchAlone) {
  Launch launch(R"(%rows = extent %x {dim = 0} : i32
%same = eq %rows, %n : bool
require %same {message = "as many"}
)");
  const LaunchProgram program(launch.kernel, launch.layout);
  launch.set(SlotKind::kExtent, 0, int64_t{9});
  LaunchDims dims;
  for (const int32_t n : {9, 8, 9, 9, 7}) {
    launch.set(SlotKind::kScalar, 1, n);
    EXPECT_EQ(program.run(launch.block.data(), dims), n == 9);
  }
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

}  // namespace
}  // namespace heddle::ir
