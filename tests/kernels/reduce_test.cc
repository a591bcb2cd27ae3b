// reduce against double precision: every reduction and element type, modes of any extents and strides, extreme values.
#include "heddle/kernels/reduce/reduce.h"

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/kernels/reduce/columns_internal.h"
#include "heddle/kernels/reduce/reference_internal.h"
#include "heddle/kernels/rows/deal.h"
#include "heddle/tools/bench/graph.h"
#include "kernels/matrix_rows.h"
#include "support/matchers.h"
#include "support/test_device.h"
#include "support/tuning_candidates.h"

namespace heddle {
namespace {

using kernels::Along;
using kernels::Reduction;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr Reduction kAll[] = {Reduction::kSum, Reduction::kMean,   Reduction::kProduct,
                              Reduction::kMax, Reduction::kMin,    Reduction::kNorm2,
                              Reduction::kVar, Reduction::kArgmax, Reduction::kArgmin};

bool is_place(Reduction r) { return r == Reduction::kArgmax || r == Reduction::kArgmin; }
bool is_extremum(Reduction r) {
  return is_place(r) || r == Reduction::kMax || r == Reduction::kMin;
}

// Where elements are: extents, distances, and elements in front of the first.
struct Modes {
  int64_t extents[3];
  int64_t strides[3] = {0, 0, 0};  // none: row-major
  int64_t offset = 0;
};
std::ostream& operator<<(std::ostream& out, const Modes& m) {
  return out << m.extents[0] << "x" << m.extents[1] << "x" << m.extents[2] << " strides "
             << m.strides[0] << ", " << m.strides[1] << ", " << m.strides[2] << " offset "
             << m.offset;
}

// The elements of a tensor in memory, of which nothing else may be read.
template <class T>
struct Input {
  TensorRef<const T, 3> x;
  std::vector<T> host;
  Buffer memory;

  Input(const Stream& stream, Modes m, const std::vector<float>& values) {
    if (m.strides[2] == 0) {
      m.strides[2] = 1, m.strides[1] = m.extents[2], m.strides[0] = m.extents[1] * m.extents[2];
    }
    int64_t last = m.offset;
    for (int i = 0; i < 3; ++i) last += std::max<int64_t>(m.extents[i] - 1, 0) * m.strides[i];
    host.assign(static_cast<size_t>(last + 1), T(kNan));
    size_t next = 0;
    strides = {m.strides[0], m.strides[1], m.strides[2]}, offset = m.offset;
    for (int64_t o = 0; o < m.extents[0]; ++o) {
      for (int64_t r = 0; r < m.extents[1]; ++r) {
        for (int64_t i = 0; i < m.extents[2]; ++i) host[place(o, r, i)] = T(values[next++]);
      }
    }
    memory = stream.device().upload(absl::MakeConstSpan(host)).value();
    x = TensorRef<const T, 3>(reinterpret_cast<const T*>(memory.address()) + m.offset, m.extents,
                              m.strides);
  }
  size_t place(int64_t o, int64_t r, int64_t i) const {
    return static_cast<size_t>(offset + o * strides[0] + r * strides[1] + i * strides[2]);
  }

