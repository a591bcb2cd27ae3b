// Maps and copies: every way of walking through modes, on all kinds of extents, strides and alignments; copies to the bit.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/kernels/map/copy.h"
#include "heddle/kernels/map/elementwise.h"
#include "support/matchers.h"
#include "support/test_device.h"
#include "support/tuning_candidates.h"

namespace heddle {
namespace {

using Extents = std::vector<int64_t>;

// Where a tensor lies in memory of its own: strides in elements, elements in front.
struct Layout {
  Extents strides;
  int64_t offset = 0;
};
Layout row_major(const Extents& extents, int64_t offset = 0) {
  Layout layout{Extents(extents.size(), 1), offset};
  for (size_t i = extents.size(); i-- > 1;) layout.strides[i - 1] = layout.strides[i] * extents[i];
  return layout;
}
int64_t size_of(const Extents& extents, const Layout& layout) {
  int64_t last = layout.offset;
  for (size_t i = 0; i < extents.size(); ++i) {
    last += (extents[i] - 1) * std::max<int64_t>(layout.strides[i], 0);
  }
  return last + 3;  // what must not be touched
}
// f(place in row-major order, offset in memory) of each element.
template <class F>
void each_element(const Extents& extents, const Layout& layout, F f) {
  const int64_t count =
      std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = n, offset = layout.offset;
    for (size_t i = extents.size(); i-- > 0;) {
      offset += rest % extents[i] * layout.strides[i];
      rest /= extents[i];
    }
    f(n, offset);
  }
}

template <class T, int kRank>
TensorRef<T, kRank> ref(const Buffer& buffer, const Extents& extents, const Layout& layout) {
  int64_t e[kRank], s[kRank];
  std::copy_n(extents.begin(), kRank, e);
  std::copy_n(layout.strides.begin(), kRank, s);
  TensorRef<T, kRank> all(
      reinterpret_cast<T*>(static_cast<uintptr_t>(buffer.address())) + layout.offset, e, s);
  return all;
}

// A random input in memory, and where its elements are.
template <class T>
struct Input {
  std::vector<T> memory;
  Buffer buffer;
};
template <class T>
Input<T> random_input(int64_t size, unsigned seed) {
  Input<T> input;
  input.memory.resize(static_cast<size_t>(size));
  uint64_t state = seed;
  for (T& value : input.memory) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t bits = state >> 20;
    std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));  // NaNs of any kind too
  }
  input.buffer = test_device().upload(absl::MakeConstSpan(input.memory)).value();
  return input;
}

// Copies x to y, each of them laid out anyhow, in all ways that there are, and compares all of y's memory.
template <class T, int kRank>
void check_copy(const Extents& extents, const Layout& from, const Layout& to) {
  SCOPED_TRACE(testing::Message() << testing::PrintToString(extents) << " strides "
                                  << testing::PrintToString(from.strides) << " + " << from.offset
                                  << " to " << testing::PrintToString(to.strides) << " + "
                                  << to.offset << " of " << sizeof(T) << " bytes");
  const Stream stream = test_device().create_stream().value();
  const Input<T> x = random_input<T>(size_of(extents, from), 1),
                 y = random_input<T>(size_of(extents, to), 2);
  std::vector<T> want = y.memory;
  std::vector<int64_t> places;
  each_element(extents, from, [&](int64_t, int64_t at) { places.push_back(at); });
  each_element(extents, to, [&](int64_t n, int64_t at) { want[at] = x.memory[places[n]]; });
  const auto copy = [&] {
    const Buffer out = test_device().upload(absl::MakeConstSpan(y.memory)).value();
    ASSERT_THAT(kernels::copy(stream, ref<const T, kRank>(x.buffer, extents, from),
                              ref<T, kRank>(out, extents, to)),
                IsOk());
    const std::vector<T> got = out.template download<T>(stream).value();
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(std::memcmp(&got[i], &want[i], sizeof(T)), 0) << "at " << i;
    }
  };
  by_each_candidate(copy);
}

template <class T>
class Copies : public testing::Test {};
using Types = testing::Types<float, half, uint8_t, double>;
TYPED_TEST_SUITE(Copies, Types);

