// Every deal of rows that `heddle tune` may measure computes what the model's does.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/kernels/norm/norm.h"
#include "heddle/kernels/norm/quantized.h"
#include "heddle/kernels/rows/deal.h"
#include "heddle/kernels/softmax/softmax.h"
#include "heddle/runtime/tuning/tuning_scope.h"
#include "kernels/matrix_rows.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using kernels::RowDeal;
using kernels::RowsProblem;
using ::testing::Contains;

// Rows that begin `offset` elements into memory, `pitch` apart.
struct At {
  int64_t rows, columns, offset = 0, pitch = 0;
};

// What a call stores, by each candidate of the one problem that it asks for: the model's first.
template <class T, class Call>
std::vector<std::vector<T>> by_each_candidate(const At& at, const std::vector<T>& x, Call call) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const int64_t pitch = at.pitch == 0 ? at.columns : at.pitch;
  const Buffer from = device.upload(absl::MakeConstSpan(x)).value();
  const TensorRef<const T, 2> in(reinterpret_cast<const T*>(from.address()) + at.offset,
                                 {at.rows, at.columns}, {pitch, 1});
  std::vector<std::vector<T>> all;
  const auto run = [&] {
    const Buffer to = device.upload(absl::MakeConstSpan(x)).value();
    const TensorRef<T, 2> out(reinterpret_cast<T*>(to.address()) + at.offset, {at.rows, at.columns},
                              {pitch, 1});
    EXPECT_THAT(call(stream, in, out), IsOk());
    all.push_back(to.template download<T>(stream).value());
  };
  runtime::TuningScope scope;
  run();
  EXPECT_EQ(scope.asked().size(), 1u);
  const runtime::TuningProblem problem = scope.asked()[0];
  EXPECT_THAT(problem.candidates, Contains(problem.model));
  EXPECT_GT(problem.candidates.size(), 1u) << problem.problem;
  const std::set<std::string> names(problem.candidates.begin(), problem.candidates.end());
  EXPECT_EQ(names.size(), problem.candidates.size());
  // Sanitizers run some of them.
  const size_t step = HEDDLE_SANITIZED ? 4 : 1;
  for (size_t i = 0; i < problem.candidates.size(); i += step) {
    const std::string& candidate = problem.candidates[i];
    SCOPED_TRACE(problem.operation + " " + problem.problem + ": " + candidate);
    scope.use(problem, candidate);
    run();
  }
  return all;
}

template <class T>
void check(const At& at) {
  const int64_t pitch = at.pitch == 0 ? at.columns : at.pitch,
                count = at.offset + at.rows * pitch + 8;
  const auto x = random_elements<T>(count, 0.25f, 1, 1);
  const auto w = random_elements<T>(at.columns, 1, 0.5f, 2);
  const Buffer weight = test_device().upload(absl::MakeConstSpan(w)).value();
  const auto of = as_tensor<const T>(weight, {at.columns});
  const auto compare = [&](const std::vector<std::vector<T>>& all, double scale) {
    for (size_t i = 1; i < all.size(); ++i) {
      for (size_t e = 0; e < x.size(); ++e) {
        const double model = static_cast<float>(all[0][e]);
        // Orders of sums differ, and so may the last rounding.
        ASSERT_NEAR(static_cast<float>(all[i][e]), model,
                    scale * 1e-6 + std::abs(model) * (1e-5 + 2 * kStep<T>))
            << "candidate " << i << ", element " << e;
      }
    }
  };
  compare(by_each_candidate<T>(at, x,
                               [&](const Stream& stream, const auto& in, const auto& out) {
                                 return kernels::layer_norm<T>(stream, in, of, of, out, 1e-5f);
                               }),
          1);
  compare(by_each_candidate<T>(at, x,
                               [](const Stream& stream, const auto& in, const auto& out) {
                                 return kernels::softmax<T>(stream, in, out);
                               }),
          1.0 / static_cast<double>(at.columns));
}

TEST(RowDeals, ComputeTheSame) {
  check<float>({3, 5});
  check<float>({70, 100});
  check<float>({5, 129, 1, 131});
  check<float>({3, 1000});
  check<float>({2, 4096});
  check<float>({2, 20001, 3, 20004});
  check<bfloat16>({9, 64});
  check<bfloat16>({3, 1023});
  check<bfloat16>({2, 8192});
  check<bfloat16>({1, 50000});
}

