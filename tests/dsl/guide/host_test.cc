// The host's side of dsl/LANGUAGE.md, run on the test device.
#include <cstdio>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/codegen/toolchain/tool_path.h"
#include "heddle/dsl/cuda/timeline.h"
#include "heddle/heddle.h"
#include "heddle/runtime/timeline.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

const auto row_sum =
    define_kernel("row_sum(x, y)", [](Tensor<const float, 2> x, Tensor<float, 1> y) {
      Int row = block_idx.x;
      Float sum = For(range(thread_idx.x, x.shape(1), block_dim.x), Float(0),
                      [&](Int col, Float acc) { return acc + x(row, col); });
      Float total = block_reduce(sum, plus());
      If(thread_idx.x == 0, [&] { y(row) = total; });
    });

TEST(Guide, Contracts) {
  const auto kernel =
      define_kernel("product(a, b, x)",
                    [](Tensor<const float, 2> a, Tensor<const float, 2> b, Tensor<float, 1> x) {
                      // <page>
                      require(a.shape(1) == b.shape(0));
                      require_block(256);
                      min_blocks_per_sm(2);
                      launch_grid(ceil_div(x.shape(0), threads_per_block()));
                      // </page>
                      Int i = block_idx.x * block_dim.x + thread_idx.x;
                      If(i < x.shape(0), [&] { x(i) = a(0, 0) * b(0, 0); });
                    });
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer a = device.upload<float>({2}).value(), b = device.upload<float>({3, 4}).value();
  const Buffer x = device.allocate(300 * sizeof(float)).value();
  const auto launch = [&](int columns, int rows) {
    return kernel.launch(stream, {.block = 256}, as_tensor<const float>(a, {1, columns}),
                         as_tensor<const float>(b, {rows, 1}), as_tensor<float>(x, {300}));
  };
  EXPECT_THAT(launch(1, 1), IsOk());
  EXPECT_THAT(launch(1, 2),
              Fails(StatusCode::kInvalidArgument, "a.shape(1) is 1 and b.shape(0) is 2"));
  EXPECT_THAT(x.download<float>(stream).value(), testing::Each(6.0f));
}

// <page>
const auto product =
    define_kernel("product(a[m, k], b[k, 64], c[m, 64])",
                  [](Tensor<const float, 2> a, Tensor<const float, 2> b, Tensor<float, 2> c) {
                    const Int m = block_idx.x, n = thread_idx.x;
                    c(m, n) = For(range(a.shape(1)), Float(0),
                                  [&](Int k, Float sum) { return sum + a(m, k) * b(k, n); });
                  });
// </page>

TEST(Guide, NamedExtents) {
  // <page>
  auto compiled = product.compile(
      Signature{tensor({sym("m"), 32}), tensor({32, kAny}), tensor({sym("m"), kAny})});
  // </page>
  ASSERT_THAT(compiled, IsOk());
  const Stream stream = test_device().create_stream().value();
  const std::vector<float> ones(64 * 64, 1.0f);
  const auto x = DeviceArray<float, 2>::upload(test_device(), {64, 64}, ones).value();
  auto c = DeviceArray<float, 2>::allocate(test_device(), {64, 64}).value();
  ASSERT_THAT(product.launch(stream, {.grid = 64, .block = 64}, x, x, c), IsOk());
  EXPECT_THAT(c.download(stream).value(), testing::Each(64.0f));
  EXPECT_THAT(product.launch(stream, {.grid = 64, .block = 64}, x, x,
                             as_tensor<float>(c.buffer(), {32, 64})),
              Fails(StatusCode::kInvalidArgument, "its extent m is 64 in a.shape(0) and 32 in"));
}

// <page>
const auto scale = kernel_family("scale(x)", [](float factor, Tensor<float, 1> x) {
  Int i = block_idx.x * block_dim.x + thread_idx.x;
  If(i < x.shape(0), [&] { x(i) *= factor; });
});
// </page>

TEST(Guide, Families) {
  const Stream stream = test_device().create_stream().value();
  const Buffer buffer = test_device().upload<float>({1, 2}).value();
  const auto x = as_tensor<float>(buffer, {2});
  // <page>
  Status status = scale(3.0f).launch(stream, {.block = 256}, x);
  // </page>
  EXPECT_THAT(status, IsOk());
  EXPECT_THAT(buffer.download<float>(stream).value(), testing::ElementsAre(3, 6));
}

// <page>
const auto smooth =
    define_kernel("smooth(x, events)", [](Tensor<float, 1> x, TimelineEvents events) {
      const Timeline timeline(events);  // Timeline() is off: the kernel is as without it
      Int i = block_idx.x * block_dim.x + thread_idx.x;
      for (Int step : range(10)) {
        const TimelineRange whole = timeline.range("step", step);  // to the end of the C++ scope
        Float before = x(max(i - 1, 0));
        sync_threads();
        x(i) = (x(i) + before) / 2.0f;
        timeline.mark("stored");
        sync_threads();
      }
    });
// </page>

TEST(Guide, Timelines) {
  const Stream stream = test_device().create_stream().value();
  const Buffer memory =
      test_device().upload(absl::MakeConstSpan(std::vector<float>(64, 1.0f))).value();
  const auto x = as_tensor<float>(memory, {64});
  const std::string path = testing::TempDir() + "guide_timeline.json";
  // <page>
  TimelineBuffer buffer = TimelineBuffer::allocate(stream, {.warps = 2, .events = 30}).value();
  Status status = smooth.launch(stream, {.grid = 1, .block = 64}, x, buffer.events());
  TimelineRecording recording = buffer.read(stream).value();
  status = recording.write_chrome_trace(path);  // for chrome://tracing and ui.perfetto.dev
  // </page>
  EXPECT_THAT(status, IsOk());
  std::remove(path.c_str());
  EXPECT_EQ(recording.spans.size(), 2u * 20);
  EXPECT_EQ(recording.dropped_events, 0);
}

TEST(Guide, CompilingWithoutAGpu) {
  if (!codegen::find_tool(codegen::Tool::kPtxas).ok()) GTEST_SKIP() << "needs ptxas";
  std::ostringstream out;
  // <page>
  auto compiled = row_sum.compile(Signature{tensor({kAny, 1024}).aligned(16), tensor({kAny})},
                                  CompileOptions{.block = {128, 1, 1}, .target = "sm_90a"});
  // </page>
  ASSERT_THAT(compiled, IsOk());
  // <page>
  out << compiled->ptx() << compiled->report()->registers << " registers\n";
  // </page>
  EXPECT_THAT(out.str(), testing::HasSubstr(" registers\n"));
}

}  // namespace
}  // namespace heddle
