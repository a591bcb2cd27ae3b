// Builds small kernels and runs them on the interpreter.
//
//   KernelTest t;
//   const ValueId x = t.tensor("x", Scalar::kF32, {4});            // a global array, rank 1
//   const ValueId i = t.thread();
//   t.store(x, i, t.load(x, i));
//   t.fill<float>(0, {1, 2, 3, 4});                                // argument 0's content
//   ASSERT_OK(t.run({.block = {4, 1, 1}}));
//   EXPECT_EQ(t.read<float>(0), ...);
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/interp/interpreter.h"
#include "heddle/ir/interp/memory.h"
#include "heddle/ir/interp/program.h"
#include "heddle/ir/status.h"

#define ASSERT_OK(expression)                       \
  do {                                              \
    const Status status_ = (expression);            \
    ASSERT_TRUE(status_.ok()) << status_.message(); \
  } while (false)

namespace heddle::ir::interp {

class KernelTest {
 public:
  explicit KernelTest(absl::string_view name = "k") : kernel(name), b(kernel) {}

  // --- Building ---
  // A global array of constant extents, row-major. Its memory is allocated by the first fill() or
  // run().
  ValueId tensor(absl::string_view name, Scalar scalar, std::vector<int64_t> extents);
  // The same with extents and strides that the launch passes.
  ValueId dynamic_tensor(absl::string_view name, Scalar scalar, std::vector<int64_t> extents,
                         std::vector<int64_t> strides);
  // A raw pointer to `count` elements.
  ValueId pointer(absl::string_view name, Scalar scalar, int64_t count);
  ValueId scalar_param(absl::string_view name, Scalar scalar, uint64_t bits);

  ValueId i32(int64_t value) { return b.constant_int(kI32Type, value); }
  ValueId i64(int64_t value) { return b.constant_int(kI64Type, value); }
  ValueId u32(int64_t value) { return b.constant_int(kU32Type, value); }
  ValueId f32(float value);
  ValueId thread() { return axis(Opcode::kThreadIdx, 0); }
  ValueId axis(Opcode opcode, int axis) {
    return b.create(opcode, {}, kI32Type, {{AttrKey::kAxis, axis}});
  }
  ValueId op(Opcode opcode, std::initializer_list<ValueId> operands, Type type = Type::none(),
             std::initializer_list<Attr> attrs = {}) {
    return b.create(opcode, operands, type, attrs);
  }
  ValueId load(ValueId view, ValueId offset) {
    return op(Opcode::kLoad, {view, offset}, Type::of(kernel.type(view).scalar));
  }
  ValueId load(ValueId view, ValueId offset, Type type) {
    return op(Opcode::kLoad, {view, offset}, type);
  }
  void store(ValueId view, ValueId offset, ValueId value) {
    op(Opcode::kStore, {view, value, offset});
  }
  // Ops made from here on come from this line of "kernel.cc".
  void line(int line) { b.set_loc(kernel.intern_loc("kernel.cc", line)); }

  // --- Data, by the position of the argument ---
  template <class T>
  void fill(int argument, const std::vector<T>& values) {
    fill_bytes(argument, values.data(), values.size() * sizeof(T));
  }
  template <class T>
  std::vector<T> read(int argument) {
    std::vector<T> values(bytes_of_argument(argument) / sizeof(T));
    read_bytes(argument, values.data());
    return values;
  }
  uint64_t address(int argument);

  // --- Running ---
  struct Launch {
    Dim3 grid = {1, 1, 1};
    Dim3 block = {32, 1, 1};
    int dynamic_shared_bytes = 0;
    bool checks = true;
    bool cooperative = false;
    RunOptions options = {};
    Counters* counters = nullptr;
  };
  // Ends the kernel's body (once), compiles and runs it.
  Status run(const Launch& launch);
  // The message of a run that has to fail.
  std::string failure(const Launch& launch);
  // The parameter block, as run() passes it.
  std::vector<std::byte> params();

  Kernel kernel;
  Builder b;
  Memory memory;

 private:
  struct Argument {
    bool view = false;
    uint64_t bits = 0;  // scalars
    int64_t bytes = 0;  // views
    std::vector<int64_t> extents;
    std::vector<int64_t> strides;
    uint64_t address = 0;
  };

  ValueId add_view(absl::string_view name, Scalar scalar, std::vector<int64_t> extents,
                   std::vector<int64_t> strides, bool dynamic);
  void fill_bytes(int argument, const void* from, uint64_t bytes);
  void read_bytes(int argument, void* to);
  uint64_t bytes_of_argument(int argument) const {
    return static_cast<uint64_t>(arguments_[static_cast<size_t>(argument)].bytes);
  }

  std::vector<Argument> arguments_;
  bool ended_ = false;
};

// Applies an op lane by lane: operand k of lane i has the bits operands[k][i] of type types[k]; the
// results' bits. Attributes as given; checks are off unless asked for.
std::vector<uint64_t> evaluate(Opcode opcode, std::vector<Scalar> types, Scalar result,
                               const std::vector<std::vector<uint64_t>>& operands,
                               bool checks = false);

uint64_t bits_of_f32(float value);
uint64_t bits_of_f64(double value);
float f32_of_bits(uint64_t bits);
double f64_of_bits(uint64_t bits);

}  // namespace heddle::ir::interp