// The sum is the residual's memory, whatever the deal: rows that are read again are stored at the last reading.
TEST(RowDeals, MayStoreWhereTheyRead) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  for (const int64_t columns : {130, 5000}) {
    constexpr int64_t kRows = 3;
    const auto x = random_elements<bfloat16>(kRows * columns, 0.25f, 1, 1),
               more = random_elements<bfloat16>(kRows * columns, 0, 1, 2),
               w = random_elements<bfloat16>(columns, 1, 0.5f, 3);
    const Buffer in = device.upload(absl::MakeConstSpan(x)).value(),
                 weight = device.upload(absl::MakeConstSpan(w)).value();
    struct Results {
      std::vector<float8_e4m3> y;
      std::vector<bfloat16> sum;
    };
    const auto run = [&] {
      const Buffer residual = device.upload(absl::MakeConstSpan(more)).value(),
                   y = device.allocate(static_cast<size_t>(kRows * columns)).value(),
                   scales = device.allocate(kRows * 4).value();
      EXPECT_THAT(
          kernels::add_rms_norm_quantized<bfloat16>(
              stream, as_tensor<const bfloat16>(in, {kRows, columns}),
              as_tensor<const bfloat16>(residual, {kRows, columns}),
              as_tensor<const bfloat16>(weight, {columns}),
              as_tensor<float8_e4m3>(y, {kRows, columns}), as_tensor<float>(scales, {kRows}),
              as_tensor<bfloat16>(residual, {kRows, columns}), 1e-6f),
          IsOk());
      return Results{y.download<float8_e4m3>(stream).value(),
                     residual.download<bfloat16>(stream).value()};
    };
    runtime::TuningScope scope;
    const Results model = run();
    ASSERT_EQ(scope.asked().size(), 1u);
    const runtime::TuningProblem problem = scope.asked()[0];
    for (const std::string& candidate : problem.candidates) {
      SCOPED_TRACE(problem.problem + ": " + candidate);
      scope.use(problem, candidate);
      const Results results = run();
      for (size_t i = 0; i < model.y.size(); ++i) {
        ASSERT_EQ(static_cast<float>(results.sum[i]), static_cast<float>(model.sum[i])) << i;
        // Neighbours, where scales differ in their last bits.
        const float expected = static_cast<float>(model.y[i]);
        ASSERT_NEAR(static_cast<float>(results.y[i]), expected, std::abs(expected) / 8 + 0x1p-9f)
            << i;
      }
    }
  }
}

// The model's is among them; none is more than a block or a cluster has, and rows that are not held are read in parts.
TEST(RowDeals, AreOnesThatRun) {
  const DeviceInfo& device = test_device().info();
  for (const int64_t columns : {1, 31, 1000, 8192, 65536, 1000000}) {
    for (const int bytes : {2, 4}) {
      for (const int inputs : {1, 2}) {
        for (const bool aligned : {false, true}) {
          const RowsProblem problem{{.columns = columns,
                                     .element_bytes = bytes,
                                     .aligned = aligned,
                                     .alike = true,
                                     .inputs = inputs},
                                    64};
          const std::vector<RowDeal> deals = row_deals(problem, device);
          EXPECT_THAT(deals, Contains(deal_rows(problem.of, device))) << problem.to_string();
          for (const RowDeal& deal : deals) {
            const int64_t vectors = (columns + deal.width - 1) / deal.width,
                          held = int64_t{deal.blocks} * deal.threads * deal.vectors *
                                 std::max(deal.kept, 1);
            EXPECT_EQ(deal.in_parts, held < vectors) << deal.to_string();
            EXPECT_LE(deal.blocks, 16);
            if (deal.peeled) {
              EXPECT_GE(deal.threads, 2 * deal.width) << deal.to_string();
            }
            EXPECT_LE(deal.threads * deal.rows, 1024) << deal.to_string();
            EXPECT_LE(deal.kept > 0 ? shared_bytes(deal, inputs) : 0,
                      device.limits.max_shared_per_block);
            EXPECT_TRUE(deal.threads % 32 == 0 || 32 % deal.threads == 0) << deal.to_string();
          }
        }
      }
    }
  }
  // Rows that are read once have one.
  EXPECT_EQ(
      kernels::row_deals(
          {{.columns = 100, .element_bytes = 4, .aligned = true, .alike = true, .rows = 7}, 7},
          device)
          .size(),
      1u);
  EXPECT_EQ(
      (RowsProblem{
          {.columns = 100, .element_bytes = 2, .aligned = false, .alike = true, .inputs = 2}, 7}
           .to_string()),
      "7x100 of 2 bytes, 2 inputs, unaligned alike");
}

}  // namespace
}  // namespace heddle
