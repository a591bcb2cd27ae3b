#include "ir/interp/harness.h"

#include "heddle/ir/launch/abi.h"

namespace heddle::ir::interp {

uint64_t bits_of_f32(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
uint64_t bits_of_f64(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
float f32_of_bits(uint64_t bits) {
  const uint32_t narrow = static_cast<uint32_t>(bits);
  float value;
  std::memcpy(&value, &narrow, sizeof(value));
  return value;
}
double f64_of_bits(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

ValueId KernelTest::f32(float value) { return b.constant(kF32Type, bits_of_f32(value)); }

ValueId KernelTest::add_view(absl::string_view name, Scalar scalar, std::vector<int64_t> extents,
                             std::vector<int64_t> strides, bool dynamic) {
  const std::vector<int64_t> unknown(extents.size(), kDynamic);
  const ValueId value =
      kernel.add_param(name, Type::view(scalar, Space::kGlobal, static_cast<int>(extents.size())),
                       dynamic ? unknown : extents, dynamic ? unknown : strides);
  Argument argument;
  argument.view = true;
  int64_t last = 0;
  for (size_t i = 0; i < extents.size(); ++i) last += (extents[i] - 1) * strides[i];
  argument.bytes = (last + 1) * heddle::ir::bytes_of(scalar);
  argument.extents = std::move(extents);
  argument.strides = std::move(strides);
  arguments_.push_back(std::move(argument));
  return value;
}

ValueId KernelTest::tensor(absl::string_view name, Scalar scalar, std::vector<int64_t> extents) {
  std::vector<int64_t> strides(extents.size(), 1);
  for (size_t i = extents.size(); i > 1; --i) strides[i - 2] = strides[i - 1] * extents[i - 1];
  return add_view(name, scalar, std::move(extents), std::move(strides), /*dynamic=*/false);
}

ValueId KernelTest::dynamic_tensor(absl::string_view name, Scalar scalar,
                                   std::vector<int64_t> extents, std::vector<int64_t> strides) {
  return add_view(name, scalar, std::move(extents), std::move(strides), /*dynamic=*/true);
}

ValueId KernelTest::pointer(absl::string_view name, Scalar scalar, int64_t count) {
  const int64_t unknown[] = {kDynamic};
  const ValueId value =
      kernel.add_param(name, Type::view(scalar, Space::kGlobal, 1), unknown, unknown);
  kernel.params().back().unbounded = true;
  Argument argument;
  argument.view = true;
  argument.bytes = count * heddle::ir::bytes_of(scalar);
  arguments_.push_back(std::move(argument));
  return value;
}

ValueId KernelTest::scalar_param(absl::string_view name, Scalar scalar, uint64_t bits) {
  Argument argument;
  argument.bits = bits;
  arguments_.push_back(std::move(argument));
  return kernel.add_param(name, Type::of(scalar));
}

uint64_t KernelTest::address(int index) {
  Argument& argument = arguments_[static_cast<size_t>(index)];
  if (argument.address == 0) {
    const std::string name(
        kernel.text(kernel.value(kernel.params()[static_cast<size_t>(index)].value).name));
    argument.address = memory.allocate(static_cast<uint64_t>(argument.bytes), 256, name).value();
  }
  return argument.address;
}

void KernelTest::fill_bytes(int argument, const void* from, uint64_t bytes) {
  const Status status = memory.copy_from_host(address(argument), from, bytes);
  ASSERT_TRUE(status.ok()) << status.message();
}

void KernelTest::read_bytes(int argument, void* to) {
  const Status status = memory.copy_to_host(to, address(argument), bytes_of_argument(argument));
  ASSERT_TRUE(status.ok()) << status.message();
}

std::vector<std::byte> KernelTest::params() {
  const ParamLayout layout = param_layout(kernel);
  std::vector<std::byte> bytes(static_cast<size_t>(layout.bytes));
  for (const ParamSlot& slot : layout.slots) {
    const Argument& argument = arguments_[static_cast<size_t>(slot.param)];
    uint64_t bits = 0;
    switch (slot.kind) {
      case SlotKind::kScalar:
        bits = argument.bits;
        break;
      case SlotKind::kAddress:
        bits = address(slot.param);
        break;
      case SlotKind::kExtent:
        bits = static_cast<uint64_t>(argument.extents[static_cast<size_t>(slot.dim)]);
        break;
      case SlotKind::kStride:
        bits = static_cast<uint64_t>(argument.strides[static_cast<size_t>(slot.dim)]);
        break;
    }
    std::memcpy(bytes.data() + slot.offset, &bits, static_cast<size_t>(slot.bytes));
  }
  return bytes;
}

Status KernelTest::run(const Launch& launch) {
  if (!ended_) b.yield({});
  ended_ = true;
  const StatusOr<Program> program = compile(kernel, {.checks = launch.checks});
  if (!program.ok()) return program.status();
  const std::vector<std::byte> bytes = params();
  return interp::run(*program,
                     {.grid = launch.grid,
                      .block = launch.block,
                      .params = bytes,
                      .dynamic_shared_bytes = launch.dynamic_shared_bytes,
                      .cooperative = launch.cooperative},
                     memory, launch.options, launch.counters);
}

std::string KernelTest::failure(const Launch& launch) {
  const Status status = run(launch);
  EXPECT_FALSE(status.ok()) << "the run was expected to fail";
  return std::string(status.message());
}

std::vector<uint64_t> evaluate(Opcode opcode, std::vector<Scalar> types, Scalar result,
                               const std::vector<std::vector<uint64_t>>& operands, bool checks) {
  const size_t count = operands[0].size();
  KernelTest t;
  std::vector<ValueId> views;
  for (size_t k = 0; k < types.size(); ++k) {
    views.push_back(t.tensor("operand", types[k], {static_cast<int64_t>(count)}));
  }
  const ValueId out = t.tensor("out", result, {static_cast<int64_t>(count)});
  const ValueId i =
      t.op(Opcode::kAdd,
           {t.op(Opcode::kMul, {t.axis(Opcode::kBlockIdx, 0), t.axis(Opcode::kBlockDim, 0)}),
            t.thread()});
  const OpId guard = t.b.begin_if(t.op(Opcode::kLt, {i, t.i32(static_cast<int64_t>(count))}));
  (void)guard;
  std::vector<ValueId> values;
  for (const ValueId view : views) values.push_back(t.load(view, i));
  t.store(out, i, t.b.create(opcode, values, Type::of(result)));
  t.b.yield({});
  t.b.next_region();
  t.b.yield({});
  t.b.end_region();
  const auto pack = [](Scalar scalar, const std::vector<uint64_t>& bits) {
    const size_t bytes = static_cast<size_t>(heddle::ir::bytes_of(scalar));
    std::vector<uint8_t> packed(bits.size() * bytes);
    for (size_t j = 0; j < bits.size(); ++j) std::memcpy(&packed[j * bytes], &bits[j], bytes);
    return packed;
  };
  for (size_t k = 0; k < types.size(); ++k) {
    t.fill(static_cast<int>(k), pack(types[k], operands[k]));
  }
  const Status status = t.run({.grid = {static_cast<int>((count + 255) / 256), 1, 1},
                               .block = {256, 1, 1},
                               .checks = checks});
  EXPECT_TRUE(status.ok()) << status.message();
  const std::vector<uint8_t> packed = t.read<uint8_t>(static_cast<int>(types.size()));
  const size_t bytes = static_cast<size_t>(heddle::ir::bytes_of(result));
  std::vector<uint64_t> results(count);
  for (size_t j = 0; j < count; ++j) std::memcpy(&results[j], &packed[j * bytes], bytes);
  return results;
}

}  // namespace heddle::ir::interp
