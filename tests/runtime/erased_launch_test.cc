// Kernels and operations called with arguments as data, as runtime/argument.h shows it.
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "heddle/runtime/operation/bound_call.h"
#include "heddle/runtime/operation/registry.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle::runtime {
namespace {

using testing::ElementsAre;

const auto add_first =
    define_kernel("add_first(x, y, n)", [](Tensor<const float, 2> x, Tensor<float, 1> y, Int n) {
      If(thread_idx.x == 0, [&] { y(block_idx.x) = x(block_idx.x, 0) + cast<float>(n); });
    });

class ErasedLaunchTest : public testing::Test {
 protected:
  static constexpr int64_t rows = 3, columns = 2;
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer x = device.upload<float>({1, 2, 3, 4, 5, 6}).value();
  Buffer y = device.upload<float>({0, 0, 0}).value();
};

TEST_F(ErasedLaunchTest, KernelsAreSourcesAndArgumentsAreData) {
  const int64_t extents[] = {rows, columns}, strides[] = {columns, 1};  // outlive the launch
  const Argument arguments[] = {
      tensor_argument(x.address(), extents, strides, /*rank=*/2, sizeof(float)),
      tensor_argument(y.address(), extents, strides + 1, /*rank=*/1, sizeof(float)),
      scalar_argument(7),
  };
  const ir::KernelSource& source = add_first.source();
  Status status = launch(stream, source, {.grid = rows, .block = 128}, arguments);
  ASSERT_THAT(status, IsOk());
  EXPECT_THAT(y.download<float>(stream).value(), ElementsAre(8, 10, 12));

  ASSERT_THAT(y.fill(stream, 0), IsOk());
  const Signature signature = {tensor({kAny, kAny}), tensor({kAny}), scalar()};
  CompileOptions options{.block = {128, 1, 1}};
  if (!on_gpu()) options.stage = Stage::kIr;
  StatusOr<CompiledKernel> compiled = compile(source, signature, options);
  ASSERT_THAT(compiled.status(), IsOk());
  status = compiled->launch(stream, {.grid = rows, .block = 128}, arguments);
  ASSERT_THAT(status, IsOk());
  EXPECT_THAT(y.download<float>(stream).value(), ElementsAre(8, 10, 12));
}

TEST_F(ErasedLaunchTest, WhatDoesNotFitIsRefused) {
  const int64_t extents[] = {rows, columns}, strides[] = {columns, 1};
  const Argument matrix = tensor_argument(x.address(), extents, strides, 2, sizeof(float));
  const LaunchShape shape{.grid = rows, .block = 128};
  const Argument few[] = {matrix};
  EXPECT_THAT(launch(stream, add_first.source(), shape, few),
              Fails(StatusCode::kInvalidArgument, "takes 3 arguments and was given 1"));
  const Argument vector = tensor_argument(y.address(), extents, strides + 1, 1, sizeof(float));
  const auto refused = [&](const Argument& a, const Argument& b, const Argument& c) {
    const Argument arguments[] = {a, b, c};
    return launch(stream, add_first.source(), shape, arguments);
  };
  const auto says = [](const char* what) { return Fails(StatusCode::kInvalidArgument, what); };
  EXPECT_THAT(
      refused(matrix, matrix, scalar_argument(7)),
      says(
          "erased_launch_test.cc:19) is a tensor of 2 modes; the kernel takes a tensor of 1 mode"));
  EXPECT_THAT(refused(matrix, scalar_argument(7), scalar_argument(7)),
              says("is a number; the kernel takes a tensor of 1 mode"));
  // Of a pointer nobody knows the extents, by which accesses are checked.
  EXPECT_THAT(refused(matrix, pointer_argument(y.address()), scalar_argument(7)),
              says("is a pointer; the kernel takes a tensor of 1 mode"));
  EXPECT_THAT(refused(matrix, vector, vector),
              says("is a tensor of 1 mode; the kernel takes a number"));
  EXPECT_THAT(refused(matrix, vector, scalar_argument(7)), IsOk());
}

const auto set_first =
    define_kernel("set_first(y, value)", [](Pointer<float> y, Float value) { y[0] = value; });

TEST_F(ErasedLaunchTest, APointerIsAPointer) {
  const int64_t extents[] = {rows}, strides[] = {1};
  const LaunchShape shape{.grid = 1, .block = 1};
  const auto launched = [&](const Argument& pointer) {
    const Argument arguments[] = {pointer, scalar_argument(0x3f800000)};
    return launch(stream, set_first.source(), shape, arguments);
  };
  EXPECT_THAT(launched(pointer_argument(y.address())), IsOk());
  EXPECT_THAT(y.download<float>(stream).value(), ElementsAre(1, 0, 0));
  EXPECT_THAT(launched(scalar_argument(1)),
              Fails(StatusCode::kInvalidArgument, "is a number; the kernel takes a pointer"));
  // Whatever its memory: the kernel has no bounds for it.
  for (const uint64_t address : {y.address(), y.address() + 1, uint64_t{0}}) {
    EXPECT_THAT(launched(tensor_argument(address, extents, strides, 1, 4)),
                Fails(StatusCode::kInvalidArgument,
                      "is a tensor of 1 mode; the kernel takes a pointer; fix: pass "
                      "pointer_argument(address)"));
  }
}

Status add_first_rows(const Stream& s, const TensorRef<const float, 2>& matrix, int n,
                      const TensorRef<float, 1>& sums) {
  return add_first.launch(s, {.grid = matrix.extents[0], .block = 128}, matrix, sums, n);
}
const Registered registered({.name = "add_first_rows",
                             .summary = "y(i) = x(i, 0) + n",
                             .arguments = {"x: f32[rows, columns]", "n: i32", "y: f32[rows]"},
                             .functions = {host_function(add_first_rows)},
                             .settings = {{.name = "n", .default_value = "7"}},
                             .sizes = {{"rows", 3}, {"columns", 2}}});

TEST_F(ErasedLaunchTest, OperationsSayWhatTheyTake) {
  const Operation* const operation = find_operation("add_first_rows");
  ASSERT_NE(operation, nullptr);
  ASSERT_THAT(operation->validity(), IsOk());
  const Settings settings = operation->resolve({{"n", "20"}}).value();
  const BoundCall call =
      bind(*operation, settings, {{"x", {ir::Scalar::kF32, {rows, columns}}}}).value();
  ASSERT_EQ(call.values.size(), 3u);
  EXPECT_THAT(call.values[2].shape.extents, ElementsAre(3));
  const int64_t strides[] = {columns, 1};
  const Argument arguments[] = {
      tensor_argument(x.address(), call.values[0].shape.extents.data(), strides, 2, sizeof(float)),
      scalar_argument(call.values[1].bits),
      tensor_argument(y.address(), call.values[2].shape.extents.data(), strides + 1, 1,
                      sizeof(float)),
  };
  ASSERT_THAT(call.function->call(stream, arguments), IsOk());
  EXPECT_THAT(y.download<float>(stream).value(), ElementsAre(21, 23, 25));
}

}  // namespace
}  // namespace heddle::runtime
