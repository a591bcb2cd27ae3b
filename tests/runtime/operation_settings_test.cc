// Operations whose settings decide which arguments there are, their shapes and element types.
#include <optional>
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
using testing::HasSubstr;
using testing::IsEmpty;

constexpr StatusCode kInvalid = StatusCode::kInvalidArgument;

enum class Order : int { kRows, kColumns, kBoth };

// What a call got.
struct Seen {
  Order order = Order::kBoth;
  std::optional<int64_t> addend;  // its extent
};
Seen& seen() {
  static Seen last;
  return last;
}

template <class T, class D>
Status pack(const Stream&, const TensorRef<const T, 2>&, Order order, float,
            const std::optional<TensorRef<const D, 1>>& addend, const TensorRef<D, 1>&) {
  seen() = {order, std::nullopt};
  if (addend) seen().addend = addend->extents[0];
  return OkStatus();
}

OperationSpec pack_spec() {
  return {.name = "pack",
          .arguments = {"x: in[n, m] if order=columns|both and weight!=2", "x: in[m, n]",
                        "order: choice", "weight: f32", "z: out[m] if weight!=0|1", "y: out[m]"},
          .functions = {host_function(pack<half, half>), host_function(pack<half, float>),
                        host_function(pack<float, double>), host_function(pack<float, half>)},
          .settings = {{.name = "order",
                        .default_value = "rows",
                        .choices = {"rows", "columns", "both"}},
                       {.name = "weight", .default_value = "0"}},
          .refusals = {{"in=f32 and order=both", "it has no room; fix: set order=rows"}},
          .sizes = {{"m", 3}, {"n", 5}}};
}

Settings resolved(const std::map<std::string, std::string>& given) {
  return Operation(pack_spec()).resolve(given).value();
}

TEST(OperationSettingsTest, DecideTheShapesOfArguments) {
  const Operation operation(pack_spec());
  ASSERT_THAT(operation.validity(), IsOk());
  const auto extents = [&](const char* order, const char* weight) {
    const Settings settings = resolved({{"order", order}, {"weight", weight}});
    return bind(operation, settings, {}).value().values[0].shape.extents;
  };
  EXPECT_THAT(extents("rows", "0"), ElementsAre(3, 5));
  EXPECT_THAT(extents("columns", "0"), ElementsAre(5, 3));
  EXPECT_THAT(extents("both", "1e3"), ElementsAre(5, 3));
  // Numbers are compared as such.
  EXPECT_THAT(extents("columns", "2.00"), ElementsAre(3, 5));
}

Status copy(const Stream&, const TensorRef<const float, 1>&, const TensorRef<float, 1>&) {
  return OkStatus();
}
TEST(OperationSettingsTest, AreSizes) {
  const Operation operation({.name = "first",
                             .arguments = {"x: f32[n]", "y: f32[k]"},
                             .functions = {host_function(copy)},
                             .settings = {{.name = "k", .default_value = "2"}},
                             .sizes = {{"n", 9}, {"k", 2}}});
  ASSERT_THAT(operation.validity(), IsOk());
  const auto extent = [&](const char* k, const Sizes& sizes) {
    return bind(operation, {{"k", k}}, {}, sizes).value().values[1].shape.extents[0];
  };
  EXPECT_EQ(extent("2", {}), 2);
  EXPECT_EQ(extent("5", {}), 5);
  EXPECT_EQ(extent("5", {{"k", 7}}), 7);
  EXPECT_THAT(bind(operation, {{"k", "some"}}, {}).status(),
              Fails(kInvalid, "setting 'k' of kernel 'first' cannot be 'some': it is a dimension"));
}

template <class T>
Status find(const Stream&, Order, const TensorRef<const float, 1>&, const TensorRef<T, 1>&) {
  return OkStatus();
}

