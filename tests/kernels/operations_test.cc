// Every operation of the library on small tensors, compared with its reference as
// `heddle run NAME --check` does it.
#include <algorithm>
#include <cstring>
#include <random>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/runtime/argument.h"
#include "heddle/runtime/operation/registry.h"
#include "heddle/runtime/stream.h"
#include "heddle/tools/command/check.h"
#include "heddle/tools/command/execution.h"
#include "heddle/tools/elements.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle::tools {
namespace {

using runtime::Operation;
using runtime::OperationArgument;

// Of dimensions by name: what every operation takes, and no multiple of a tile where it may be none.
const runtime::Sizes& small_sizes() {
  static const auto& sizes =
      *new runtime::Sizes{{"m", 40},          {"n", 2048},   {"k", 24},       {"rows", 33},
                          {"columns", 76},    {"planes", 3}, {"height", 37},  {"width", 53},
                          {"batch", 2},       {"heads", 3},  {"sequence", 5}, {"elements", 150},
                          {"vocabulary", 76}, {"bins", 24},  {"tokens", 5},   {"half", 75}};
  return sizes;
}

// Of products that take whole tiles alone.
const runtime::Sizes& whole_tiles() {
  static const auto& sizes = *new runtime::Sizes{{"m", 256}, {"n", 256}, {"k", 128}};
  return sizes;
}
bool is_rung(const Operation& operation) { return absl::StartsWith(operation.name(), "product_"); }

ChosenKernel chosen(const Operation& operation) {
  ChosenKernel kernel{&operation, operation.resolve({}).value(), {}};
  const runtime::Sizes& sizes = is_rung(operation) ? whole_tiles() : small_sizes();
  for (const auto& [name, size] : operation.spec().sizes) {
    const auto small = sizes.find(name);
    kernel.sizes[name] = small != sizes.end() ? small->second : -1;
  }
  return kernel;
}

template <class T>
void fill(HostArray& array, T (*value)(size_t i, size_t count, std::mt19937& random)) {
  std::mt19937 random(7);
  const size_t count = array.byte_count / sizeof(T);
  for (size_t i = 0; i < count; ++i) {
    const T number = value(i, count, random);
    std::memcpy(array.data.get() + i * sizeof(T), &number, sizeof(T));
  }
}

// Floats from 0.25 to 1.25, any words, flags of which one in eight is set, and as integers what a matrix in CSR has: `start` goes up to
// the number of its elements, whose columns are anywhere.
HostArray make_input(const OperationArgument& argument, const runtime::TensorShape& shape) {
  HostArray array = HostArray::allocate(shape).value();
  switch (shape.dtype) {
    case ir::Scalar::kF32:
      fill<float>(array, [](size_t, size_t, std::mt19937& random) {
        return std::uniform_real_distribution<float>(0.25f, 1.25f)(random);
      });
      break;
    case ir::Scalar::kF16:
      fill<half>(array, [](size_t, size_t, std::mt19937& random) {
        return half(std::uniform_real_distribution<float>(0.25f, 1.25f)(random));
      });
      break;
    case ir::Scalar::kBF16:
      fill<bfloat16>(array, [](size_t, size_t, std::mt19937& random) {
        return bfloat16(std::uniform_real_distribution<float>(0.25f, 1.25f)(random));
      });
      break;
    case ir::Scalar::kU32:
      fill<uint32_t>(array, [](size_t, size_t, std::mt19937& random) {
        return static_cast<uint32_t>(random());
      });
      break;
    case ir::Scalar::kI32:
      if (argument.name == "start") {
        fill<int32_t>(array, [](size_t i, size_t count, std::mt19937&) {
          return static_cast<int32_t>(i * i * 150 / ((count - 1) * (count - 1)));
        });
      } else {
        fill<int32_t>(array, [](size_t, size_t, std::mt19937& random) {
          return static_cast<int32_t>(random() % 76);
        });
      }
      break;
    case ir::Scalar::kU8:
      fill<uint8_t>(array, [](size_t, size_t, std::mt19937& random) {
        return static_cast<uint8_t>(random() % 8 == 0);
      });
      break;
    case ir::Scalar::kI64:
      fill<int64_t>(array, [](size_t, size_t, std::mt19937& random) {
        return static_cast<int64_t>(random() % 76);
      });
      break;
    default:
      ADD_FAILURE() << "no values for '" << argument.name << "'";
  }
  return array;
}

HostArrays make_inputs(const ChosenKernel& kernel) {
  const runtime::BoundCall call =
      runtime::bind(*kernel.operation, kernel.settings, {}, kernel.sizes).value();
  HostArrays inputs;
  for (const runtime::BoundCall::Value& value : call.values) {
    if (!value.argument->is_read()) continue;
    inputs[value.argument->name] = make_input(*value.argument, value.shape);
  }
  return inputs;
}

// Runs an operation and compares it with its reference.
void check_operation(const ChosenKernel& kernel, const Device& device = test_device()) {
  const HostArrays inputs = make_inputs(kernel);
  const runtime::BoundCall call = bind_inputs(kernel, inputs).value();
  StatusOr<Execution> done = execute(device, call, inputs, /*repeat=*/0);
  ASSERT_THAT(done.status(), IsOk());
  StatusOr<Verdict> verdict = check_results(kernel, inputs, done->outputs);
  ASSERT_THAT(verdict.status(), IsOk());
  EXPECT_TRUE(verdict->right) << verdict->text;

  // Every output is spoken of, and a single wrong element shows.
  for (auto& [name, output] : done->outputs) {
    std::byte& last = output.data[output.byte_count - 1];
    last ^= std::byte{0x40};
    verdict = check_results(kernel, inputs, done->outputs);
    ASSERT_THAT(verdict.status(), IsOk());
    EXPECT_THAT(verdict->text, testing::HasSubstr(name + ": 1 of "));
    last ^= std::byte{0x40};
  }
}

class OperationsTest : public testing::TestWithParam<const Operation*> {};

TEST_P(OperationsTest, ComputeWhatTheirReferencesSay) {
  const Operation& operation = *GetParam();
  ASSERT_THAT(operation.validity(), IsOk());
  ASSERT_NE(operation.spec().reference, nullptr);
  const bool wants_clusters =
      operation.name() == "cluster_histogram" || operation.name() == "gemm" || is_rung(operation);
  if (wants_clusters && !test_device().info().cluster_launch) {
    GTEST_SKIP() << "this device has no clusters";
  }
  check_operation(chosen(operation));
}

INSTANTIATE_TEST_SUITE_P(Library, OperationsTest,
                         testing::ValuesIn(runtime::registered_operations()),
                         [](const auto& test) { return test.param->name(); });

// Where launches store more than L2 holds, loads have another L2 eviction priority (kernels/l2.h).
TEST(FloodsTest, ComputeTheSame) {
  DeviceInfo info = test_device().info();
  info.l2_bytes = 1;
  const Device device = Device::open_private_interp(info);
  for (const char* name : {"copy", "transpose", "softmax", "rms_norm", "layer_norm_backward",
                           "scan", "dropout", "rotary", "embedding"}) {
    SCOPED_TRACE(name);
    check_operation(chosen(*runtime::find_operation(name)), device);
  }
}

const Operation& operation_of(const char* name) { return *runtime::find_operation(name); }

TEST(ReduceOperationTest, OfEachReductionAlongEachMode) {
  const Operation& reduce = operation_of("reduce");
  for (const runtime::Setting& setting : reduce.spec().settings) {
    if (setting.name != "op") continue;
    for (const std::string& op : setting.choices) {
      for (const char* dim : {"last", "first", "all"}) {
        SCOPED_TRACE(op + " " + dim);
        ChosenKernel kernel = chosen(reduce);
        kernel.settings["op"] = op;
        kernel.settings["dim"] = dim;
        kernel.sizes["rows"] = op == "product" && std::string(dim) == "all" ? 2 : 33;
        check_operation(kernel);
      }
    }
  }
}

// A tensor that a launch refuses is not written to either.
TEST(ClearedOutputTest, IsCheckedBeforeItIsCleared) {
  const Device device = test_device();
  const Stream stream = device.default_stream();
  const int64_t extents[] = {256}, strides[] = {1}, apart[] = {2};
  const Buffer words = device.upload<uint32_t>(std::vector<uint32_t>(256, 1)).value();
  const Buffer bins = device.upload<uint32_t>(std::vector<uint32_t>(512, 9)).value();
  const runtime::Argument x =
      runtime::tensor_argument(words.address(), extents, strides, 1, sizeof(uint32_t), 1024);
  const auto call = [&](const runtime::Argument& y) {
    return operation_of("byte_histogram").spec().functions[0].call(stream, {x, y});
  };
  EXPECT_THAT(call(runtime::tensor_argument(bins.address(), extents, strides, 1, 4, 512)),
              Fails(StatusCode::kInvalidArgument, "reaches 1024 bytes into a buffer of 512"));
  EXPECT_THAT(call(runtime::tensor_argument(bins.address(), extents, apart, 1, 4, 2048)),
              Fails(StatusCode::kInvalidArgument, "adds to a tensor with stride 2, and only"));
  EXPECT_THAT(bins.download<uint32_t>(stream).value(), testing::Each(9u));
  const runtime::Argument y =
      runtime::tensor_argument(bins.address(), extents, strides, 1, sizeof(uint32_t), 2048);
  EXPECT_THAT(call(y), IsOk());
  Stream moved = device.create_stream().value();
  const Stream there = std::move(moved);
  runtime::Argument short_of_memory =
      runtime::tensor_argument(bins.address(), extents, strides, 1, sizeof(uint32_t), 512);
  short_of_memory.memory = bins.tag();
  EXPECT_THAT(operation_of("byte_histogram").spec().functions[0].call(moved, {x, short_of_memory}),
              Fails(StatusCode::kFailedPrecondition, "a Stream was used after it was moved from"));
}

// What the buffer does not hold cannot be cleared, and then nothing is launched.
TEST(ClearedOutputTest, NothingIsLaunchedWhereItCannotBeCleared) {
  if (on_gpu()) GTEST_SKIP() << "a GPU cannot tell where a buffer ends";
  const Device device = test_device();
  const Stream stream = device.default_stream();
  const int64_t extents[] = {256}, strides[] = {1};
  const Buffer words = device.upload<uint32_t>(std::vector<uint32_t>(256)).value();
  const Buffer bins = device.upload<uint32_t>(std::vector<uint32_t>(128, 9)).value();
  const Status status =
      operation_of("byte_histogram")
          .spec()
          .functions[0]
          .call(stream,
                {runtime::tensor_argument(words.address(), extents, strides, 1, sizeof(uint32_t)),
                 runtime::tensor_argument(bins.address(), extents, strides, 1, sizeof(uint32_t))});
  EXPECT_THAT(status, Fails(StatusCode::kInvalidArgument, "fill"));
  EXPECT_THAT(bins.download<uint32_t>(stream).value(), testing::Each(9u));
}

}  // namespace
}  // namespace heddle::tools
