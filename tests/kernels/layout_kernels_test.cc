// The programs 13 to 16 of kernels/learn, which are written on layouts: right on sizes that are no
// multiple of anything, and no longer than the same written index by index.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "heddle/kernels/learn/13_layout_row_sum.h"
#include "heddle/kernels/learn/14_tv_add.h"
#include "heddle/kernels/learn/15_swizzled_transpose.h"
#include "heddle/kernels/learn/16_permute.h"
#include "heddle/tools/bench/learn/layout_twins.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle::learn {
namespace {

constexpr std::pair<int64_t, int64_t> kShapes[] = {{1, 1},    {1, 513},  {33, 65},  {64, 128},
                                                   {50, 100}, {7, 1024}, {70, 1030}};

// Whole numbers, whose sums are exact in any order.
std::vector<float> numbers(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7 % 251) - 100;
  return values;
}

Buffer on_device(const std::vector<float>& values) {
  return test_device().upload(absl::MakeConstSpan(values)).value();
}

class LayoutKernels : public testing::Test {
 protected:
  const Stream stream = test_device().create_stream().value();
};

TEST_F(LayoutKernels, RowSum) {
  for (const auto& [rows, columns] : kShapes) {
    const std::vector<float> x = numbers(rows * columns);
    const Buffer x_memory = on_device(x), y_memory = on_device(std::vector<float>(rows));
    ASSERT_THAT(layout_row_sum.launch(stream, layout_row_sum_shape(rows),
                                      as_tensor<const float>(x_memory, {rows, columns}),
                                      as_tensor<float>(y_memory, {rows})),
                IsOk());
    const std::vector<float> got = y_memory.download<float>(stream).value();
    for (int64_t r = 0; r < rows; ++r) {
      const auto row = x.begin() + r * columns;
      EXPECT_EQ(got[r], std::accumulate(row, row + columns, 0.0f)) << rows << " x " << columns;
    }
  }
}

TEST_F(LayoutKernels, Add) {
  for (const auto& [rows, columns] : kShapes) {
    const std::vector<float> x = numbers(rows * columns);
    std::vector<float> y = x;
    std::reverse(y.begin(), y.end());
    const Buffer x_memory = on_device(x), y_memory = on_device(y);
    const Buffer z_memory = on_device(std::vector<float>(x.size()));
    const auto in = [&, rows = rows, columns = columns](const Buffer& memory) {
      return as_tensor<const float>(memory, {rows, columns});
    };
    ASSERT_THAT(tv_add.launch(stream, tv_add_shape(rows, columns), in(x_memory), in(y_memory),
                              as_tensor<float>(z_memory, {rows, columns})),
                IsOk());
    const std::vector<float> got = z_memory.download<float>(stream).value();
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(got[i], x[i] + y[i]) << i;
  }
}

TEST_F(LayoutKernels, Transpose) {
  for (const auto& [rows, columns] : kShapes) {
    const std::vector<float> x = numbers(rows * columns);
    const Buffer x_memory = on_device(x), y_memory = on_device(std::vector<float>(x.size()));
    ASSERT_THAT(swizzled_transpose.launch(stream, swizzled_transpose_shape(rows, columns),
                                          as_tensor<const float>(x_memory, {rows, columns}),
                                          as_tensor<float>(y_memory, {columns, rows})),
                IsOk());
    const std::vector<float> got = y_memory.download<float>(stream).value();
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        ASSERT_EQ(got[j * rows + i], x[i * columns + j]) << i << " " << j;
      }
    }
  }
}

TEST_F(LayoutKernels, SwapHeads) {
  const int64_t shapes[][4] = {{1, 1, 1, 1}, {2, 5, 3, 7}, {3, 4, 8, 16}, {1, 100, 2, 33}};
  for (const auto& [batch, length, heads, width] : shapes) {
    const std::vector<float> x = numbers(batch * length * heads * width);
    const Buffer x_memory = on_device(x), y_memory = on_device(std::vector<float>(x.size()));
    ASSERT_THAT(swap_heads.launch(stream, swap_heads_shape(static_cast<int64_t>(x.size())),
                                  as_tensor<const float>(x_memory, {batch, length, heads, width}),
                                  as_tensor<float>(y_memory, {batch, heads, length, width})),
                IsOk());
    const std::vector<float> got = y_memory.download<float>(stream).value();
    for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
      const int64_t w = i % width, h = i / width % heads, s = i / width / heads % length;
      const int64_t b = i / width / heads / length;
      ASSERT_EQ(got[((b * heads + h) * length + s) * width + w], x[i]) << i;
    }
  }
}

