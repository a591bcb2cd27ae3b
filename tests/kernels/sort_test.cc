// sort and sort_pairs against std::stable_sort, bit by bit: every type, sizes around those of tiles, special numbers, few
// different ones, any strides.
#include "heddle/kernels/sort/sort.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/matrix_rows.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using kernels::Order;

// By which elements are compared, as sort.h says.
template <class T>
bool comes_before(Order order, const T& a, const T& b) {
  const auto less = [](const T& x, const T& y) {
    if constexpr (std::is_integral_v<T>) {
      return x < y;
    } else {
      const auto one = static_cast<float>(x), other = static_cast<float>(y);
      return std::isnan(one) ? false : std::isnan(other) || one < other;
    }
  };
  return order == Order::kAscending ? less(a, b) : less(b, a);
}

// Elements with random bits: NaNs of both signs among them.
template <class T>
std::vector<T> random_bits(int64_t count) {
  std::mt19937_64 random(static_cast<uint64_t>(count) + 1);
  std::vector<T> x(static_cast<size_t>(count));
  for (T& element : x) {
    const uint64_t bits = random();
    std::memcpy(static_cast<void*>(&element), &bits, sizeof(T));
  }
  return x;
}

// Where the elements of a sorted vector stood.
template <class T>
std::vector<int32_t> sorted_places(Order order, const std::vector<T>& x) {
  std::vector<int32_t> places(x.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](int32_t a, int32_t b) {
    return comes_before(order, x[static_cast<size_t>(a)], x[static_cast<size_t>(b)]);
  });
  return places;
}

template <class T>
void check_sorted(Order order, const std::vector<T>& x) {
  SCOPED_TRACE(testing::Message() << x.size() << " elements, order " << static_cast<int>(order));
  const auto n = static_cast<int64_t>(x.size());
  std::vector<int32_t> numbers(x.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer in = device.upload(absl::MakeConstSpan(x)).value(),
               values = device.upload(absl::MakeConstSpan(numbers)).value(),
               alone = device.allocate(x.size() * sizeof(T)).value(),
               keys = device.allocate(x.size() * sizeof(T)).value(),
               moved = device.allocate(x.size() * sizeof(int32_t)).value();
  ASSERT_THAT(
      kernels::sort<T>(stream, order, as_tensor<const T>(in, {n}), as_tensor<T>(alone, {n})),
      IsOk());
  ASSERT_THAT((kernels::sort_pairs<T, int32_t>(
                  stream, order, as_tensor<const T>(in, {n}), as_tensor<const int32_t>(values, {n}),
                  as_tensor<T>(keys, {n}), as_tensor<int32_t>(moved, {n}))),
              IsOk());
  const std::vector<int32_t> places = sorted_places(order, x);
  std::vector<T> expected;
  for (const int32_t place : places) expected.push_back(x[static_cast<size_t>(place)]);
  const auto same = [&](const std::vector<T>& got) {
    return std::memcmp(got.data(), expected.data(), expected.size() * sizeof(T)) == 0;
  };
  EXPECT_TRUE(same(alone.download<T>(stream).value()));
  EXPECT_TRUE(same(keys.download<T>(stream).value()));
  EXPECT_EQ(moved.download<int32_t>(stream).value(), places);
}

template <class T>
class Sorts : public testing::Test {};
using Types = testing::Types<float, half, bfloat16, int32_t, uint32_t, int64_t>;
TYPED_TEST_SUITE(Sorts, Types);

TYPED_TEST(Sorts, OfAnyLength) {
  for (const int64_t n : {1, 2, 31, 33, 1000, 4608, 7680, 8447, 8448, 8449, 40000}) {
    for (const Order order : {Order::kAscending, Order::kDescending}) {
      check_sorted(order, random_bits<TypeParam>(n));
    }
  }
}
TYPED_TEST(Sorts, KeepTheOrderOfEqualElements) {
  std::vector<TypeParam> few, same(20000, TypeParam(3));
  for (int i = 0; i < 20000; ++i) few.push_back(TypeParam(i * 7 % 5 - 2));
  for (const Order order : {Order::kAscending, Order::kDescending}) {
    check_sorted(order, few);
    check_sorted(order, same);
  }
}
TYPED_TEST(Sorts, OfElementsInOrder) {
  std::vector<TypeParam> up;
  for (int i = 0; i < 9000; ++i) up.push_back(TypeParam(i - 4500));
  const std::vector<TypeParam> down(up.rbegin(), up.rend());
  for (const Order order : {Order::kAscending, Order::kDescending}) {
    check_sorted(order, up);
    check_sorted(order, down);
  }
}

// Digits that all elements share move none: the least ones, those in the middle, the greatest ones, all but one element's.
TEST(SortTest, OfElementsThatShareDigits) {
  std::mt19937 random(3);
  for (const uint32_t bits : {0xff000000u, 0x00ff00ffu, 0x0000ff00u, 0x000000ffu, 0u}) {
    std::vector<uint32_t> x;
    for (int i = 0; i < 20000; ++i) x.push_back((random() & bits) | (0x12345678u & ~bits));
    for (const Order order : {Order::kAscending, Order::kDescending}) check_sorted(order, x);
    x[12345] ^= 0x80010000u;
    for (const Order order : {Order::kAscending, Order::kDescending}) check_sorted(order, x);
  }
}

// Tiles wait for each other's words only where blocks run side by side.
TEST(SortTest, OfManyTiles) {
  const int64_t n = on_gpu() ? 5000000 : 100000;
  check_sorted(Order::kAscending, random_bits<float>(n));
  check_sorted(Order::kDescending, random_bits<int64_t>(n));
}

// Keys and their places, sorted on a device.
template <class T, class V>
void check_pairs(const Device& device, int64_t n) {
  const std::vector<T> x = random_bits<T>(n);
  std::vector<V> places(x.size());
  std::iota(places.begin(), places.end(), V(0));
  const Buffer keys = device.upload(absl::MakeConstSpan(x)).value(),
               values = device.upload(absl::MakeConstSpan(places)).value(),
               sorted = device.allocate(x.size() * sizeof(T)).value(),
               moved = device.allocate(x.size() * sizeof(V)).value();
  const Stream stream = device.default_stream();
  const Status done = kernels::sort_pairs<T, V>(
      stream, Order::kAscending, as_tensor<const T>(keys, {n}), as_tensor<const V>(values, {n}),
      as_tensor<T>(sorted, {n}), as_tensor<V>(moved, {n}));
  ASSERT_TRUE(done.ok()) << done;
  const std::vector<V> found = moved.download<V>(stream).value();
  const std::vector<int32_t> expected = sorted_places(Order::kAscending, x);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(found[i], static_cast<V>(expected[i])) << "at " << i << " of " << n;
  }
}