TYPED_TEST(Copies, OfVectorsAnywhere) {
  for (const int64_t n : {1, 2, 3, 15, 16, 17, 64, 1000, 4096, 5003}) {
    for (const int64_t offset : {0, 1, 2, 3, 8}) {
      check_copy<TypeParam, 1>({n}, {{1}, offset}, {{1}, 0});
      check_copy<TypeParam, 1>({n}, {{1}, offset}, {{1}, offset});
    }
    check_copy<TypeParam, 1>({n}, {{1}, 2}, {{1}, 3});
    check_copy<TypeParam, 1>({n}, {{3}, 1}, {{1}, 0});
    check_copy<TypeParam, 1>({n}, {{1}, 0}, {{2}, 1});
  }
}

TYPED_TEST(Copies, OfRowsThatAreApart) {
  for (const Extents& extents : {Extents{1, 1}, {7, 5}, {33, 64}, {5, 67}, {3, 1000}, {300, 3}}) {
    const int64_t columns = extents[1];
    for (const int64_t more : {0, 1, 2, 5, 16}) {
      check_copy<TypeParam, 2>(extents, {{columns + more, 1}, 0}, {{columns, 1}, 0});
      check_copy<TypeParam, 2>(extents, {{columns + more, 1}, 1}, {{columns + more, 1}, 1});
      check_copy<TypeParam, 2>(extents, {{columns, 1}, 0}, {{columns + more, 1}, 3});
    }
  }
}

TYPED_TEST(Copies, OfTransposedRows) {
  for (const Extents& extents : {Extents{1, 9},
                                 {2, 2},
                                 {3, 100},
                                 {100, 3},
                                 {16, 16},
                                 {33, 70},
                                 {64, 128},
                                 {128, 256},
                                 {255, 129},
                                 {257, 131},
                                 {1, 1000},
                                 {1000, 1},
                                 {700, 5},
                                 {5, 700}}) {
    const int64_t rows = extents[0], columns = extents[1];
    for (const int64_t more : {0, 1, 4}) {
      check_copy<TypeParam, 2>(extents, {{1, rows + more}, 0}, {{columns, 1}, 0});
      check_copy<TypeParam, 2>(extents, {{1, rows}, more}, {{columns + more, 1}, 0});
      check_copy<TypeParam, 2>(extents, {{columns + more, 1}, 0}, {{1, rows}, 1});
    }
  }
}

// Several tiles along both modes, of several matrices, from the last row to the first too.
TYPED_TEST(Copies, OfTransposedRowsThatBeginAnywhere) {
  check_copy<TypeParam, 2>({301, 411}, {{1, 307}, 5}, {{413, 1}, 3});
  check_copy<TypeParam, 2>({203, 901}, {{1, 205}, 1}, {{903, 1}, 1});
  check_copy<TypeParam, 2>({411, 64}, {{1, 411}, 0}, {{64, 1}, 0});
  check_copy<TypeParam, 2>({64, 411}, {{1, 64}, 0}, {{411, 1}, 0});
  check_copy<TypeParam, 3>({2, 201, 333}, {{67001, 1, 201}, 1}, {{67000, 333, 1}, 2});
  check_copy<TypeParam, 2>({130, 270}, {{1, -131}, 269 * 131}, {{-271, 1}, 129 * 271});
}

TYPED_TEST(Copies, OfModesInEveryOrder) {
  const Extents extents = {3, 5, 4, 18};
  std::vector<int> order = {0, 1, 2, 3};
  do {
    Layout from{Extents(4)};
    int64_t stride = 1;
    for (const int mode : order) {
      from.strides[mode] = stride;
      stride *= extents[mode];
    }
    check_copy<TypeParam, 4>(extents, from, row_major(extents));
    check_copy<TypeParam, 4>(extents, row_major(extents, 1), from);
  } while (std::next_permutation(order.begin(), order.end()));
  check_copy<TypeParam, 5>({2, 3, 4, 5, 6}, {{1, 2, 6, 24, 120}}, row_major({2, 3, 4, 5, 6}));
  check_copy<TypeParam, 5>({4, 2, 33, 3, 40}, {{7920, 1, 240, 80, 2}},
                           row_major({4, 2, 33, 3, 40}));
}

TYPED_TEST(Copies, BackwardsAndOfNothing) {
  check_copy<TypeParam, 2>({5, 40}, {{40, -1}, 39}, {{40, 1}, 0});
  check_copy<TypeParam, 2>({5, 40}, {{-40, 1}, 160}, {{40, 1}, 0});
  check_copy<TypeParam, 2>({5, 40}, {{40, 1}, 0}, {{-48, 1}, 192});
  const Stream stream = test_device().create_stream().value();
  EXPECT_THAT(kernels::copy(stream, TensorRef<const TypeParam, 2>(nullptr, {0, 5}),
                            TensorRef<TypeParam, 2>(nullptr, {0, 5})),
              IsOk());
}