 private:
  std::vector<int64_t> strides;
  int64_t offset = 0;
};

template <class T, class R>
void check_results(const Modes& modes, Reduction reduction, const std::vector<float>& values) {
  SCOPED_TRACE(testing::Message() << modes << " reduction " << static_cast<int>(reduction));
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Input<T> in(stream, modes, values);
  const int64_t outer = modes.extents[0], rows = modes.extents[1], columns = modes.extents[2];
  // Results lie apart, too.
  const int64_t pitch = columns + 3;
  const R marker(-7);
  const std::vector<R> clean(static_cast<size_t>(outer * pitch + 1), marker);
  by_each_candidate([&] {
    const Buffer out = device.upload(absl::MakeConstSpan(clean)).value();
    const TensorRef<R, 2> y(reinterpret_cast<R*>(out.address()), {outer, columns}, {pitch, 1});
    ASSERT_THAT(kernels::reduce(stream, reduction, in.x, y), IsOk());
    const std::vector<R> results = out.download<R>(stream).value();
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < pitch; ++i) {
        const R result = results[o * pitch + i];
        if (i >= columns) {
          ASSERT_EQ(result, marker) << "behind row " << o;
          continue;
        }
        std::vector<double> all;
        for (int64_t r = 0; r < rows; ++r) all.push_back(wide(in.host[in.place(o, r, i)]));
        const kernels::Close expected = kernels::reduced_by_reference(reduction, all);
        if (std::isnan(expected.value)) {
          ASSERT_TRUE(std::isnan(static_cast<double>(result))) << o << ", " << i;
        } else if (std::isinf(expected.value) || expected.tolerance == 0) {
          ASSERT_EQ(static_cast<double>(result), expected.value) << o << ", " << i;
        } else {
          ASSERT_NEAR(result, expected.value, expected.tolerance) << o << ", " << i;
        }
      }
    }
  });
}

template <class T>
void check_all(const Modes& modes, const std::vector<Reduction>& reductions) {
  const int64_t count = modes.extents[0] * modes.extents[1] * modes.extents[2];
  std::mt19937 random(static_cast<unsigned>(count * 31 + modes.extents[1]));
  std::normal_distribution<float> normal(0.25f, 1);
  std::vector<float> values, factors;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(normal(random));
    factors.push_back(1 + normal(random) / 1024);  // so that products stay numbers
  }
  for (const Reduction reduction : reductions) {
    if (modes.extents[1] == 0 && is_extremum(reduction)) continue;
    if (is_place(reduction)) {
      check_results<T, int64_t>(modes, reduction, values);
    } else {
      check_results<T, float>(modes, reduction,
                              reduction == Reduction::kProduct ? factors : values);
    }
  }
}
template <class T>
void check_all(const Modes& modes) {
  check_all<T>(modes, {std::begin(kAll), std::end(kAll)});
}
const std::vector<Reduction> kEachKind = {Reduction::kSum, Reduction::kMax, Reduction::kVar,
                                          Reduction::kArgmax};

template <class T>
class Reduce : public testing::Test {};
using Types = testing::Types<float, half, bfloat16>;
TYPED_TEST_SUITE(Reduce, Types);

TYPED_TEST(Reduce, OfRowsThatLanesShare) {
  for (const Modes& modes :
       {Modes{{1, 1, 1}}, Modes{{300, 1, 1}}, Modes{{129, 3, 1}}, Modes{{3, 31, 1}},
        Modes{{65, 32, 1}}, Modes{{9, 127, 1}}, Modes{{2, 512, 1}}}) {
    check_all<TypeParam>(modes);
  }
}

// Of which a block may have as many as threads in shared memory, and the last one fewer.
TYPED_TEST(Reduce, OfOddRowsBehindEachOther) {
  for (const Modes& modes : {Modes{{300, 31, 1}}, Modes{{161, 9, 1}}, Modes{{256, 20, 1}}}) {
    check_all<TypeParam>(modes);
  }
  check_all<TypeParam>({{70, 129, 1}}, kEachKind);
  check_all<TypeParam>({{70, 31, 1}, {31, 1, 1}, 1}, kEachKind);
}

// Several rows of a thread, whose results lie one behind the other and are stored together.
TYPED_TEST(Reduce, OfShortRowsToOneRow) {
  for (const int64_t columns : {1, 2, 3, 7}) {
    for (const int64_t rows : {3, 64, 2061})
      check_all<TypeParam>({{1, columns, rows}, {rows * columns, 1, columns}}, kEachKind);
  }
}

TYPED_TEST(Reduce, OfRowsThatABlockHas) {
  for (const Modes& modes :
       {Modes{{2, 1000, 1}}, Modes{{3, 1023, 1}}, Modes{{1, 5001, 1}}, Modes{{1, 16384, 1}}}) {
    check_all<TypeParam>(modes, kEachKind);
  }
}

