// gemm against double precision: element types, odd shapes, K that ends inside of a block.
#include "heddle/kernels/gemm/gemm.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/kernels/gemm/fused.h"
#include "kernels/gemm_check.h"
#include "support/matchers.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

template <class T, class D>
void check_gemm(const GemmCase& c, double precision = kSums) {
  check_product<T, D>(
      c, precision,
      [](const Stream& stream, const auto& a, const auto& b, const auto& d) {
        return kernels::gemm(stream, a, b, d);
      },
      [](double sum, int64_t, int64_t, int64_t) { return sum; });
}

TEST(Gemm, MultipliesTilesAndWhatIsLeft) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  check_gemm<bfloat16, bfloat16>({256, 256, 64});
  check_gemm<half, half>({256, 256, 192});
  check_gemm<bfloat16, bfloat16>({100, 72, 40});
  check_gemm<bfloat16, bfloat16>({1, 1, 1});
  check_gemm<half, half>({300, 520, 136});
  check_gemm<half, half>({129, 257, 33});
  check_gemm<bfloat16, bfloat16>({150, 140, 72});
}

TEST(Gemm, OfEveryTranspose) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  for (const bool a : {true, false}) {
    for (const bool b : {true, false}) {
      check_gemm<bfloat16, bfloat16>({200, 264, 200, a, b});
      check_gemm<half, float>({70, 40, 129, a, b});
    }
  }
}

TEST(Gemm, OfEveryType) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  check_gemm<half, float>({130, 260, 72});
  check_gemm<bfloat16, float>({300, 100, 200});
  check_gemm<tfloat32, float>({130, 260, 68});
  check_gemm<tfloat32, float>({300, 520, 36});
  check_gemm<float8_e4m3, bfloat16>({130, 260, 144}, kFloat8Sums);
  check_gemm<float8_e4m3, half>({300, 520, 272}, kFloat8Sums);
  check_gemm<float8_e4m3, float>({70, 40, 48}, kFloat8Sums);
}

TEST(Gemm, OfBatches) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  check_gemm<bfloat16, bfloat16>({100, 72, 40, true, true, 3});
  check_gemm<half, float>({140, 72, 40, false, true, 2});
}

TEST(Gemm, RunsThroughTheStagesSeveralTimes) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  check_gemm<bfloat16, bfloat16>({130, 264, 64 * 8 + 8});
  check_gemm<bfloat16, bfloat16>({20, 40, 128 * 20});
}

TEST(Gemm, OfManyTilesForEachCluster) {
  if (!has_wgmma() || test_device().name() == "interp") GTEST_SKIP() << "for a GPU of sm_90a";
  check_gemm<bfloat16, bfloat16>({4096, 8192, 64});
  check_gemm<half, float>({2304, 4104, 200});
}

// Runs a problem in the configurations of a device with so few multiprocessors that each cluster has
// several tiles.
template <class Wants>
int check_configurations(const kernels::GemmProblem& problem, const Wants& wants) {
  runtime::DeviceInfo device = test_device().info();
  device.sm_count = 2;
  int count = 0;
  for (const kernels::GemmConfig& config : kernels::gemm_configs(problem, device)) {
    if (!wants(config)) continue;
    ++count;
    SCOPED_TRACE(config.to_string());
    check_product<half, half>(
        {problem.m, problem.n, problem.k}, kSums,
        [&](const Stream& stream, const auto& a, const auto& b, const auto& d) {
          return kernels::hopper_gemm<kernels::BatchTiles, kernels::PlainLoop, half, half,
                                      kernels::PlainSums>(config)
              .launch(stream, kernels::gemm_shape(config, problem, device),
                      kernels::detail::in_batches(a), kernels::detail::in_batches(b),
                      kernels::detail::in_batches(d));
        },
        [](double sum, int64_t, int64_t, int64_t) { return sum; });
  }
  return count;
}

TEST(Gemm, OfEveryConfiguration) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  const int count =
      check_configurations({.m = 136, .n = 264, .k = 200}, [](const kernels::GemmConfig& config) {
        // Bands are the order of tiles alone; gemm_schedules_test.cc has the others.
        return config.split == 1 && !config.stream_k && !config.ping_pong &&
               (config.band == 8 || config.n == 256);
      });
  EXPECT_GE(count, 40);
}

// Blocks of a cluster that share the depth of a tile, 17 blocks and a bit, which is not even.
TEST(Gemm, OfSharedDepths) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  const int count =
      check_configurations({.m = 140, .n = 136, .k = 17 * 64 + 8},
                           [](const kernels::GemmConfig& config) { return config.split > 1; });
  EXPECT_GE(count, 10);
}