TEST(OperationSettingsTest, DecideTheTypesOfArguments) {
  const Operation operation(
      {.name = "find",
       .arguments = {"order: choice", "x: f32[n]", "y: i64[1] if order=both", "y: f32[n]"},
       .functions = {host_function(find<float>), host_function(find<int64_t>)},
       .settings = pack_spec().settings,
       .sizes = {{"n", 3}}});
  ASSERT_THAT(operation.validity(), IsOk());
  const auto bound = [&](const char* order) {
    return bind(operation, operation.resolve({{"order", order}}).value(), {}).value();
  };
  for (const auto& [order, type] :
       {std::pair("rows", ir::Scalar::kF32), {"both", ir::Scalar::kI64}}) {
    const BoundCall call = bound(order);
    EXPECT_EQ(call.values[2].shape.dtype, type);
    EXPECT_EQ(call.function->parameters()[2].scalar, type);
  }
}

TEST(OperationSettingsTest, LeaveArgumentsOut) {
  const Operation operation(pack_spec());
  const auto role = [&](const char* weight) {
    return operation.find("z", resolved({{"weight", weight}}))->role;
  };
  EXPECT_EQ(role("0"), Role::kAbsent);
  EXPECT_EQ(role("1.0"), Role::kAbsent);
  EXPECT_EQ(role("0.5"), Role::kInput);
  EXPECT_EQ(operation.arguments(resolved({})).size(), 5u);

  const Settings without = resolved({});
  EXPECT_THAT(
      bind(operation, without, {{"z", {Scalar::kF16, {3}}}}).status(),
      Fails(kInvalid,
            "kernel 'pack' has a 'z' only if weight!=0|1; fix: set weight=..., or leave 'z' "
            "out"));
  const BoundCall call = bind(operation, without, {}).value();
  EXPECT_EQ(call.values[3].argument->role, Role::kAbsent);
  EXPECT_THAT(call.values[3].shape.extents, IsEmpty());
}

TEST(OperationSettingsTest, AreArgumentsOfTheFunction) {
  const Operation operation(pack_spec());
  const Device device = Device::open("interp").value();
  const int64_t extents[] = {3, 5}, strides[] = {5, 1};
  const Argument x = tensor_argument(512, extents, strides, 2, 2);
  const Argument y = tensor_argument(1024, extents, strides, 1, 2);
  const BoundCall call = bind(operation, resolved({{"order", "columns"}}), {}).value();
  const Argument order = scalar_argument(call.values[1].bits), weight = scalar_argument(0);
  EXPECT_THAT(
      call.function->call(device.default_stream(), {x, order, weight, absent_argument(), y}),
      IsOk());
  EXPECT_EQ(seen().order, Order::kColumns);
  EXPECT_EQ(seen().addend, std::nullopt);
  EXPECT_THAT(call.function->call(device.default_stream(), {x, order, weight, y, y}), IsOk());
  EXPECT_EQ(seen().addend, 3);
  // Only what may be left out can be.
  EXPECT_THAT(
      call.function->call(device.default_stream(), {x, order, weight, y, absent_argument()}),
      Fails(kInvalid, "argument 4 of the function is a tensor of 1 mode, not a number"));
}

TEST(OperationSettingsTest, ElementTypesFollowFromThoseThatAreGiven) {
  const auto types = [](const std::map<std::string, std::string>& given) {
    const Settings settings = resolved(given);
    return absl::StrCat(settings.at("in"), " ", settings.at("out"));
  };
  EXPECT_EQ(types({}), "f16 f16");
  EXPECT_EQ(types({{"in", "f32"}}), "f32 f64");
  EXPECT_EQ(types({{"out", "f32"}}), "f16 f32");
  EXPECT_EQ(types({{"out", "f64"}}), "f32 f64");
  EXPECT_EQ(types({{"in", "f32"}, {"out", "f16"}}), "f32 f16");
  const Operation operation(pack_spec());
  const BoundCall call = bind(operation, {{"in", "f32"}}, {}).value();
  EXPECT_EQ(call.values[0].shape.dtype, Scalar::kF32);
  EXPECT_EQ(call.values[4].shape.dtype, Scalar::kF64);
  EXPECT_THAT(operation.resolve({{"in", "f16"}, {"out", "f64"}}),
              Fails(kInvalid,
                    "kernel 'pack' does not exist for in=f16 with out=f64; fix: set in=f32, or "
                    "out=f16|f32"));
}

