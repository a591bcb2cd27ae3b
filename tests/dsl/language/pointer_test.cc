// Addresses as values: pointers out of memory, and where elements lie.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

template <class T>
Buffer on_device(const std::vector<T>& values) {
  return test_device().upload(absl::MakeConstSpan(values)).value();
}

TEST(Pointers, ComeOutOfATensor) {
  const Stream stream = test_device().create_stream().value();
  const auto kernel = define_kernel(
      "batched(rows, y, n)", [](Tensor<const uint64_t, 1> rows, Tensor<float, 1> y, Int n) {
        const auto row = pointer<const float>(rows(block_idx.x));
        Float sum = For(range(n), Float(0), [&](Int i, Float s) { return s + row[i]; });
        y(block_idx.x) = sum;
      });
  const Buffer rows[] = {on_device<float>({1, 2, 3}), on_device<float>({10, 20, 30}),
                         on_device<float>({-1, -2, 5})};
  std::vector<uint64_t> addresses;
  for (const Buffer& row : rows) addresses.push_back(row.address());
  const Buffer table = on_device(addresses), y = on_device(std::vector<float>(3));
  ASSERT_THAT(kernel.launch(stream, {.grid = 3, .block = 1}, as_tensor<const uint64_t>(table, {3}),
                            as_tensor<float>(y, {3}), 3),
              IsOk());
  EXPECT_EQ(y.download<float>(stream).value(), (std::vector<float>{6, 60, 2}));
}

TEST(Pointers, ThereAndBack) {
  const Stream stream = test_device().create_stream().value();
  const auto kernel = define_kernel("swap(x)", [](Tensor<int32_t, 2> x) {
    const Int i = thread_idx.x;
    const UInt64 there = address_of(x.at(i, 1));
    const auto p = pointer<int32_t>(there);
    const Int old = p[0];
    p[0] = x(i, 0);  // the same memory: the load before it stays before it
    x(i, 0) = old;
    x(i, 2) = cast<int32_t>(there - address_of(x.at(0, 0)));
  });
  const Buffer x = on_device<int32_t>({1, 2, 0, 3, 4, 0});
  ASSERT_THAT(kernel.launch(stream, {.block = 2}, as_tensor<int32_t>(x, {2, 3})), IsOk());
  EXPECT_EQ(x.download<int32_t>(stream).value(), (std::vector<int32_t>{2, 1, 4, 4, 3, 16}));
}

TEST(Pointers, WideAccessesWhereTheAddressIsAligned) {
  const Stream stream = test_device().create_stream().value();
  const auto kernel = define_kernel("wide(a, out)", [](UInt64 a, Tensor<float, 1> out) {
    const auto p = pointer<const float>(assume_divisible(a, 16));
    const Vec<float, 4> v = p.vec<4>(4);
    out(0) = v[0] + v[3];
  });
  const Buffer x = on_device<float>({0, 1, 2, 3, 4, 5, 6, 7}), y = on_device(std::vector<float>(1));
  ASSERT_THAT(kernel.launch(stream, {.block = 1}, x.address(), as_tensor<float>(y, {1})), IsOk());
  EXPECT_EQ(y.download<float>(stream).value()[0], 11);
  const auto careless = define_kernel("careless(a, out)", [](UInt64 a, Tensor<float, 1> out) {
    const Vec<float, 4> v = pointer<const float>(a).vec<4>(4);
    out(0) = v[0];
  });
  EXPECT_THAT(
      std::string(
          careless.launch(stream, {.block = 1}, x.address(), as_tensor<float>(y, {1})).message()),
      HasSubstr("align"));
}

TEST(Pointers, TheInterpreterKnowsWhatMemoryThereIs) {
  if (on_gpu()) GTEST_SKIP() << "a GPU may do anything";
  const Stream stream = test_device().create_stream().value();
  const auto kernel = define_kernel(
      "stray(a, out)", [](UInt64 a, Tensor<float, 1> y) { y(0) = pointer<const float>(a)[4]; });
  const Buffer x = on_device<float>({0, 1, 2, 3}), y = on_device(std::vector<float>(1));
  const std::string message(
      kernel.launch(stream, {.block = 1}, x.address(), as_tensor<float>(y, {1})).message());
  EXPECT_THAT(message, HasSubstr("what a pointer points to"));
  EXPECT_THAT(message, HasSubstr("pointer_test.cc"));
}

