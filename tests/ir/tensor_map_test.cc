// What the host makes of tensor_map ops before a launch.
#include "heddle/ir/launch/tensor_map.h"

#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/launch/launch_program.h"
#include "heddle/ir/text/parser.h"
#include "support/matchers.h"

namespace heddle::ir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kKernel[] = R"(kernel @k(%n: i32, %x: view<f16, global, 2> [?, ?] strides [?, ?],
    %y: view<f32, global, 1> [32] strides [1]) block(1, 1, 1) {
  %z = const 0 : i32
  %a = tensor_map %x {modes = [1, 0], box = [64, 8], swizzle = 128} : tensor_map<f16, 2>
  %b = tensor_map %y {modes = [0], box = [4]} : tensor_map<f32, 1>
  tensor_map.prefetch %a
  tensor_map.prefetch %b
})";

class TensorMapsTest : public testing::Test {
 protected:
  TensorMapsTest()
      : kernel_(parse(kKernel, "k.ir").value()),
        layout_(launch_layout(kernel_, [](OpId) { return true; })),
        maps_(kernel_, layout_),
        block_(static_cast<size_t>(layout_.bytes)) {
    pass(0x10000, {100, 200}, {256, 1}, 0x20000);
  }

  void put(SlotKind kind, int param, int dim, int64_t value) {
    std::memcpy(block_.data() + layout_.find(kind, param, dim)->offset, &value, sizeof(value));
  }
  void pass(int64_t x, std::vector<int64_t> extents, std::vector<int64_t> strides, int64_t y) {
    put(SlotKind::kAddress, 1, 0, x);
    for (int dim = 0; dim < 2; ++dim) {
      put(SlotKind::kExtent, 1, dim, extents[static_cast<size_t>(dim)]);
      put(SlotKind::kStride, 1, dim, strides[static_cast<size_t>(dim)]);
    }
    put(SlotKind::kAddress, 2, 0, y);
  }
  Status encode() {
    return maps_.encode(block_.data(), [this](const TensorMap& map, std::byte* to) {
      encoded_.push_back(map);
      std::memset(to, static_cast<int>(encoded_.size()), kTensorMapBytes);
      return OkStatus();
    });
  }
  std::string refusal() { return std::string(encode().message()); }

  Kernel kernel_;
  ParamLayout layout_;
  TensorMaps maps_;
  std::vector<std::byte> block_;
  std::vector<TensorMap> encoded_;
};

TEST_F(TensorMapsTest, HaveAlignedPlacesBehindTheArguments) {
  ASSERT_EQ(layout_.tensor_maps.size(), 2u);
  EXPECT_EQ(layout_.tensor_maps[0].offset % kTensorMapAlign, 0);
  EXPECT_EQ(layout_.tensor_maps[1].offset, layout_.tensor_maps[0].offset + kTensorMapBytes);
  EXPECT_EQ(layout_.bytes, layout_.tensor_maps[1].offset + kTensorMapBytes);
}

TEST_F(TensorMapsTest, DescribeTheArgument) {
  ASSERT_THAT(encode(), IsOk());
  ASSERT_EQ(encoded_.size(), 2u);
  const TensorMap& x = encoded_[0];
  EXPECT_EQ(x.address, 0x10000u);
  EXPECT_THAT(x.extents, ElementsAre(200, 100, 0, 0, 0));
  EXPECT_THAT(x.strides, ElementsAre(2, 512, 0, 0, 0));
  EXPECT_THAT(x.shape.box, ElementsAre(64, 8, 0, 0, 0));
  EXPECT_EQ(x.shape.swizzle, 128);
  EXPECT_THAT(encoded_[1].extents, ElementsAre(32, 0, 0, 0, 0));
  const auto byte = [&](size_t map) {
    return static_cast<int>(block_[static_cast<size_t>(layout_.tensor_maps[map].offset)]);
  };
  EXPECT_EQ(byte(0), 1);
  EXPECT_EQ(byte(1), 2);
}

TEST_F(TensorMapsTest, OfTheLastArgumentsAreRemembered) {
  ASSERT_THAT(encode(), IsOk());
  std::memset(block_.data() + layout_.tensor_maps[0].offset, 0, 2 * kTensorMapBytes);
  ASSERT_THAT(encode(), IsOk());
  EXPECT_EQ(encoded_.size(), 2u);
  EXPECT_EQ(static_cast<int>(block_[static_cast<size_t>(layout_.tensor_maps[0].offset)]), 1);
  put(SlotKind::kExtent, 1, 0, 99);
  ASSERT_THAT(encode(), IsOk());
  EXPECT_EQ(encoded_.size(), 3u) << "the other map is as it was";
  EXPECT_THAT(encoded_[2].extents, ElementsAre(200, 99, 0, 0, 0));
}

TEST_F(TensorMapsTest, SayWhatTheyNeed) {
  pass(0x10008, {100, 200}, {256, 1}, 0x20000);
  EXPECT_THAT(refusal(), HasSubstr("the tensor map of 'x' needs an address that is a multiple of "
                                   "16, and it starts at 0x10008; fix: start the tensor "
                                   "at a multiple of 16 bytes"));
  pass(0x10000, {100, 200}, {1, 256}, 0x20000);
  EXPECT_THAT(refusal(), HasSubstr("needs mode 1 to be contiguous, and its stride is 256"));
  pass(0x10000, {100, 200}, {-256, 1}, 0x20000);
  EXPECT_THAT(refusal(), HasSubstr("needs strides of a positive multiple of 16 bytes below 2^40, "
                                   "and mode 0 has -512 bytes"));
  pass(0x10000, {100, 200}, {int64_t{1} << 62, 1}, 0x20000);
  EXPECT_THAT(refusal(), HasSubstr("mode 0 has 9223372036854775807 bytes"));
  pass(0x10000, {(int64_t{1} << 32) + 1, 200}, {256, 1}, 0x20000);
  EXPECT_THAT(refusal(), HasSubstr("needs extents of at most 2^32, and mode 0 has 4294967297"));
  EXPECT_TRUE(encoded_.empty());
}

// A stride leads nowhere where there is one element; of none there is no map.
TEST_F(TensorMapsTest, LookAtStridesThatMatter) {
  pass(0x10000, {1, 200}, {3, 1}, 0x20000);
  ASSERT_THAT(encode(), IsOk());
  EXPECT_EQ(encoded_[0].strides[1], 16);
  encoded_.clear();
  pass(0, {0, 200}, {3, 7}, 0x20000);
  ASSERT_THAT(encode(), IsOk());
  EXPECT_TRUE(encoded_.empty());
}

TEST_F(TensorMapsTest, TellWhyADeviceRefuses) {
  const Status status =
      maps_.encode(block_.data(), [](const TensorMap&, std::byte*) { return InternalError("no"); });
  EXPECT_EQ(status.message(), "no");
}

}  // namespace
}  // namespace heddle::ir