TEST(Maps, BroadcastTheirInputs) {
  const Stream stream = test_device().create_stream().value();
  constexpr int64_t kPlanes = 3, kRows = 17, kColumns = 44;
  const Extents extents = {kPlanes, kRows, kColumns};
  std::vector<float> values(kPlanes * kRows * kColumns), out(values.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Buffer x = test_device().upload(absl::MakeConstSpan(values)).value();
  const Buffer y = test_device().allocate(values.size() * sizeof(float)).value();
  const auto all = as_tensor<const float>(x, {kPlanes, kRows, kColumns});
  const auto result = as_tensor<float>(y, {kPlanes, kRows, kColumns});
  const auto check = [&](auto expected) {
    out = y.download<float>(stream).value();
    int64_t i = 0;
    for (int64_t p = 0; p < kPlanes; ++p) {
      for (int64_t r = 0; r < kRows; ++r) {
        for (int64_t c = 0; c < kColumns; ++c, ++i) {
          ASSERT_EQ(out[i], static_cast<float>(expected(i, p, r, c))) << p << " " << r << " " << c;
        }
      }
    }
  };
  ASSERT_THAT(kernels::add(stream, all, as_tensor<const float>(x, {kColumns}), result), IsOk());
  check([](int64_t i, int64_t, int64_t, int64_t c) { return i + c; });
  ASSERT_THAT(kernels::add(stream, as_tensor<const float>(x, {kRows, int64_t{1}}), all, result),
              IsOk());
  check([](int64_t i, int64_t, int64_t r, int64_t) { return i + r; });
  ASSERT_THAT(kernels::add(stream, as_tensor<const float>(x, {kPlanes, int64_t{1}, kColumns}),
                           as_tensor<const float>(x, {int64_t{1}}), result),
              IsOk());
  check([&](int64_t, int64_t p, int64_t, int64_t c) { return p * kColumns + c; });
  ASSERT_THAT(kernels::multiply(stream, all, 2, result), IsOk());
  check([](int64_t i, int64_t, int64_t, int64_t) { return 2 * i; });
  // A number in front counts among the arguments, and not among the tensors.
  ASSERT_THAT(kernels::multiply(stream, 3, as_tensor<const float>(x, {kRows, int64_t{1}}), result),
              IsOk());
  check([](int64_t, int64_t, int64_t r, int64_t) { return 3 * r; });
  // One input goes through shared memory, the other does not.
  const TensorRef<const float, 3> turned(all.data, {kPlanes, kRows, kColumns},
                                         {kRows * kColumns, 1, kRows});
  ASSERT_THAT(kernels::add(stream, all, turned, result), IsOk());
  check([&](int64_t i, int64_t p, int64_t r, int64_t c) {
    return i + p * kRows * kColumns + c * kRows + r;
  });
  ASSERT_THAT(kernels::add(stream, turned, as_tensor<const float>(x, {kRows, int64_t{1}}), result),
              IsOk());
  check([&](int64_t, int64_t p, int64_t r, int64_t c) {
    return p * kRows * kColumns + c * kRows + 2 * r;
  });
}

// Several inputs through shared memory, of elements of other sizes than the output's, and a third that does not fit there; by
// every deal.
template <class Y>
void check_turned_sum(int64_t rows, int64_t columns) {
  SCOPED_TRACE(testing::Message() << rows << " × " << columns << " of " << sizeof(Y) << " bytes");
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  std::vector<half> a;
  std::vector<uint8_t> b;
  std::vector<float> c;
  for (int i = 0; i < rows * columns; ++i) {
    a.push_back(half(static_cast<float>(i % 50)));
    b.push_back(static_cast<uint8_t>(i % 37));
    c.push_back(static_cast<float>(i % 11));
  }
  const auto turned = [&]<class T>(const Buffer& buffer, const std::vector<T>&) {
    return kernels::permuted(as_tensor<const T>(buffer, {columns, rows}), {1, 0});
  };
  static constexpr auto kSum = kernels::define_map(
      "sum(a, b, c, y)", [](Float p, Float q, Float r) { return p + 2.0f * q + r; });
  static constexpr auto kTwo =
      kernels::define_map("two(a, b, y)", [](Float p, Float q) { return p + 2.0f * q; });
  for (const bool three : {true, false}) {
    by_each_candidate([&] {
      // Of its own each time: deals that are remembered say nothing of memory.
      const Buffer as = device.upload(absl::MakeConstSpan(a)).value(),
                   bs = device.upload(absl::MakeConstSpan(b)).value(),
                   cs = device.upload(absl::MakeConstSpan(c)).value(),
                   out = device.allocate(rows * columns * sizeof(Y)).value();
      const auto y = as_tensor<Y>(out, {rows, columns});
      ASSERT_THAT(three ? kSum(stream, turned(as, a), turned(bs, b), turned(cs, c), y)
                        : kTwo(stream, turned(as, a), turned(bs, b), y),
                  IsOk());
      const std::vector<Y> got = out.template download<Y>(stream).value();
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          const int64_t at = j * rows + i;
          ASSERT_EQ(static_cast<float>(got[i * columns + j]),
                    static_cast<float>(at % 50 + 2 * (at % 37) + (three ? at % 11 : 0)))
              << i << ", " << j;
        }
      }
    });
  }
}
TEST(Maps, TurnSeveralInputs) {
  check_turned_sum<float>(70, 133);
  check_turned_sum<half>(130, 601);
  check_turned_sum<uint8_t>(130, 601);
  check_turned_sum<float>(131, 603);
}