// Rows of d as long as boxes take them, but at an address that they do not.
TEST(Gemm, StoresToAnyAddress) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  constexpr int64_t kRows = 70, kColumns = 64, kDepth = 64;
  const Matrices<half> a(1, kRows, kDepth, true, 1), b(1, kColumns, kDepth, true, 2);
  const Matrices<half> d(1, kRows, kColumns + 8, true, 3);
  const Stream stream = test_device().create_stream().value();
  const TensorRef<half, 3> behind_one(d.ref().data + 1, {1, kRows, kColumns}, {d.batch, d.row, 1});
  ASSERT_THAT(kernels::gemm(stream, TensorRef<const half, 3>(a.ref()),
                            TensorRef<const half, 3>(b.ref()), behind_one),
              IsOk());
  const std::vector<half> got = d.memory.download<half>(stream).value();
  for (int64_t row = 0; row < kRows; ++row) {
    EXPECT_EQ(number(got[static_cast<size_t>(row * d.row)]), d.at(0, row, 0));
    for (int64_t column = 0; column < kColumns; ++column) {
      double sum = 0, magnitude = 0;
      for (int64_t k = 0; k < kDepth; ++k) {
        sum += a.at(0, row, k) * b.at(0, column, k);
        magnitude += std::abs(a.at(0, row, k) * b.at(0, column, k));
      }
      ASSERT_NEAR(number(got[static_cast<size_t>(row * d.row + column + 1)]), sum,
                  unit<half>() * std::abs(sum) + magnitude * kSums)
          << row << " " << column;
    }
  }
}

TEST(Gemm, ScalesAndAdds) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  const GemmCase shape{150, 136, 72};
  const Matrices<half> c(1, shape.m, shape.n, true, 5);
  for (const kernels::GemmScale scale : {kernels::GemmScale{2, 0}, kernels::GemmScale{-0.5, 3}}) {
    check_product<half, half>(
        shape, 2 * kSums,
        [&](const Stream& stream, const auto& a, const auto& b, const auto& d) {
          return kernels::gemm(stream, matrix(a), matrix(b), matrix(d), scale,
                               TensorRef<const half, 2>(matrix(c.ref())));
        },
        [&](double sum, int64_t, int64_t row, int64_t column) {
          return scale.alpha * sum + scale.beta * c.at(0, row, column);
        });
  }
}

TEST(Gemm, PassesResultsThroughEpilogues) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  const GemmCase shape{150, 140, 72};
  const Matrices<float> bias(1, 1, shape.n, true, 5), scale(1, 1, shape.m, true, 6);
  const Matrices<bfloat16> residual(1, shape.m, shape.n, true, 7);
  const Matrices<float> kept(1, shape.m, shape.n, true, 8);
  const auto epilogue = [](const kernels::GemmPart& part, const Fragment<float>& sums,
                           Tensor<const float, 1> b, Tensor<const float, 1> s,
                           Tensor<const bfloat16, 2> r, Tensor<float, 2> aux) {
    const Fragment<float> linear = sums * part.by_row(s) + part.by_column(b);
    part.store(aux, linear);
    return max(linear, 0.0f) + part.of(r);
  };
  const Device& device = test_device();
  Buffer last;  // a copy of the result
  const auto vector = [](const Matrices<float>& x) {
    return TensorRef<const float, 1>(x.ref().data, {x.columns});
  };
  const auto linear = [&](double sum, int64_t row, int64_t column) {
    return sum * scale.at(0, 0, row) + bias.at(0, 0, column);
  };
  check_product<half, bfloat16>(
      shape, 2 * kSums,
      [&](const Stream& stream, const auto& a, const auto& b, const auto& d) {
        const Status launched = kernels::gemm_with(
            stream, epilogue, a, b, d, vector(bias), vector(scale),
            TensorRef<const bfloat16, 2>(residual.ref().data, {shape.m, shape.n},
                                         {residual.row, 1}),
            TensorRef<float, 2>(kept.ref().data, {shape.m, shape.n}, {kept.row, 1}));
        last =
            device.allocate(static_cast<size_t>(shape.m * d.strides[1]) * sizeof(bfloat16)).value();
        const Status copied = stream.copy_on_device(
            last.address(), reinterpret_cast<uint64_t>(d.data), last.size_bytes());
        return launched.ok() ? copied : launched;
      },
      [&](double sum, int64_t, int64_t row, int64_t column) {
        return std::max(linear(sum, row, column), 0.0) + residual.at(0, row, column);
      });
  // What the epilogue stored besides is what the result was made of.
  const Stream stream = test_device().create_stream().value();
  const std::vector<float> aux = kept.memory.download<float>(stream).value();
  const std::vector<bfloat16> result = last.download<bfloat16>(stream).value();
  for (int64_t row = 0; row < shape.m; ++row) {
    for (int64_t column = 0; column < shape.n; ++column) {
      const double wanted = std::max(aux[static_cast<size_t>(row * kept.row + column)], 0.0f) +
                            residual.at(0, row, column);
      ASSERT_NEAR(number(result[static_cast<size_t>(row * residual.row + column)]), wanted,
                  std::abs(wanted) * 0x1p-8)
          << row << " " << column;
    }
  }
}

