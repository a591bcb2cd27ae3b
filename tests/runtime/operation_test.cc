// Operations: what their authors declare, and the calls that follow from it.
#include "heddle/runtime/operation/operation.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "heddle/runtime/operation/bound_call.h"
#include "heddle/runtime/operation/registry.h"
#include "support/matchers.h"

namespace heddle::runtime {
namespace {

using ir::Scalar;
using testing::ElementsAre;
using testing::Pair;

constexpr StatusCode kInvalid = StatusCode::kInvalidArgument;

template <class T>
Status scale(const Stream&, const TensorRef<const T, 2>&, float, const TensorRef<float, 1>&) {
  return OkStatus();
}

OperationSpec scale_spec() {
  return {.name = "scale",
          .arguments = {"x: dtype[rows + 1, 4]", "factor: f32", "y: f32[rows]"},
          .functions = {host_function(scale<half>), host_function(scale<float>)},
          .settings = {{.name = "factor", .default_value = "0.5"}},
          .sizes = {{"rows", 7}}};
}

TEST(OperationTest, FunctionsTellTheRest) {
  const Operation operation(scale_spec());
  ASSERT_THAT(operation.validity(), IsOk());
  const Settings settings = operation.resolve({}).value();
  EXPECT_EQ(operation.find("x", settings)->role, Role::kInput);
  EXPECT_EQ(operation.find("factor", settings)->role, Role::kNumber);
  EXPECT_EQ(operation.find("y", settings)->role, Role::kOutput);
  EXPECT_EQ(operation.find("z", settings), nullptr);
  EXPECT_THAT(settings, ElementsAre(Pair("dtype", "f16"), Pair("factor", "0.5")));
  EXPECT_THAT(operation.resolve({{"dtype", "f64"}}),
              Fails(kInvalid,
                    "setting 'dtype' of kernel 'scale' cannot be 'f64': it is one of f16, "
                    "f32"));
  EXPECT_THAT(operation.resolve({{"block", "1"}}),
              Fails(kInvalid, "kernel 'scale' has no setting 'block'; it has factor, dtype"));
}

TEST(OperationTest, SettingsChooseTheFunction) {
  const Operation operation(scale_spec());
  for (const auto& [name, scalar] : {std::pair("f16", Scalar::kF16), {"f32", Scalar::kF32}}) {
    const Settings settings = operation.resolve({{"dtype", name}, {"factor", "2"}}).value();
    const BoundCall call = bind(operation, settings, {}).value();
    EXPECT_EQ(call.function->parameters()[0].scalar, scalar);
    EXPECT_EQ(call.values[0].shape.dtype, scalar);
    EXPECT_EQ(call.values[1].bits, 0x40000000u) << "2.0f";
    EXPECT_EQ(call.values[2].shape.dtype, Scalar::kF32);
  }
}

TEST(OperationTest, DimensionsComeFromInputsThenTheCallerThenTheExample) {
  const Operation operation(scale_spec());
  const Settings settings = operation.resolve({}).value();
  const auto rows_of_y = [&](const Shapes& inputs, const Sizes& sizes) {
    return bind(operation, settings, inputs, sizes).value().values[2].shape.extents;
  };
  EXPECT_THAT(rows_of_y({}, {}), ElementsAre(7));
  EXPECT_THAT(rows_of_y({}, {{"rows", 3}}), ElementsAre(3));
  EXPECT_THAT(rows_of_y({{"x", {Scalar::kF16, {6, 4}}}}, {}), ElementsAre(5));
  EXPECT_THAT(rows_of_y({{"x", {Scalar::kF16, {6, 4}}}}, {{"rows", 5}}), ElementsAre(5));
}

TEST(OperationTest, ContradictionsAreRefused) {
  const Operation operation(scale_spec());
  const Settings settings = operation.resolve({}).value();
  const auto refused = [&](const Shapes& inputs, const Sizes& sizes = {}) {
    return bind(operation, settings, inputs, sizes).status();
  };
  EXPECT_THAT(refused({{"x", {Scalar::kF16, {6, 5}}}}),
              Fails(kInvalid, "'x' has extent 5 in mode 1, and kernel 'scale' takes 4 there"));
  EXPECT_THAT(refused({{"x", {Scalar::kF16, {6}}}}),
              Fails(kInvalid,
                    "'x' is f16[6], and kernel 'scale' takes a tensor of 2 modes, not of 1; fix: "
                    "reshape it"));
  EXPECT_THAT(refused({{"x", {Scalar::kF16, {0, 4}}}}), Fails(kInvalid, "takes 1 there at least"));
  EXPECT_THAT(refused({{"x", {Scalar::kF16, {6, 4}}}, {"y", {Scalar::kF32, {6}}}}),
              Fails(kInvalid,
                    "'y' has extent 6 in mode 0, and kernel 'scale' takes 5 there, rows of "
                    "'x'"));
  EXPECT_THAT(refused({{"x", {Scalar::kF16, {6, 4}}}}, {{"rows", 6}}),
              Fails(kInvalid, "takes 7 there, rows + 1"));
  EXPECT_THAT(refused({}, {{"columns", 6}}),
              Fails(kInvalid, "no dimension 'columns'; it has rows"));
  EXPECT_THAT(refused({}, {{"rows", -5}}),
              Fails(kInvalid, "dimension 'rows' of kernel 'scale' cannot be -5"));
  EXPECT_THAT(bind(operation, {{"factr", "2"}}, {}).status(), Fails(kInvalid, "factr"));
  EXPECT_THAT(bind(operation, {}, {}), IsOk());
}

TEST(OperationTest, InputsAreWhatItTakes) {
  const Operation operation(scale_spec());
  const auto refused = [&](const Shapes& inputs) { return bind(operation, {}, inputs).status(); };
  EXPECT_THAT(refused({{"z", {Scalar::kF16, {6, 4}}}}),
              Fails(kInvalid, "kernel 'scale' has no parameter 'z'; it has x, factor, y"));
  EXPECT_THAT(
      refused({{"factor", {Scalar::kF32, {}}}}),
      Fails(kInvalid, "'factor' is a number of kernel 'scale', not an input; fix: set factor=..."));
  EXPECT_THAT(refused({{"x", {Scalar::kF32, {6, 4}}}}),
              Fails(kInvalid,
                    "'x' is f32[6, 4], and kernel 'scale' takes f16; fix: set dtype=f32, or "
                    "convert it"));
  EXPECT_THAT(
      refused({{"x", {Scalar::kF64, {6, 4}}}}),
      Fails(kInvalid, "'x' is f64[6, 4], and kernel 'scale' takes f16, f32; fix: convert it"));
  EXPECT_THAT(refused({{"y", {Scalar::kF16, {5}}}}),
              Fails(kInvalid, "'y' is f16[5], and kernel 'scale' takes f32; fix: convert it"));
}

TEST(OperationTest, SizesAreCounted) {
  const Operation operation(scale_spec());
  EXPECT_THAT(bind(operation, {}, {}, {{"rows", INT64_MAX}}).status(),
              Fails(kInvalid,
                    "dimension 'rows' of kernel 'scale' is too large: 9223372036854775807, and 'x' "
                    "has 1 more than that"));
  EXPECT_THAT(
      bind(operation, {}, {{"x", {Scalar::kF16, {INT64_MIN, 4}}}}).status(),
      Fails(kInvalid, "'x' of kernel 'scale' cannot have extent -9223372036854775808 in mode 0"));
}

TEST(OperationTest, NumbersFitTheirTypes) {
  const auto bits = [](const char* type, HostFunction function, const char* text) {
    OperationSpec spec{.name = "take",
                       .arguments = {absl::StrCat("n: ", type)},
                       .functions = {std::move(function)},
                       .settings = {{.name = "n", .default_value = text}}};
    const Operation operation(std::move(spec));
    const StatusOr<BoundCall> call = bind(operation, operation.resolve({}).value(), {});
    return call.ok() ? absl::StrCat(call->values[0].bits) : std::string(call.status().message());
  };
  const auto take_int = [](const Stream&, int) { return OkStatus(); };
  const auto take_wide = [](const Stream&, uint64_t) { return OkStatus(); };
  const auto take_double = [](const Stream&, double) { return OkStatus(); };
  EXPECT_EQ(bits("i32", host_function(take_int), "-1"), "4294967295");
  EXPECT_EQ(bits("i32", host_function(take_int), "3000000000"),
            "setting 'n' of kernel 'take' cannot be '3000000000': it is a number of type i32");
  EXPECT_EQ(bits("u64", host_function(take_wide), "18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(bits("f64", host_function(take_double), "1"), "4607182418800017408");
  EXPECT_EQ(bits("f64", host_function(take_double), "one"),
            "setting 'n' of kernel 'take' cannot be 'one': it is a number of type f64");
}

TEST(OperationTest, WrongDeclarationsAreSaid) {
  const auto wrong = [](std::vector<std::string> arguments) {
    OperationSpec spec = scale_spec();
    spec.arguments = std::move(arguments);
    return Operation(std::move(spec)).validity();
  };
  const std::string x = "x: dtype[rows + 1, 4]", factor = "factor: f32", y = "y: f32[rows]";
  EXPECT_THAT(wrong({x, factor, y}), IsOk());
  EXPECT_THAT(wrong({x, y}), Fails(kInvalid,
                                   "kernel 'scale' is registered wrongly: it declares 2 "
                                   "arguments for a function that takes 3"));
  EXPECT_THAT(wrong({x, y, factor}), Fails(kInvalid,
                                           "'y' is declared with 1 dimension, and the "
                                           "function's with 0"));
  EXPECT_THAT(wrong({"x: f32[rows, 4]", factor, y}),
              Fails(kInvalid, "'x' is f32, and the function's f16"));
  EXPECT_THAT(wrong({"x: inout dtype[rows, 4]", factor, y}),
              Fails(kInvalid, "'x' is written, and the function's elements are const"));
  EXPECT_THAT(wrong({"x dtype[rows, 4]", factor, y}),
              Fails(kInvalid, "argument \"x dtype[rows, 4]\": it is written"));
  EXPECT_THAT(wrong({"x: dtype[rows, 4", factor, y}), Fails(kInvalid, "do not end with ']'"));
  for (const char* dimension : {"", "-1", "rows +", "1 + rows", "rows + 1 + 1", "2x"}) {
    EXPECT_THAT(wrong({absl::StrCat("x: dtype[", dimension, ", 4]"), factor, y}),
                Fails(kInvalid, "is no dimension"))
        << dimension;
  }
  EXPECT_THAT(wrong({x, factor, "x: f32[rows]"}), Fails(kInvalid, "two arguments are named 'x'"));
  EXPECT_THAT(wrong({x, factor, "y: f32[lines]"}),
              Fails(kInvalid, "its sizes say nothing of the dimension 'lines'"));
  EXPECT_THAT(wrong({x, factor, "y: f32[rows] if dtype=f16", "y: f64[rows]"}),
              Fails(kInvalid, "no function has 'y' as f64"));
  OperationSpec spec = scale_spec();
  spec.settings.clear();
  EXPECT_THAT(Operation(spec).validity(),
              Fails(kInvalid, "the number 'factor' has an element type"));
  spec = scale_spec();
  spec.functions.clear();
  EXPECT_THAT(Operation(spec).validity(), Fails(kInvalid, "it has no function"));
}

TEST(HostFunctionTest, TakesItsArgumentsAsData) {
  std::vector<std::string> seen;
  const HostFunction function = host_function(
      [&](const Stream&, const TensorRef<const half, 2>& x, int64_t n, TensorRef<float, 1> y) {
        seen = {absl::StrCat(reinterpret_cast<uintptr_t>(x.data)), absl::StrCat(x.extents[1]),
                absl::StrCat(x.strides[0]), absl::StrCat(n), absl::StrCat(y.capacity_bytes)};
        return OkStatus();
      });
  ASSERT_EQ(function.parameters().size(), 3u);
  EXPECT_EQ(function.parameters()[0].scalar, Scalar::kF16);
  EXPECT_EQ(function.parameters()[0].rank, 2);
  EXPECT_TRUE(function.parameters()[0].read_only);
  EXPECT_EQ(function.parameters()[1].rank, -1);
  EXPECT_FALSE(function.parameters()[2].read_only);

  const Device device = Device::open("interp").value();
  const Stream stream = device.default_stream();
  const int64_t extents[] = {2, 3}, strides[] = {5, 1};
  const Argument x = tensor_argument(512, extents, strides, 2, 2);
  const Argument y = tensor_argument(1024, extents, strides, 1, 4, 4096);
  const auto n = scalar_argument(static_cast<uint64_t>(-9));
  EXPECT_THAT(function.call(stream, {x, n, y}), IsOk());
  EXPECT_THAT(seen, ElementsAre("512", "3", "5", "-9", "4096"));
  EXPECT_THAT(function.call(stream, {x, n}),
              Fails(kInvalid, "the function takes 3 arguments and was given 2"));
  EXPECT_THAT(function.call(stream, {y, n, y}),
              Fails(kInvalid,
                    "argument 0 of the function is a tensor of 2 modes, not a tensor of 1 "
                    "mode"));
  EXPECT_THAT(function.call(stream, {x, x, y}),
              Fails(kInvalid, "argument 1 of the function is a number, not a tensor of 2 modes"));
  EXPECT_THAT(function.call(stream, {x, n, pointer_argument(1024)}),
              Fails(kInvalid, "argument 2 of the function is a pointer"));
  EXPECT_THAT(function.call(stream, {x, scalar_argument(1, Misfit::kUnsigned), y}),
              Fails(kInvalid, "argument 1 of the function is a number that does not fit"));
}

}  // namespace
}  // namespace heddle::runtime
