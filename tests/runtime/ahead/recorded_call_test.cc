// Calls as the steps that they enqueue: what is written down, what they need, and what cannot be recorded.
#include "heddle/runtime/ahead/recorded_call.h"

#include <cstdint>
#include <utility>
#include <variant>

#include "codegen/toolchain/tool_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "heddle/runtime/operation/dry_run.h"
#include "heddle/runtime/operation/host_function.h"
#include "support/matchers.h"

namespace heddle::runtime {
namespace {

StatusOr<RecordedCall> record_for(const char* target, const BoundCall& call) {
  CompileOptions options;
  options.target = target;
  return record_call(call, info_of(*ir::find_target(target)), options);
}

// A function without arguments.
StatusOr<RecordedCall> record_body(HostFunction::Body body) {
  const HostFunction function({}, std::move(body));
  return record_for("sm_90a", BoundCall{.function = &function});
}

constexpr int64_t kN = 256;
using X = TensorRef<const float, 1>;
using Y = TensorRef<float, 1>;

// y[i] = x[i], in accesses as wide as the address of x allows.
const auto wide_copy =
    define_kernel("wide_copy(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
      const int width = x.vector_width();
      Int i = width * thread_idx.x;
      If(i < x.shape(0), [&] { y.elements(width, i) = x.elements(width, i); });
    });
Status launch_copy(const Stream& stream, const X& x, const Y& y) {
  return wide_copy.launch(stream, {.grid = 1, .block = kN}, x, y);
}
// x without its first element, at a multiple of 4 bytes alone.
X behind_first(const X& x) { return {x.data + 1, {kN - 4}}; }

// A function of x, which is read, and y, which is written.
template <class Body>
StatusOr<RecordedCall> record_x_to_y(Body body, const char* target = "sm_90a") {
  const Operation operation({.name = "x_to_y",
                             .summary = "y = x",
                             .arguments = {"x: f32[n]", "y: f32[n]"},
                             .functions = {host_function(std::move(body))},
                             .sizes = {{"n", kN}}});
  const StatusOr<BoundCall> call = bind(operation, operation.resolve({}).value(), {});
  if (!call.ok()) return call.status();
  return record_for(target, *call);
}

TEST(RecordCall, RefusesOperationsThatNeedTheirHost) {
  EXPECT_THAT(record_body([](const Stream& stream, Arguments) -> Status {
                const Buffer memory = stream.allocate(16).value();
                int value = 0;
                return stream.copy_to_host(&value, memory.address(), sizeof(value));
              }),
              Fails(StatusCode::kUnimplemented,
                    "it reads results; fix: compile it ahead of time by compile_all_calls()"));
  EXPECT_THAT(record_body([](const Stream& stream, Arguments) -> Status {
                const Buffer memory = stream.allocate(16).value();
                const int value = 0;
                return stream.copy_to_device(memory.address(), &value, sizeof(value));
              }),
              Fails(StatusCode::kUnimplemented, "it copies from host memory"));
  EXPECT_THAT(
      record_body([](const Stream& stream, Arguments) { return stream.fill8(12345, 0, 16); }),
      Fails(StatusCode::kUnimplemented, "uses memory that is neither"));
}

TEST(RecordCall, RefusesThemAlsoWhereTheyGoOnWithoutTheirHost) {
  EXPECT_THAT(record_body([](const Stream& stream, Arguments) -> Status {
                const Buffer memory = stream.allocate(16).value();
                int value = 0;
                (void)stream.copy_to_host(&value, memory.address(), sizeof(value));
                return stream.fill8(memory.address(), static_cast<uint8_t>(value), 16);
              }),
              Fails(StatusCode::kUnimplemented, "it reads results"));
}

TEST(RecordCall, WritesDownFillsAndCopiesAndUsesMemoryAgain) {
  const RecordedCall call =
      record_body([](const Stream& stream, Arguments) -> Status {
        for (int i = 0; i < 2; ++i) {
          const Buffer memory = stream.allocate(1000).value(), more = stream.allocate(100).value();
          if (Status s = stream.fill8(memory.address() + 8, 7, 16); !s.ok()) return s;
          if (Status s = stream.fill32(more.address(), 70000, 4); !s.ok()) return s;
          if (Status s = stream.copy_on_device(memory.address(), more.address() + 4, 12); !s.ok())
            return s;
        }
        return OkStatus();
      }).value();
  EXPECT_EQ(call.workspace_bytes, 1024 + 256);
  ASSERT_EQ(call.steps.size(), 6u);
  const auto& fill = std::get<RecordedFill>(call.steps[3]);
  EXPECT_EQ(fill.to.tensor, RecordedPlace::kWorkspace);
  EXPECT_EQ(fill.to.offset, 8);
  EXPECT_EQ(fill.unit_bytes, 1);
  EXPECT_EQ(fill.value, 7u);
  EXPECT_EQ(fill.count, 16);
  const auto& words = std::get<RecordedFill>(call.steps[4]);
  EXPECT_EQ(words.unit_bytes, 4);
  EXPECT_EQ(words.value, 70000u);
  const auto& copy = std::get<RecordedCopy>(call.steps[5]);
  EXPECT_EQ(copy.to.offset, 0);
  EXPECT_EQ(copy.from.offset, 1024 + 4);
  EXPECT_EQ(copy.bytes, 12);
}

TEST(RecordCall, UsesNoMemoryAgainThatIsTooSmall) {
  const RecordedCall call = record_body([](const Stream& stream, Arguments) -> Status {
                              (void)stream.allocate(100).value();  // given back at once
                              return stream.fill8(stream.allocate(1000).value().address(), 7, 1000);
                            }).value();
  EXPECT_EQ(call.workspace_bytes, 256 + 1024);
  EXPECT_EQ(std::get<RecordedFill>(call.steps.at(0)).to.offset, 256);
}

TEST(RecordCall, CompilesAKernelForEachKindOfArguments) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  const RecordedCall call = record_x_to_y([](const Stream& s, const X& x, const Y& y) -> Status {
                              for (const X& from : {x, behind_first(x), x}) {
                                if (Status e = launch_copy(s, from, y); !e.ok()) return e;
                              }
                              return OkStatus();
                            }).value();
  ASSERT_EQ(call.steps.size(), 3u);
  const auto kernel = [&](size_t i) { return std::get<RecordedLaunch>(call.steps[i]).kernel; };
  EXPECT_NE(kernel(0), kernel(1)) << "addresses that are multiples of 16, and of 4";
  EXPECT_EQ(kernel(0), kernel(2));
}

// Host functions choose kernels by the addresses that they see.
TEST(RecordCall, AsksForTensorsThatAreAlignedAsThoseThatItWasRecordedWith) {
  for (const auto& [target, bytes] : {std::pair("sm_90a", 16), std::pair("sm_100a", 32)}) {
    const RecordedCall call =
        record_x_to_y([](const Stream&, const X&, const Y&) { return OkStatus(); }, target).value();
    EXPECT_EQ(call.tensors[0].alignment, bytes) << target;
    EXPECT_EQ(call.tensors[1].alignment, bytes) << target;
  }
}

}  // namespace
}  // namespace heddle::runtime
