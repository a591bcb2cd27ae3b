// The host's side of dsl/FROM_CUDA.md, run on the test device: what stands in its Heddle column
// stands here between the marks.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

// <page>
const auto saxpy =
    define_kernel("saxpy(a, x, y)", [](Float a, Tensor<const float, 1> x, Tensor<float, 1> y) {
      Int i = block_idx.x * block_dim.x + thread_idx.x;
      If(i < x.shape(0), [&] { y(i) = a * x(i) + y(i); });
    });
// </page>

// <page>
template <class T>
Value<T> twice(const Value<T>& x) {
  return x + x;
}

template <class T, bool kSquare>
void map_kernel(Tensor<T, 1> x) {
  Int i = thread_idx.x;
  if constexpr (kSquare) {
    x(i) = x(i) * x(i);
  } else {
    x(i) = twice<T>(x(i));
  }
}
const auto square_halves = define_kernel("square", map_kernel<half, true>);
const auto double_ints = define_kernel("double", map_kernel<int32_t, false>);
// </page>

// <page>
struct Scale {
  Float factor;
  Int shift;
};
const auto rescale = define_kernel("rescale(x, factor, shift)", [](Tensor<int32_t, 1> x, Scale s) {
  x(thread_idx.x) = cast<int>(cast<float>(x(thread_idx.x)) * s.factor) << s.shift;
});
// </page>

TEST(FromCudaHost, Contracts) {
  const auto product =
      define_kernel("product(a, b, x)",
                    [](Tensor<const float, 2> a, Tensor<const float, 2> b, Tensor<float, 1> x) {
                      // <page>
                      require(a.shape(1) == b.shape(0));
                      require_block(256);
                      launch_grid(ceil_div(x.shape(0), threads_per_block() * 4));
                      // </page>
                      For(range(4), [&](Int i) {
                        Int at = (block_idx.x * 4 + i) * block_dim.x + thread_idx.x;
                        If(at < x.shape(0), [&] { x(at) = a(0, 0) * b(0, 0); });
                      });
                    });
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer a = device.upload<float>({2}).value(), b = device.upload<float>({3}).value();
  const Buffer x = device.allocate(3000 * sizeof(float)).value();
  EXPECT_THAT(product.launch(stream, {.block = 256}, as_tensor<const float>(a, {1, 1}),
                             as_tensor<const float>(b, {1, 1}), as_tensor<float>(x, {3000})),
              IsOk());
  EXPECT_THAT(x.download<float>(stream).value(), testing::Each(6.0f));
}

// <page>
const auto power = kernel_family("power(x)", [](int exponent, Tensor<float, 1> x) {
  // </page>
  Var<float> result(1.0f);
  for (int i = 0; i < exponent; ++i) result = result * x(thread_idx.x);
  x(thread_idx.x) = result;
});

TEST(FromCudaHost, Families) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer x = device.upload<float>({2, 3}).value();
  EXPECT_THAT(power(3).launch(stream, {.block = 2}, as_tensor<float>(x, {2})), IsOk());
  EXPECT_THAT(x.download<float>(stream).value(), testing::ElementsAre(8, 27));
}

TEST(FromCudaHost, LaunchesAndCopies) {
  const std::string name = test_device_name();
  const std::vector<float> values = {1, 2, 3, 4};
  std::vector<float> back(4);
  const int64_t n = 4, blocks = 1;
  const Status all = [&]() -> Status {
    // <page>
    StatusOr<Device> device = Device::open(name);
    if (!device.ok()) return device.status();
    Stream stream = device->create_stream().value();
    Buffer x = device->allocate(n * sizeof(float)).value();
    Buffer y = device->upload<float>({1, 1, 1, 1}).value();
    Status copied = x.copy_from_host(stream, values.data(), x.size_bytes());
    Event start = device->create_event().value();
    Event stop = device->create_event().value();
    Status marked = start.record(stream);
    Status launched = saxpy.launch(stream, {.grid = blocks, .block = 256, .programmatic = true},
                                   0.0f, as_tensor<const float>(x, {n}), as_tensor<float>(y, {n}));
    launched.Update(saxpy.launch(stream, {.grid = blocks, .block = 256}, 2.0f,
                                 as_tensor<const float>(x, {n}), as_tensor<float>(y, {n})));
    marked.Update(stop.record(stream));
    Status fetched = y.copy_to_host(stream, back.data(), y.size_bytes());
    Status done = stream.synchronize();
    double milliseconds = Event::elapsed_ms(start, stop).value();
    Status waits = stream.wait(stop);
    Status cleared = x.fill(stream, 0);
    Status moved = x.copy_from(stream, y, y.size_bytes());
    PinnedBuffer pinned = device->allocate_pinned(1024).value();
    Buffer scratch = stream.allocate(n * sizeof(float)).value();
    std::vector<float> result = y.download<float>(stream).value();
    Status idle = device->synchronize();
    Status health = device->health();
    // </page>
    EXPECT_GE(milliseconds, 0);
    EXPECT_EQ(result, (std::vector<float>{3, 5, 7, 9}));
    for (const Status& status :
         {copied, marked, launched, fetched, done, waits, cleared, moved, idle}) {
      if (!status.ok()) return status;
    }
    return health;
  }();
  EXPECT_THAT(all, IsOk());
  EXPECT_EQ(back, (std::vector<float>{3, 5, 7, 9}));
}

TEST(FromCudaHost, TemplatesAndStructs) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer x = device.upload<int32_t>({1, 2, 3, 4}).value();
  const auto tensor_of_x = as_tensor<int32_t>(x, {4});
  ASSERT_THAT(double_ints.launch(stream, {.block = 4}, tensor_of_x), IsOk());
  // <page>
  Status status = rescale.launch(stream, {.block = 4}, tensor_of_x, {2.0f, 1});
  // </page>
  ASSERT_THAT(status, IsOk());
  EXPECT_EQ(x.download<int32_t>(stream).value(), (std::vector<int32_t>{8, 16, 24, 32}));

  const Buffer h = device.upload<half>({half(3.0f)}).value();
  ASSERT_THAT(square_halves.launch(stream, {.block = 1}, as_tensor<half>(h, {1})), IsOk());
  EXPECT_EQ(h.download<half>(stream).value()[0].bits, half(9.0).bits);
}

TEST(FromCudaHost, CompilesAhead) {
  // <page>
  auto compiled = saxpy.compile(
      Signature{scalar(), tensor({kAny}), tensor({kAny})},
      CompileOptions{
          .block = {256, 1, 1}, .target = "sm_90a", .max_registers = 32, .stage = Stage::kPtx});
  // </page>
  ASSERT_THAT(compiled, IsOk());
  // <page>
  std::string ptx = compiled->ptx();
  // </page>
  EXPECT_THAT(ptx, testing::HasSubstr("saxpy"));
}

}  // namespace
}  // namespace heddle