TEST(Maps, MayStoreWhereTheyRead) {
  const Stream stream = test_device().create_stream().value();
  std::vector<float> x(1003, 3.0f);
  const Buffer memory = test_device().upload(absl::MakeConstSpan(x)).value();
  const auto all = as_tensor<float>(memory, {int64_t{1003}});
  ASSERT_THAT(kernels::multiply(stream, all, 2.0f, all), IsOk());
  EXPECT_EQ(memory.download<float>(stream).value(), std::vector<float>(1003, 6.0f));
  const auto code = StatusCode::kInvalidArgument;
  const TensorRef<float, 2> square(all.data, {10, 10});
  EXPECT_THAT(kernels::copy(stream, kernels::permuted(square, {1, 0}), square),
              Fails(code, "copy(x, y): argument 0 begins where the output does"));
  EXPECT_THAT(kernels::cast(
                  stream, TensorRef<const half, 1>(reinterpret_cast<const half*>(all.data), {100}),
                  TensorRef<float, 1>(all.data, {100})),
              Fails(code, "argument 0 begins where the output does"));
}

// Parts that are launched one after the other: each element once, and no more than a launch counts.
TEST(Maps, AreCutIntoSlabs) {
  for (const Extents& extents : {Extents{int64_t{5} << 30, 1, 1},
                                 {7, int64_t{3} << 28, 2},
                                 {3, 4, (int64_t{1} << 31) + 5},
                                 {100000, 10, 3000}}) {
    kernels::detail::MapTensor tensor;
    tensor.element_bytes = 2;
    for (size_t i = 0; i < 3; ++i) tensor.extents.push_back(extents[i]);
    // Apart, so that modes stay as they are.
    tensor.strides = {(extents[1] + 1) * (extents[2] + 1), extents[2] + 1, 1};
    const kernels::detail::MapModes all =
        kernels::detail::common_modes("map", {tensor}, tensor).value();
    int64_t elements = 0, next = 0;
    ASSERT_THAT(kernels::detail::in_slabs(
                    all,
                    [&](const kernels::detail::MapModes& part) {
                      int64_t count = 1;
                      for (int m = 0; m < part.count; ++m) count *= part.extents[m];
                      EXPECT_LE(count, int64_t{1} << 30);
                      EXPECT_GE(static_cast<int64_t>(part.output.address), next);
                      next = static_cast<int64_t>(part.output.address) + 1;
                      EXPECT_EQ(part.inputs[0].address, part.output.address);
                      EXPECT_LT(kernels::detail::map_shape(kernels::detail::plan_map(part)).grid.x,
                                int64_t{1} << 31);
                      elements += count;
                      return OkStatus();
                    }),
                IsOk());
    EXPECT_EQ(elements, extents[0] * extents[1] * extents[2]);
  }
}

constexpr auto kFourOf = kernels::define_map(
    "four(a, b, c, d, y)",
    [](Float a, Int b, Float c, Float d) { return fma(a, cast<float>(b), c) - d; });

