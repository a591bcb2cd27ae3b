#include "heddle/tools/elements.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heddle::tools {
namespace {

using ir::Scalar;
using ::testing::ElementsAre;

template <class T>
std::vector<double> doubles(Scalar dtype, const std::vector<T>& values) {
  return to_doubles(dtype,
                    {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T)});
}

TEST(ElementsTest, WidensEveryType) {
  EXPECT_THAT(doubles<uint8_t>(Scalar::kBool, {0, 1}), ElementsAre(0, 1));
  EXPECT_THAT(doubles<int32_t>(Scalar::kI32, {-1, 7}), ElementsAre(-1, 7));
  EXPECT_THAT(doubles<uint32_t>(Scalar::kU32, {4294967295u}), ElementsAre(4294967295.0));
  EXPECT_THAT(doubles<int64_t>(Scalar::kI64, {-5'000'000'000}), ElementsAre(-5e9));
  EXPECT_THAT(doubles<uint64_t>(Scalar::kU64, {std::numeric_limits<uint64_t>::max()}),
              ElementsAre(0x1p64));
  EXPECT_THAT(doubles<uint16_t>(Scalar::kF16, {0x3C00, 0xC100}), ElementsAre(1, -2.5));
  EXPECT_THAT(doubles<uint16_t>(Scalar::kBF16, {0x3F80, 0xC020}), ElementsAre(1, -2.5));
  EXPECT_THAT(doubles<float>(Scalar::kF32, {0.5f}), ElementsAre(0.5));
  EXPECT_THAT(doubles<double>(Scalar::kF64, {0.1}), ElementsAre(0.1));
}

TEST(ElementsTest, RoundsOnceOnTheWayBack) {
  // Halfway between two floats of each type, then a little above, to even and up.
  const std::vector<double> bf16_ties = {1 + 0x1p-8, 1 + 0x1p-8 + 0x1p-40};
  std::vector<uint16_t> halves(2);
  from_doubles(Scalar::kBF16, bf16_ties,
               absl::MakeSpan(reinterpret_cast<std::byte*>(halves.data()), 4));
  EXPECT_THAT(halves, ElementsAre(0x3F80, 0x3F81));
  const std::vector<double> f16_ties = {1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-40};
  from_doubles(Scalar::kF16, f16_ties,
               absl::MakeSpan(reinterpret_cast<std::byte*>(halves.data()), 4));
  EXPECT_THAT(halves, ElementsAre(0x3C00, 0x3C01));
  std::vector<float> floats(1);
  from_doubles(Scalar::kF32, {0.1}, absl::MakeSpan(reinterpret_cast<std::byte*>(floats.data()), 4));
  EXPECT_THAT(floats, ElementsAre(0.1f));
  std::vector<double> same(1);
  from_doubles(Scalar::kF64, {0.1}, absl::MakeSpan(reinterpret_cast<std::byte*>(same.data()), 8));
  EXPECT_THAT(same, ElementsAre(0.1));
}

}  // namespace
}  // namespace heddle::tools