struct Shifted {
  int by;
  friend bool operator==(const Shifted&, const Shifted&) = default;
  Fragment<float> operator()(const kernels::GemmPart&, const Fragment<float>& sums) const {
    return sums + static_cast<float>(by);
  }
};

TEST(Gemm, HasAKernelForEachValueOfAnEpilogue) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  for (const int by : {3, -7, 3}) {
    check_product<half, half>(
        {64, 40, 24}, kSums,
        [&](const Stream& stream, const auto& a, const auto& b, const auto& d) {
          return kernels::gemm_with(stream, Shifted{by}, a, b, d);
        },
        [&](double sum, int64_t, int64_t, int64_t) { return sum + by; });
  }
}

TEST(Gemm, ComputesTheSameBitsEachTime) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  const Matrices<half> a(1, 200, 520, true, 1), b(1, 300, 520, true, 2), d(1, 200, 300, true, 3);
  const Stream stream = test_device().create_stream().value();
  std::vector<uint16_t> first;
  for (int i = 0; i < 3; ++i) {
    ASSERT_THAT(kernels::gemm(stream, TensorRef<const half, 3>(a.ref()),
                              TensorRef<const half, 3>(b.ref()), d.ref()),
                IsOk());
    const std::vector<uint16_t> bits = d.memory.download<uint16_t>(stream).value();
    if (i > 0) {
      EXPECT_EQ(bits, first);
    }
    first = bits;
  }
}

// And the interpreter has nothing to say against it.
TEST(Gemm, ComputesTheSameWheneverItsCopiesComplete) {
  const Device device = Device::open_private_interp(Device::open("interp").value().info());
  const Stream stream = device.create_stream().value();
  constexpr int64_t kRows = 300, kColumns = 264, kDepth = 64 * 7 + 8;
  std::vector<half> a, b;
  for (int64_t i = 0; i < kRows * kDepth; ++i) a.emplace_back(static_cast<float>(i % 13) - 6);
  for (int64_t i = 0; i < kColumns * kDepth; ++i) b.emplace_back(static_cast<float>(i % 11) - 5);
  const Buffer a_memory = device.upload<half>(a).value();
  const Buffer b_memory = device.upload<half>(b).value();
  const Buffer d_memory = device.allocate(kRows * kColumns * sizeof(half)).value();
  std::vector<uint16_t> first;
  for (const char* const when : {"early", "late", "seed:1", "seed:2", "seed:3"}) {
    SCOPED_TRACE(when);
    ASSERT_THAT(device.set_completion(when), IsOk());
    ASSERT_THAT(kernels::gemm(stream, as_tensor<const half>(a_memory, {kRows, kDepth}),
                              as_tensor<const half>(b_memory, {kColumns, kDepth}),
                              as_tensor<half>(d_memory, {kRows, kColumns})),
                IsOk());
    const std::vector<uint16_t> d = d_memory.download<uint16_t>(stream).value();
    if (first.empty()) first = d;
    EXPECT_EQ(d, first);
  }
}