TYPED_TEST(Reduce, OfRowsThatSeveralBlocksShare) {
  check_all<TypeParam>({{1, 40000, 1}}, kEachKind);
  check_all<TypeParam>({{1, 600001, 1}}, kEachKind);
  check_all<TypeParam>({{3, 300000, 1}, {300008, 1, 1}, 5}, {Reduction::kSum, Reduction::kArgmin});
}

TYPED_TEST(Reduce, OfRowsAtAnyPlace) {
  for (const Modes& modes :
       {Modes{{4, 1000, 1}, {1001, 1, 1}}, Modes{{4, 1000, 1}, {1008, 1, 1}, 1},
        Modes{{4, 70, 1}, {100, 1, 1}, 3}, Modes{{5, 40, 1}, {160, 3, 1}}}) {
    check_all<TypeParam>(modes, kEachKind);
  }
}

TYPED_TEST(Reduce, OfColumns) {
  for (const Modes& modes :
       {Modes{{1, 5, 7}}, Modes{{1, 33, 64}}, Modes{{1, 100, 1000}}, Modes{{1, 9, 2056}},
        Modes{{1, 700, 3}}, Modes{{1, 257, 1023}}, Modes{{1, 1, 40}}}) {
    check_all<TypeParam>(modes);
  }
}

TYPED_TEST(Reduce, OfColumnsWhoseRowsAreSplit) {
  check_all<TypeParam>({{1, 20000, 8}}, kEachKind);
  check_all<TypeParam>({{1, 20005, 7}}, kEachKind);
  check_all<TypeParam>({{1, 1024, 33}}, kEachKind);
  check_all<TypeParam>({{1, 1023, 65}}, kEachKind);
  check_all<TypeParam>({{2, 9000, 6}}, kEachKind);
}

// So many columns that two blocks for each are all that the device has at once: they are a cluster, where there are such.
TYPED_TEST(Reduce, OfColumnsThatClustersHave) {
  const int64_t columns = 4296 * 4 / int64_t{sizeof(TypeParam)};
  check_all<TypeParam>({{1, 1031, columns}},
                       {Reduction::kSum, Reduction::kVar, Reduction::kArgmax});
}

TYPED_TEST(Reduce, OfTheMiddle) {
  for (const Modes& modes : {Modes{{3, 50, 40}}, Modes{{1, 50, 64}, {0, 67, 1}}, Modes{{7, 5, 33}},
                             Modes{{2, 64, 16}, {2000, 24, 1}, 8}, Modes{{3, 20, 30}, {600, 1, 20}},
                             Modes{{3, 20, 30}, {1, 90, 3}}, Modes{{3, 20, 30}, {7, 700, 50}},
                             Modes{{4, 20, 6}, {200, 1, 30}}}) {
    check_all<TypeParam>(modes, kEachKind);
  }
}

TYPED_TEST(Reduce, OfNothing) {
  check_all<TypeParam>({{5, 0, 1}});
  check_all<TypeParam>({{1, 0, 5}});
  check_all<TypeParam>({{0, 5, 3}});
  check_all<TypeParam>({{2, 5, 0}});
}