// An author's own default counts where it goes with what is given.
TEST(OperationSettingsTest, ElementTypesHaveDefaults) {
  OperationSpec spec = pack_spec();
  spec.settings.push_back({.name = "out", .default_value = "f32"});
  const Operation operation(std::move(spec));
  EXPECT_EQ(operation.resolve({}).value().at("out"), "f32");
  EXPECT_EQ(operation.resolve({{"in", "f16"}}).value().at("out"), "f32");
  EXPECT_EQ(operation.resolve({{"in", "f32"}}).value().at("out"), "f64");
}

TEST(OperationSettingsTest, AreRefusedTogether) {
  const Operation operation(pack_spec());
  EXPECT_THAT(operation.resolve({{"order", "both"}, {"in", "f32"}}),
              Fails(kInvalid,
                    "kernel 'pack' does not exist for in=f32 with order=both: it has no room; fix: "
                    "set order=rows"));
  EXPECT_THAT(operation.resolve({{"order", "both"}}).status(), IsOk());
  EXPECT_THAT(operation.resolve({{"order", "all"}}),
              Fails(kInvalid, "cannot be 'all': it is one of rows, columns, both"));
}

TEST(OperationSettingsTest, AWrongExtentNamesTheOtherShapes) {
  const Operation operation(pack_spec());
  EXPECT_THAT(bind(operation, resolved({{"weight", "3"}}),
                   {{"x", {Scalar::kF16, {4, 6}}}, {"z", {Scalar::kF16, {6}}}})
                  .status(),
              Fails(kInvalid,
                    "'z' has extent 6 in mode 0, and kernel 'pack' takes 4 there, m of 'x'; 'x' is "
                    "[n, m] if order=columns|both and weight!=2, else [m, n]"));
}

TEST(OperationSettingsTest, WrongDeclarationsAreSaid) {
  const auto wrong = [](size_t at, const char* argument) {
    OperationSpec spec = pack_spec();
    spec.arguments[at] = argument;
    return Operation(std::move(spec)).validity();
  };
  EXPECT_THAT(wrong(0, "x: in[n, m]"),
              Fails(kInvalid, "two arguments are named 'x', and the first has no condition"));
  EXPECT_THAT(wrong(0, "x: in[n, m] if order"),
              Fails(kInvalid,
                    "argument \"x: in[n, m] if order\": 'order' is no condition; one is written "
                    "\"setting=value|value\" or \"setting!=value\", several with \"and\""));
  EXPECT_THAT(wrong(0, "x: in[n, m] if order=rows|"), Fails(kInvalid, "is no condition"));
  EXPECT_THAT(
      wrong(0, "x: in[n, m] if odrer=rows"),
      Fails(kInvalid, "the condition \"odrer=rows\" is about 'odrer', which is no setting"));
  EXPECT_THAT(wrong(0, "x: in[n, m] if order=row"),
              Fails(kInvalid,
                    "the condition \"order=row\" is about a value that 'order' cannot have: row"));
  EXPECT_THAT(
      wrong(1, "x: in[m, n] if weight=1"),
      Fails(kInvalid, "'x' is left out by some settings, and the function's is no std::optional"));
  EXPECT_THAT(wrong(3, "weight: f32 if order=rows"),
              Fails(kInvalid, "the number 'weight' has a condition; it is always there"));
  EXPECT_THAT(wrong(3, "weight: choice"),
              Fails(kInvalid, "'weight' is a choice, and the function's a number"));
  EXPECT_THAT(wrong(2, "order: i32"),
              Fails(kInvalid, "'order' is a number, and the function's an enumeration"));
  OperationSpec spec = pack_spec();
  spec.settings[0].default_value = "none";
  EXPECT_THAT(Operation(spec).validity(),
              Fails(kInvalid,
                    "the choice 'order' has a setting of its name with choices, one of "
                    "them the default"));
  spec = pack_spec();
  spec.refusals[0].condition = "in=f64";
  EXPECT_THAT(Operation(spec).validity(), Fails(kInvalid, "a value that 'in' cannot have: f64"));
}

}  // namespace
}  // namespace heddle::runtime