// Tiles follow from how many elements there are for each multiprocessor, and from shared memory.
TEST(SortTest, OfTilesOfEachSize) {
  runtime::DeviceInfo info = Device::open("interp").value().info();
  info.sm_count = 1;
  for (const int64_t shared : {info.limits.max_shared_per_block, int64_t{101376}}) {
    info.limits.max_shared_per_block = shared;
    const Device device = Device::open_private_interp(info);
    for (const int64_t n : {5000, 8000, 11000, 30011}) check_pairs<uint32_t, int32_t>(device, n);
    check_pairs<bfloat16, int32_t>(device, 30011);
    check_pairs<int64_t, int32_t>(device, 20011);
    check_pairs<int64_t, int64_t>(device, 20011);
  }
}

TEST(SortTest, OfZerosInfinitiesAndNaNs) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float nan = std::nanf("1");
  std::vector<float> x;
  for (int i = 0; i < 700; ++i) {
    x.insert(x.end(), {0.0f, -0.0f, kInfinity, -kInfinity, nan, -nan, std::nanf("77"), 0x1p-149f,
                       -0x1p-149f, std::numeric_limits<float>::max(), -1.0f, 1.0f});
  }
  std::shuffle(x.begin(), x.end(), std::mt19937(1));
  for (const Order order : {Order::kAscending, Order::kDescending}) check_sorted(order, x);
}

// Of every second key and every third value, at an odd place, into every second place.
TEST(SortTest, OfAnyStride) {
  constexpr int64_t kCount = 5000;
  const std::vector<float> x = random_elements<float>(3 * kCount + 1, 0, 1, 5);
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer in = device.upload(absl::MakeConstSpan(x)).value();
  const std::vector<float> clean(2 * kCount, -1.0f);
  const Buffer out = device.upload(absl::MakeConstSpan(clean)).value(),
               moved = device.upload(absl::MakeConstSpan(clean)).value();
  const auto part = [](auto tensor, int64_t first, int64_t stride) {
    tensor.data += first;
    tensor.capacity_bytes -= first * 4;
    tensor.extents[0] = kCount, tensor.strides[0] = stride;
    return tensor;
  };
  const auto all = as_tensor<const float>(in, {3 * kCount + 1});
  const auto to = as_tensor<float>(out, {2 * kCount}),
             moved_to = as_tensor<float>(moved, {2 * kCount});
  ASSERT_THAT(
      (kernels::sort_pairs<float, float>(stream, Order::kAscending, part(all, 1, 2),
                                         part(all, 0, 3), part(to, 0, 2), part(moved_to, 1, 2))),
      IsOk());
  std::vector<float> keys;
  for (int64_t i = 0; i < kCount; ++i) keys.push_back(x[static_cast<size_t>(1 + 2 * i)]);
  std::vector<float> expected = clean, expected_moved = clean;
  const std::vector<int32_t> places = sorted_places(Order::kAscending, keys);
  for (size_t i = 0; i < places.size(); ++i) {
    expected[2 * i] = keys[static_cast<size_t>(places[i])];
    expected_moved[2 * i + 1] = x[static_cast<size_t>(3 * places[i])];
  }
  EXPECT_EQ(out.download<float>(stream).value(), expected);
  EXPECT_EQ(moved.download<float>(stream).value(), expected_moved);
}

TEST(SortTest, SaysWhatDoesNotFit) {
  const Stream stream = test_device().create_stream().value();
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  const auto call = [&](int64_t n, int64_t y) {
    return kernels::sort<float>(stream, Order::kAscending, {nullptr, {n}, {1}},
                                {nullptr, {y}, {1}});
  };
  EXPECT_THAT(call(5, 6),
              Fails(kInvalid, "sort: x has 5 elements and y 6; all need the same number"));
  EXPECT_THAT(call(1 << 30, 1 << 30),
              Fails(kInvalid, "sort: 1073741824 elements; it takes at most 1073676288"));
  EXPECT_THAT((kernels::sort_pairs<float, float>(stream, Order::kAscending, {nullptr, {5}, {1}},
                                                 {nullptr, {4}, {1}}, {nullptr, {5}, {1}},
                                                 {nullptr, {5}, {1}})),
              Fails(kInvalid, "sort_pairs: keys has 5 elements and values 4"));
}

}  // namespace
}  // namespace heddle