TEST(ReduceTest, ExtremeValues) {
  const std::vector<std::vector<float>> rows = {{kInfinity, 1, -kInfinity, 2},
                                                {-kInfinity, -kInfinity, -kInfinity, -kInfinity},
                                                {1, kNan, 3, kNan},
                                                {0.0f, -0.0f, 0.0f, -0.0f},
                                                {-0.0f, 0.0f, -0.0f, 0.0f},
                                                {1e-45f, 3e-45f, 1e-45f, 3e-45f},
                                                {7, 7, 7, 7},
                                                {-kNan, -1, -kInfinity, kInfinity},
                                                {3e38f, 3e38f, -3e38f, -3e38f},
                                                {kInfinity, kInfinity, kInfinity, kInfinity}};
  for (const auto& row : rows) {
    SCOPED_TRACE(testing::PrintToString(row));
    for (const Reduction r : {Reduction::kMax, Reduction::kMin}) {
      check_results<float, float>({{1, 4, 1}}, r, row);
      check_results<float, float>({{2, 4, 2}}, r, [&] {
        std::vector<float> each;
        for (int o = 0; o < 2; ++o) {
          for (const float v : row) each.insert(each.end(), 2, v);
        }
        return each;
      }());
    }
    for (const Reduction r : {Reduction::kArgmax, Reduction::kArgmin}) {
      check_results<float, int64_t>({{1, 4, 1}}, r, row);
    }
  }
  check_results<float, float>({{1, 4, 1}}, Reduction::kSum, {kInfinity, 1, -kInfinity, 2});
  check_results<float, float>({{1, 4, 1}}, Reduction::kSum, {1, kNan, 3, 4});
  check_results<float, float>({{1, 4, 1}}, Reduction::kNorm2, {kInfinity, 1, 2, 3});
  check_results<float, float>({{1, 4, 1}}, Reduction::kVar, {7, 7, 7, 7});
  check_results<float, float>({{1, 4, 1}}, Reduction::kVar, {1e4f, 1e4f + 1, 1e4f + 2, 1e4f + 3});
}

// The first of equal elements, wherever in a row and a thread they are.
TEST(ReduceTest, PlacesAreTheFirst) {
  for (const int64_t n : {5, 33, 1000, 40003}) {
    for (const int64_t first : {int64_t{0}, n / 3, n - 1}) {
      for (const float best : {2.0f, std::numeric_limits<float>::quiet_NaN()}) {
        std::vector<float> values(static_cast<size_t>(n), 1.0f);
        for (int64_t i = first; i < n; i += 2) values[i] = best;
        check_results<float, int64_t>({{1, n, 1}}, Reduction::kArgmax, values);
        check_results<float, int64_t>({{1, n, 1}, {n + 1, 1, 1}, 1}, Reduction::kArgmax, values);
        if (n < 2000) check_results<float, int64_t>({{n, 1, 1}}, Reduction::kArgmax, values);
      }
    }
  }
}

// Zeros of either sign are equal, also where different threads have them.
TEST(ReduceTest, PlacesOfZerosAreTheFirst) {
  for (const float first : {0.0f, -0.0f}) {
    std::vector<float> values(1000, first);
    for (size_t i = 500; i < values.size(); ++i) values[i] = -first;
    check_results<float, int64_t>({{1, 1000, 1}}, Reduction::kArgmax, values);
    check_results<float, int64_t>({{1, 1000, 1}}, Reduction::kArgmin, values);
  }
}

// Whole numbers add up exactly, so that no element is lost or counted twice.
TEST(ReduceTest, SumsOfWholeNumbersAreExact) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  for (const Modes& modes :
       {Modes{{1, 600001, 1}}, Modes{{1, 40001, 1}, {40001, 1, 1}, 3},
        Modes{{2, 300003, 1}, {300005, 1, 1}, 1}, Modes{{33, 1031, 1}}, Modes{{1001, 5, 1}},
        Modes{{1, 4099, 37}}, Modes{{1, 999, 260}}, Modes{{5, 1000, 12}}, Modes{{777, 31, 1}}}) {
    SCOPED_TRACE(testing::Message() << modes);
    const int64_t outer = modes.extents[0], rows = modes.extents[1], columns = modes.extents[2];
    std::mt19937 random(3);
    std::vector<float> values(static_cast<size_t>(outer * rows * columns));
    for (float& value : values) value = static_cast<float>(random() % 7) - 2;
    const Input<float> in(stream, modes, values);
    const Buffer out = device.allocate(outer * columns * sizeof(float)).value();
    ASSERT_THAT(
        kernels::reduce(stream, Reduction::kSum, in.x, as_tensor<float>(out, {outer, columns})),
        IsOk());
    const std::vector<float> sums = out.download<float>(stream).value();
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < columns; ++i) {
        float sum = 0;
        for (int64_t r = 0; r < rows; ++r) sum += values[(o * rows + r) * columns + i];
        ASSERT_EQ(sums[o * columns + i], sum) << o << ", " << i;
      }
    }
  }
}