TEST(Gemm, SaysWhatDoesNotFit) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer memory = device.upload<half>(std::vector<half>(4096, half(1.0f))).value();
  const auto refusal = [&](int64_t m, int64_t n, int64_t k, int64_t n_of_d) {
    return std::string(kernels::gemm(stream, as_tensor<const half>(memory, {m, k}),
                                     as_tensor<const half>(memory, {n, k}),
                                     as_tensor<half>(memory, {m, n_of_d}))
                           .message());
  };
  EXPECT_THAT(refusal(8, 16, 8, 8),
              HasSubstr("gemm: a is 8 x 8, b 16 x 8 and d 8 x 8; a takes m x k, "
                        "b n x k and d m x n, with k above 0"));
  EXPECT_THAT(refusal(8, 8, 9, 8),
              HasSubstr("gemm: a has lines 18 bytes apart, and the copy engine takes "
                        "multiples of 16; fix: pad them with elements"));
  const auto transposed = [&](const TensorRef<half, 2>& x) {
    return TensorRef<half, 2>(x.data, {x.extents[0], x.extents[1]}, {1, x.extents[0]});
  };
  EXPECT_THAT(
      std::string(kernels::gemm(stream, as_tensor<const half>(memory, {8, 8}),
                                as_tensor<const half>(memory, {16, 8}),
                                transposed(as_tensor<half>(memory, {8, 16})))
                      .message()),
      HasSubstr("gemm: d has strides 1 and 8, and its rows have to be contiguous; fix: give it "
                "contiguous memory"));
  EXPECT_EQ(refusal(0, 8, 8, 8), "");
  EXPECT_THAT(std::string(kernels::gemm(stream, as_tensor<const half>(memory, {8, 8}),
                                        as_tensor<const half>(memory, {16, 8}),
                                        as_tensor<half>(memory, {8, 16}), {.alpha = 1, .beta = 1},
                                        as_tensor<const half>(memory, {8, 8}))
                              .message()),
              HasSubstr("gemm: c is 8 x 8 and d 8 x 16; both are m x n"));
  EXPECT_THAT(std::string(kernels::gemm(stream, as_tensor<const half>(memory, {8, 16}),
                                        as_tensor<const half>(memory, {16, 24}),
                                        as_tensor<half>(memory, {8, 24}))
                              .message()),
              HasSubstr("with k above 0: b looks transposed, swap its extents and its strides"));
}

// d may be no part of a or b, but lie beside them in the same rows of memory.
TEST(Gemm, RefusesResultsInTheMemoryOfAnOperand) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer memory = device.upload<half>(std::vector<half>(8 * 32, half(1.0f))).value();
  const Buffer other = device.upload<half>(std::vector<half>(8 * 32, half(1.0f))).value();
  half* const first = as_tensor<half>(memory, {8, 24}).data;
  const auto columns = [&](int64_t from) {
    return TensorRef<half, 2>(first + from, {8, 8}, {24, 1});
  };
  const TensorRef<const half, 2> apart = as_tensor<const half>(other, {8, 8});
  const auto said = [&](const TensorRef<half, 2>& a, const TensorRef<half, 2>& d) {
    return std::string(kernels::gemm(stream, TensorRef<const half, 2>(a), apart, d).message());
  };
  EXPECT_EQ(said(columns(0), columns(8)), "");
  EXPECT_EQ(said(columns(16), columns(8)), "");
  // A row that lies in what is left of another's.
  const TensorRef<const half, 2> one(as_tensor<half>(other, {1, 8}).data, {1, 8}, {8, 1});
  EXPECT_THAT(kernels::gemm(stream, one, TensorRef<const half, 2>(columns(0)),
                            TensorRef<half, 2>(first + 24 + 8, {1, 8}, {8, 1})),
              IsOk());
  EXPECT_THAT(said(columns(0), columns(0)),
              HasSubstr("gemm: d shares memory with a, which is read"));
  EXPECT_THAT(said(columns(8), columns(4)), HasSubstr("gemm: d shares memory with a"));
  EXPECT_THAT(said(columns(8), columns(12)), HasSubstr("gemm: d shares memory with a"));
  EXPECT_THAT(
      std::string(
          kernels::gemm(stream, apart, TensorRef<const half, 2>(columns(8)), columns(8)).message()),
      HasSubstr("gemm: d shares memory with b"));
}

TEST(Gemm, TakesARowMajorMatrixAsTheTransposedOne) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  // a picks rows of b, which is k x n, row-major.
  std::vector<half> a(16 * 16, half(0.0f)), b(16 * 8);
  for (size_t i = 0; i < 16; ++i) a[i * 16 + (15 - i)] = half(1.0f);
  for (size_t i = 0; i < b.size(); ++i) b[i] = half(static_cast<float>(i));
  const Buffer as = device.upload<half>(a).value(), bs = device.upload<half>(b).value();
  const Buffer ds = device.allocate(16 * 8 * sizeof(float)).value();
  ASSERT_THAT(
      kernels::gemm(stream, as_tensor<const half>(as, {16, 16}),
                    as_tensor<const half>(bs, {8, 16}, {1, 8}), as_tensor<float>(ds, {16, 8})),
      IsOk());
  const std::vector<float> d = ds.download<float>(stream).value();
  for (size_t i = 0; i < d.size(); ++i) {
    ASSERT_EQ(d[i], static_cast<float>((15 - i / 8) * 8 + i % 8)) << i;
  }
}

}  // namespace
}  // namespace heddle