// A pointer may point to what a tensor that is only read holds, so that this is not read by way of
// a cache that nobody keeps up to date.
TEST(Pointers, MayPointAnywhere) {
  const auto ptx = [](bool with_pointer) {
    const auto kernel =
        local_kernel("copy(x, y, a)", [&](Tensor<const float, 1> x, Tensor<float, 1> y, UInt64 a) {
          if (with_pointer) pointer<float>(a)[0] = 1.0f;
          y(0) = x(0);
        });
    return kernel
        .compile(Signature{tensor({4}).no_overlap(), tensor({4}).no_overlap(), scalar()},
                 CompileOptions{.block = {32, 1, 1}, .target = "sm_90a", .stage = Stage::kPtx})
        ->ptx();
  };
  EXPECT_THAT(ptx(false), HasSubstr("ld.global.nc.b32"));
  EXPECT_THAT(ptx(true), HasSubstr("ld.global.b32"));
  EXPECT_THAT(ptx(true), Not(HasSubstr(".nc")));
}

TEST(Dtypes, ChooseABodyAtRunTime) {
  const Stream stream = test_device().create_stream().value();
  const auto twice = [&](const Buffer& x, DType dtype) {
    return for_dtype<float, int32_t, half>(dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      const auto kernel = define_kernel(
          "twice(x)", [](Tensor<T, 1> t) { t(thread_idx.x) = t(thread_idx.x) + t(thread_idx.x); });
      return kernel.launch(stream, {.block = 2}, as_tensor<T>(x, {2}));
    });
  };
  const Buffer floats = on_device<float>({1.5f, 2}), ints = on_device<int32_t>({3, 4});
  ASSERT_THAT(twice(floats, DType::kF32), IsOk());
  ASSERT_THAT(twice(ints, dtype_from_name("i32").value()), IsOk());
  EXPECT_EQ(floats.download<float>(stream).value(), (std::vector<float>{3, 4}));
  EXPECT_EQ(ints.download<int32_t>(stream).value(), (std::vector<int32_t>{6, 8}));
  EXPECT_EQ(twice(ints, DType::kF64).message(),
            "no kernel for elements of f64; there is one for f32, i32, f16");
  EXPECT_THAT(std::string(dtype_from_name("float").status().message()),
              HasSubstr("'float' is no element type; there are bool, i8, u8"));
}

Int fibonacci(const Int& n) {
  return If(
      n < 2, [&] { return n; }, [&] { return fibonacci(n - 1) + fibonacci(n - 2); });
}

int64_t host_fibonacci(int n) { return n < 2 ? n : host_fibonacci(n - 1) + host_fibonacci(n - 2); }

// Sums of a tree that the host unfolds.
Int tree(const Int& x, int depth) {
  return depth == 0 ? x : tree(x, depth - 1) + tree(x + (1 << depth), depth - 1);
}

TEST(Recursion, OnHostNumbersUnrolls) {
  const Stream stream = test_device().create_stream().value();
  const auto kernel =
      define_kernel("tree(y)", [](Tensor<int32_t, 1> y) { y(0) = tree(thread_idx.x, 5); });
  const Buffer y = on_device(std::vector<int32_t>(1));
  ASSERT_THAT(kernel.launch(stream, {.block = 1}, as_tensor<int32_t>(y, {1})), IsOk());
  EXPECT_EQ(y.download<int32_t>(stream).value()[0], 16 * (2 + 4 + 8 + 16 + 32));
  EXPECT_EQ(host_fibonacci(10), 55);
}

TEST(Recursion, OnTracedValuesIsAnErrorAndNoCrash) {
  const auto kernel =
      define_kernel("fib(y, n)", [](Tensor<int32_t, 1> y, Int n) { y(0) = fibonacci(n); });
  const auto compiled =
      kernel.compile(Signature{tensor({1}), scalar()}, CompileOptions{.block = {1, 1, 1}});
  const std::string message(compiled.status().message());
  EXPECT_THAT(message,
              HasSubstr("a function that calls itself under a traced condition never ends"));
  EXPECT_THAT(message, HasSubstr("pointer_test.cc"));
  EXPECT_THAT(message, HasSubstr("fix: recurse on host numbers, or write a loop"));
  // The next trace is not troubled by it.
  const auto fine = define_kernel("fine(y)", [](Tensor<int32_t, 1> y) { y(0) = 1; });
  EXPECT_THAT(fine.compile(Signature{tensor({1})},
                           CompileOptions{.block = {1, 1, 1}, .stage = Stage::kPtx}),
              IsOk());
}

}  // namespace
}  // namespace heddle