// A matrix as a whole, dense and not: of rows that lanes, a block, a cluster or several blocks share, and of so many that
// their states are combined by two launches.
TEST(ReduceTest, OfAllOfAMatrix) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  struct Matrix {
    int64_t rows, columns, pitch;
  };
  for (const auto& [rows, columns, pitch] :
       {Matrix{50, 300, 300}, Matrix{50, 300, 301}, Matrix{2, 40000, 40004},
        Matrix{3, 20000, 20001}, Matrix{2, 300000, 300002}, Matrix{40000, 3, 4}}) {
    const std::vector<float> values = random_elements<float>(rows * pitch, 0, 1, 5);
    const Buffer in = device.upload(absl::MakeConstSpan(values)).value();
    const TensorRef<const float, 2> x(reinterpret_cast<const float*>(in.address()), {rows, columns},
                                      {pitch, 1});
    std::vector<double> all;
    for (int64_t i = 0; i < rows * pitch; ++i) {
      if (i % pitch < columns) all.push_back(values[i]);
    }
    for (const Reduction r : kAll) {
      if (r == Reduction::kProduct) continue;  // of so many it is 0
      const kernels::Close expected = kernels::reduced_by_reference(r, all);
      const Buffer out = device.allocate(is_place(r) ? sizeof(int64_t) : sizeof(float)).value();
      double result = 0;
      if (is_place(r)) {
        ASSERT_THAT(kernels::reduce(stream, r, Along::kAll, x, as_tensor<int64_t>(out, {1})),
                    IsOk());
        result = static_cast<double>(out.download<int64_t>(stream).value()[0]);
      } else {
        ASSERT_THAT(kernels::reduce(stream, r, Along::kAll, x, as_tensor<float>(out, {1})), IsOk());
        result = out.download<float>(stream).value()[0];
      }
      EXPECT_NEAR(result, expected.value, expected.tolerance)
          << static_cast<int>(r) << " pitch " << pitch;
    }
  }
}

TEST(ReduceTest, TheSameInputGivesTheSameBits) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const std::vector<float> values = random_elements<float>(600000, 0, 1, 9);
  const Buffer in = device.upload(absl::MakeConstSpan(values)).value();
  std::set<float> results;
  for (int i = 0; i < 3; ++i) {
    const Buffer out = device.allocate(sizeof(float)).value();
    ASSERT_THAT(
        kernels::reduce(stream, Reduction::kSum, Along::kAll,
                        as_tensor<const float>(in, {2, 300000}), as_tensor<float>(out, {1})),
        IsOk());
    results.insert(out.download<float>(stream).value()[0]);
  }
  EXPECT_EQ(results.size(), 1u);
}

// The states' memory, and the pool that it comes from, are made while the stream is captured.
// Results that are not aligned, or not beside each other, are stored one by one.
TEST(ReduceTest, ShortRowsToAnyPlace) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  constexpr int64_t kRows = 100;
  std::vector<float> x;
  for (int i = 0; i < 2 * kRows; ++i) x.push_back(static_cast<float>(i * i % 97));
  const Buffer in = device.upload(absl::MakeConstSpan(x)).value();
  for (const int64_t stride : {1, 2}) {
    for (const int64_t offset : {0, 1, 2}) {
      const Buffer out =
          device.upload(absl::MakeConstSpan(std::vector<float>(3 * kRows, -7))).value();
      const TensorRef<float, 1> y(reinterpret_cast<float*>(out.address()) + offset, {kRows},
                                  {stride});
      ASSERT_THAT(kernels::reduce(stream, Reduction::kSum, kernels::Along::kLast,
                                  as_tensor<const float>(in, {kRows, int64_t{2}}), y),
                  IsOk());
      const std::vector<float> results = out.download<float>(stream).value();
      for (int64_t i = 0; i < 3 * kRows; ++i) {
        const int64_t row = (i - offset) / stride;
        const bool is_result = i >= offset && (i - offset) % stride == 0 && row < kRows;
        ASSERT_EQ(results[i], is_result ? x[2 * row] + x[2 * row + 1] : -7) << i;
      }
    }
  }
}