TEST(Maps, ConvertElementsToWhatTheirFunctionTakes) {
  const Stream stream = test_device().create_stream().value();
  constexpr int64_t kN = 1003;
  std::vector<half> a;
  std::vector<uint8_t> b;
  std::vector<double> c;
  for (int64_t i = 0; i < kN; ++i) {
    a.push_back(half(static_cast<float>(i % 64)));
    b.push_back(static_cast<uint8_t>(i));
    c.push_back(static_cast<double>(i) / 4);
  }
  const Device& device = test_device();
  const Buffer as = device.upload(absl::MakeConstSpan(a)).value(),
               bs = device.upload(absl::MakeConstSpan(b)).value(),
               cs = device.upload(absl::MakeConstSpan(c)).value(),
               y = device.allocate(kN * sizeof(int64_t)).value();
  ASSERT_THAT(kFourOf(stream, as_tensor<const half>(as, {kN}), as_tensor<const uint8_t>(bs, {kN}),
                      as_tensor<const double>(cs, {kN}), 0.5f, as_tensor<int64_t>(y, {kN})),
              IsOk());
  const std::vector<int64_t> got = y.download<int64_t>(stream).value();
  for (int64_t i = 0; i < kN; ++i) {
    const auto n = static_cast<double>(i);
    ASSERT_EQ(got[i], static_cast<int64_t>((i % 64) * (i % 256) + n / 4 - 0.5)) << i;
  }
}

TEST(Maps, SayWhatDoesNotFit) {
  const Stream stream = test_device().create_stream().value();
  const Buffer memory = test_device().allocate(4096).value();
  const auto y = as_tensor<float>(memory, {4, 8});
  EXPECT_THAT(kernels::add(stream, as_tensor<const float>(memory, {4, 7}), 1.0f, y),
              Fails(StatusCode::kInvalidArgument,
                    "add(a, b, y): argument 0 is [4, 7] and the output [4, 8]"));
  EXPECT_THAT(kernels::add(stream, 1.0f, as_tensor<const float>(memory, {2, 4, 8}), y),
              Fails(StatusCode::kInvalidArgument, "argument 1 is [2, 4, 8]"));
  EXPECT_THAT(kernels::fill(stream, 1.0f, TensorRef<float, 2>(y.data, {4, 8}, {0, 1})),
              Fails(StatusCode::kInvalidArgument, "stride 0 along mode 0"));
  EXPECT_THAT(kernels::fill(stream, 1.0f, TensorRef<float, 2>(y.data, {-4, -3})),
              Fails(StatusCode::kInvalidArgument, "[-4, -3] has a negative extent in mode 0"));
  EXPECT_THAT(kernels::fill(stream, 1.0f,
                            TensorRef<float, 2>(y.data, {int64_t{1} << 32, int64_t{1} << 32})),
              Fails(StatusCode::kInvalidArgument, "has more than 2^63 - 1 elements"));
  // A launch that fails names the map's line.
  EXPECT_THAT(
      kernels::relu(stream, TensorRef<const float, 1>(nullptr, {4}), as_tensor<float>(memory, {4})),
      Fails(StatusCode::kInvalidArgument, "elementwise.h", "null pointer"));
}

// Tiles whose rows begin where memory is aligned are for matrices whose do not.
TEST(MapDeals, OddTransposesAreShifted) {
  const auto deal = [](int64_t rows, int64_t columns, int bytes) {
    const kernels::detail::MapTensor input{.argument = 1,
                                           .address = 1 << 20,
                                           .element_bytes = bytes,
                                           .extents = {columns, rows},
                                           .strides = {1, columns}},
        output{.address = 1 << 30,
               .element_bytes = bytes,
               .extents = {columns, rows},
               .strides = {rows, 1}};
    return kernels::detail::plan_map(
               kernels::detail::common_modes("transpose", {input}, output).value())
        .deal.to_string();
  };
  EXPECT_EQ(deal(1023, 1025, 1), "shifted 124x256");
  EXPECT_EQ(deal(1023, 1024, 2), "shifted 62x256");
  EXPECT_EQ(deal(1024, 1025, 4), "shifted 32x128");
  EXPECT_EQ(deal(1024, 1024, 2), "tiles 128x64");
  EXPECT_EQ(deal(3, 10001, 1).substr(0, 5), "tiles") << "too few rows for such a tile";
}

}  // namespace
}  // namespace heddle