// Lines of PTX that are instructions, in the whole kernel and between a loop's label and its jump
// back.
struct Length {
  int whole = 0;
  int loop = 0;
};

template <class K>
Length length(const K& kernel, const runtime::Signature& signature, int threads) {
  CompileOptions options{.block = {threads, 1, 1}, .target = "sm_90a"};
  options.stage = Stage::kPtx;
  const auto compiled = kernel.compile(signature, options);
  if (!compiled.ok()) {
    ADD_FAILURE() << compiled.status();
    return {};
  }
  Length result;
  std::vector<std::string> labels;
  std::vector<int> starts;
  for (absl::string_view line : absl::StrSplit(compiled->ptx(), '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '.' || line[0] == '/' || line[0] == '{' || line[0] == '}' ||
        line[0] == '(' || line[0] == ')') {
      continue;
    }
    if (line.back() == ':') {
      labels.emplace_back(line.substr(0, line.size() - 1));
      starts.push_back(result.whole);
      continue;
    }
    ++result.whole;
    if (line.find("bra") == absl::string_view::npos) continue;
    for (size_t i = 0; i < labels.size(); ++i) {
      if (line.find(labels[i] + ";") == absl::string_view::npos) continue;
      result.loop = std::max(result.loop, result.whole - starts[i]);
    }
  }
  return result;
}

const ArgumentSpec kMatrix = tensor({kAny, kAny}).aligned(16);
const ArgumentSpec kVector = tensor({kAny}).aligned(16);

TEST(LayoutKernelsLength, RowSumIsNoLongerThanByHand) {
  for (const bool aligned : {false, true}) {
    ArgumentSpec x = kMatrix;
    if (aligned) x.strides_divisible_by(4);
    const Length layouts = length(layout_row_sum, {x, kVector}, kRowThreads);
    const Length by_hand = length(row_sum_twin, {x, kVector}, kRowThreads);
    EXPECT_GT(layouts.loop, 0);
    EXPECT_LE(layouts.loop, by_hand.loop);
    EXPECT_LE(layouts.whole, by_hand.whole);
  }
}

TEST(LayoutKernelsLength, AddIsNoLongerThanByHand) {
  const Length layouts = length(tv_add, {kMatrix, kMatrix, kMatrix}, kAddThreads);
  const Length by_hand = length(add_twin, {kMatrix, kMatrix, kMatrix}, kAddThreads);
  EXPECT_GT(layouts.whole, 0);
  EXPECT_LE(layouts.whole, by_hand.whole);
}

TEST(LayoutKernelsLength, TransposeIsNoLongerThanByHand) {
  const Length layouts = length(swizzled_transpose, {kMatrix, kMatrix}, kTurnThreads);
  const Length by_hand = length(transpose_twin, {kMatrix, kMatrix}, kTurnThreads);
  EXPECT_GT(layouts.whole, 0);
  EXPECT_LE(layouts.whole, by_hand.whole);
}

TEST(LayoutKernelsLength, SwapHeadsDividesByMultiplying) {
  const ArgumentSpec heads = tensor({kAny, kAny, kAny, kAny});
  CompileOptions options{.block = {kSwapThreads, 1, 1}, .target = "sm_90a"};
  options.stage = Stage::kPtx;
  const auto compiled = swap_heads.compile(Signature{heads, heads}, options);
  ASSERT_THAT(compiled, IsOk());
  EXPECT_EQ(compiled->ptx().find("div."), std::string::npos);
  EXPECT_EQ(compiled->ptx().find("rem."), std::string::npos);
}

}  // namespace
}  // namespace heddle::learn