TEST(ReduceTest, CanBeCapturedInAGraph) {
  HEDDLE_SKIP_WITHOUT_GPU();
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const int64_t n = int64_t{1} << 22;
  std::vector<float> values(static_cast<size_t>(n), 1.0f);
  Buffer in = device.upload(absl::MakeConstSpan(values)).value();
  const Buffer out = device.allocate(sizeof(float)).value();
  const auto sum = [&] {
    return kernels::reduce(stream, Reduction::kSum, Along::kAll, as_tensor<const float>(in, {1, n}),
                           as_tensor<float>(out, {1}));
  };
  ASSERT_THAT(sum(), IsOk());  // loads the kernels, which a capture does not allow
  ASSERT_THAT(stream.synchronize(), IsOk());
  const bench::Graph graph(stream, [&] { ASSERT_THAT(sum(), IsOk()); });
  for (const float each : {1.0f, 2.0f, 3.0f}) {
    std::fill(values.begin(), values.end(), each);
    ASSERT_THAT(in.copy_from_host(stream, values.data(), in.size_bytes()), IsOk());
    graph.launch();
    EXPECT_EQ(out.download<float>(stream).value()[0], each * static_cast<float>(n));
  }
}

TEST(ReduceTest, SaysWhatIsWrong) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer memory = device.allocate(4096).value();
  const auto x = as_tensor<const float>(memory, {2, 3, 4});
  const auto message = [&](Reduction r, const auto& from, const auto& y) {
    return std::string(kernels::reduce(stream, r, from, y).message());
  };
  EXPECT_EQ(message(Reduction::kSum, x, as_tensor<float>(memory, {2, 3})),
            "reduce: x is 2 × 3 × 4 and y 2 × 3; y has the first and the last extent of x");
  EXPECT_EQ(message(Reduction::kArgmax, x, as_tensor<float>(memory, {2, 4})),
            "reduce: places are integers; fix: y of int64_t");
  EXPECT_EQ(message(Reduction::kSum, x, as_tensor<int64_t>(memory, {2, 4})),
            "reduce: only places are integers; fix: y of float");
  EXPECT_EQ(message(Reduction::kMax, as_tensor<const float>(memory, {2, 0, 4}),
                    as_tensor<float>(memory, {2, 4})),
            "reduce: of no elements none is the largest or smallest");
  const Status matrix =
      kernels::reduce(stream, Reduction::kSum, Along::kFirst,
                      as_tensor<const float>(memory, {5, 6}), as_tensor<float>(memory, {5}));
  EXPECT_EQ(matrix.message(), "reduce: x is 5 × 6 and y has 5 elements; fix: 6");
}

// What is dealt out how on an H200.
TEST(ReduceTest, LongRowsAreSharedWhereMultiprocessorsWouldIdle) {
  const runtime::DeviceInfo h200{};
  const auto deal = [&](int64_t rows, int64_t columns) {
    return kernels::deal_rows(
        {.columns = columns, .element_bytes = 4, .aligned = true, .alike = true, .rows = rows},
        h200);
  };
  EXPECT_EQ(deal(1, 65536).blocks, 16);  // one launch
  EXPECT_FALSE(deal(1, 65536).apart);
  EXPECT_TRUE(deal(1, 1 << 28).apart);
  EXPECT_GE(deal(1, 1 << 28).blocks, 4096);
  EXPECT_TRUE(deal(4, 1 << 26).apart);
  EXPECT_EQ(deal(100000, 16384).blocks, 1);
  EXPECT_EQ(deal(1 << 20, 128).rows, 128 / deal(1 << 20, 128).threads);
}

}  // namespace
}  // namespace heddle
