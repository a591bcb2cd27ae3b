// The ladder of products against double precision: each rung on one tile and on several, with copies
// and products completed at different times, and what it refuses.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/kernels/learn/product/ladder.h"
#include "heddle/runtime/interp_backend.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle::learn {
namespace {

// What the extents of a rung's products are multiples of, and the first architecture that has it.
struct Rung {
  const char* name;
  int m, n, k;
  int major;
};
constexpr Rung kRungs[] = {
    {"naive", 16, 16, 1, 0},       {"shared", 32, 32, 32, 0},     {"registers", 128, 128, 16, 0},
    {"mma", 128, 128, 32, 8},      {"cp_async", 128, 128, 32, 8}, {"wgmma", 128, 128, 64, 9},
    {"pipeline", 128, 128, 64, 9}, {"roles", 128, 256, 64, 9},    {"persistent", 128, 256, 64, 9},
    {"cluster", 256, 256, 128, 9},
};

const ProductRung& rung_of(const Rung& rung) {
  for (const ProductRung& one : product_ladder()) {
    if (std::string(one.name) == rung.name) return one;
  }
  ADD_FAILURE() << "there is no rung " << rung.name;
  return product_ladder().front();
}

// The interpreter has fewer multiprocessors than there are tiles, so that persistent blocks have several.
const Device& device() {
  static const Device& chosen = *new Device([] {
    if (on_gpu()) return test_device();
    DeviceInfo info = runtime::InterpBackend::default_info();
    info.sm_count = 2;
    return Device::open_private_interp(info);
  }());
  return chosen;
}

bool runs_here(const Rung& rung) {
  const int major = device().info().compute_major;
  return !on_gpu() || (rung.major == 9 ? major == 9 : major >= rung.major);
}

std::vector<bfloat16> random_numbers(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<bfloat16> values;
  for (int64_t i = 0; i < count; ++i) values.emplace_back(uniform(random));
  return values;
}

void check_product(const Rung& rung, int64_t m, int64_t n, int64_t k) {
  SCOPED_TRACE(testing::Message() << rung.name << " of " << m << " x " << n << " x " << k);
  const std::vector<bfloat16> a = random_numbers(m * k, 1), b = random_numbers(n * k, 2);
  const Stream stream = device().create_stream().value();
  const Buffer a_memory = device().upload<bfloat16>(a).value();
  const Buffer b_memory = device().upload<bfloat16>(b).value();
  std::vector<double> sums, magnitudes;
  for (int64_t i = 0; i < m * n; ++i) {
    double sum = 0, magnitude = 0;
    for (int64_t j = 0; j < k; ++j) {
      const double product =
          double{a[i / n * k + j].to_float()} * double{b[i % n * k + j].to_float()};
      sum += product;
      magnitude += std::abs(product);
    }
    sums.push_back(sum);
    magnitudes.push_back(magnitude);
  }
  for (const char* const when : {"early", "late", "seed:1", "seed:2"}) {
    if (on_gpu() && std::string(when) != "early") continue;
    SCOPED_TRACE(when);
    ASSERT_THAT(device().set_completion(when), IsOk());
    // A row more, which stays as it is.
    const Buffer d_memory = device()
                                .upload<bfloat16>(std::vector<bfloat16>(
                                    static_cast<size_t>((m + 1) * n), bfloat16(77.0f)))
                                .value();
    ASSERT_THAT(rung_of(rung).launch(stream, as_tensor<const bfloat16>(a_memory, {m, k}),
                                     as_tensor<const bfloat16>(b_memory, {n, k}),
                                     as_tensor<bfloat16>(d_memory, {m, n})),
                IsOk());
    const std::vector<bfloat16> d = d_memory.download<bfloat16>(stream).value();
    for (int64_t i = 0; i < m * n; ++i) {
      // The tensor cores add with fewer bits than f32 has.
      ASSERT_NEAR(d[i].to_float(), sums[i],
                  0x1p-8 * std::abs(sums[i]) + 0x1p-20 * magnitudes[i] + 1e-30)
          << i / n << " " << i % n;
    }
    for (int64_t i = m * n; i < (m + 1) * n; ++i) ASSERT_EQ(d[i].to_float(), 77.0f);
  }
}

class ProductLadder : public testing::TestWithParam<Rung> {};

TEST_P(ProductLadder, MultipliesOneTile) {
  const Rung& rung = GetParam();
  if (!runs_here(rung)) GTEST_SKIP() << "another architecture's";
  check_product(rung, rung.m, rung.n, rung.k);
}

// Through all stages more than once, and on the interpreter several tiles by each block.
TEST_P(ProductLadder, MultipliesSeveralTiles) {
  const Rung& rung = GetParam();
  if (!runs_here(rung)) GTEST_SKIP() << "another architecture's";
  check_product(rung, 2 * rung.m, 3 * rung.n, rung.k == 128 ? 3 * rung.k : 7 * rung.k);
}

TEST_P(ProductLadder, RefusesWhatIsNoMultipleOfItsTile) {
  const Rung& rung = GetParam();
  if (!runs_here(rung)) GTEST_SKIP() << "another architecture's";
  const Stream stream = device().create_stream().value();
  const Buffer memory =
      device().upload<bfloat16>(std::vector<bfloat16>(1 << 18, bfloat16(1.0f))).value();
  const auto launch = [&](int64_t m, int64_t n, int64_t k, int64_t k_of_b, int64_t m_of_d,
                          int64_t n_of_d) {
    return rung_of(rung).launch(stream, as_tensor<const bfloat16>(memory, {m, k}),
                                as_tensor<const bfloat16>(memory, {n, k_of_b}),
                                as_tensor<bfloat16>(memory, {m_of_d, n_of_d}));
  };
  const auto refuses = [&](const Status& status, const char* extent, int multiple) {
    EXPECT_THAT(status, Fails(StatusCode::kInvalidArgument,
                              absl::StrCat("it requires (", extent, " % ", multiple, ") == 0, but ",
                                           extent, " % ", multiple, " is 8 (")));
  };
  const auto [name, m, n, k, major] = rung;
  refuses(launch(m + 8, n, k, k, m + 8, n), "d.shape(0)", m);
  refuses(launch(m, n + 8, k, k, m, n + 8), "d.shape(1)", n);
  if (k > 1) refuses(launch(m, n, k + 8, k + 8, m, n), "a.shape(1)", k);
  const auto unlike = [](const char* relation) {
    return Fails(StatusCode::kInvalidArgument, absl::StrCat("it requires ", relation));
  };
  EXPECT_THAT(launch(m, n, k, 2 * k, m, n), unlike("a.shape(1) == b.shape(1)"));
  EXPECT_THAT(launch(m, n, k, k, 2 * m, n), unlike("a.shape(0) == d.shape(0)"));
  EXPECT_THAT(launch(m, n, k, k, m, 2 * n), unlike("b.shape(0) == d.shape(1)"));
}

INSTANTIATE_TEST_SUITE_P(Rungs, ProductLadder, testing::ValuesIn(kRungs),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(ProductLadder, HasTheseRungsInThisOrder) {
  std::vector<std::string> names, tested;
  for (const ProductRung& rung : product_ladder()) names.emplace_back(rung.name);
  for (const Rung& rung : kRungs) tested.emplace_back(rung.name);
  EXPECT_EQ(names, tested);
}

}  // namespace
}  // namespace heddle::learn
