// Random kernels: the interpreter, a warp at a time, computes what each thread computes alone.
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "heddle/ir/interp/interpreter.h"
#include "heddle/ir/launch/abi.h"
#include "heddle/ir/passes/pipeline.h"
#include "heddle/ir/text/printer.h"
#include "ir/analysis/thread_oracle.h"
#include "ir/interp/oracle.h"
#include "ir/random_kernel.h"

namespace heddle::ir::interp {
namespace {

constexpr int kKernels = 200;

// The arguments in a device's memory.
class Device {
 public:
  Device(const Kernel& kernel, const std::vector<ThreadOracle::Argument>& arguments)
      : kernel_(kernel), params_(static_cast<size_t>(param_layout(kernel).bytes)) {
    const ParamLayout layout = param_layout(kernel);
    for (const ParamSlot& slot : layout.slots) {
      const ThreadOracle::Argument& argument = arguments[static_cast<size_t>(slot.param)];
      uint64_t bits = argument.scalar;
      if (slot.kind == SlotKind::kAddress) bits = place(slot.param, argument.memory);
      std::memcpy(&params_[static_cast<size_t>(slot.offset)], &bits,
                  static_cast<size_t>(slot.bytes));
    }
  }

  Status run(const Kernel& kernel, bool checks) {
    const StatusOr<Program> program = compile(kernel, {.checks = checks});
    if (!program.ok()) return program.status();
    return interp::run(*program, {.block = kernel.block, .params = params_}, memory_,
                       {.max_instructions = 100'000'000});
  }

  // Where memory is not what the oracle found; what that leaves unspecified may be anything.
  std::string difference(const ThreadOracle& oracle) {
    for (size_t p = 0; p < kernel_.params().size(); ++p) {
      const Scalar scalar = scalar_of(p);
      for (size_t i = 0; i < oracle.memory(p).size(); ++i) {
        const OracleValue& expected = oracle.memory(p)[i];
        if (expected.poison) continue;
        uint64_t bits = 0;
        const size_t bytes = static_cast<size_t>(heddle::ir::bytes_of(scalar));
        const Status status = memory_.copy_to_host(&bits, addresses_[p] + i * bytes, bytes);
        if (!status.ok()) return std::string(status.message());
        const bool nans =
            is_float(scalar) && is_nan(scalar, bits) && is_nan(scalar, expected.elements[0]);
        if (nans || bits == expected.elements[0]) continue;
        return absl::StrCat("param ", p, "[", i, "] is ", text_of(scalar, bits), ", not ",
                            text_of(scalar, expected.elements[0]));
      }
    }
    return "";
  }

 private:
  Scalar scalar_of(size_t param) const {
    return kernel_.type(kernel_.params()[param].value).scalar;
  }
  uint64_t place(int param, const std::vector<uint64_t>& elements) {
    const size_t bytes = static_cast<size_t>(heddle::ir::bytes_of(scalar_of(param)));
    std::vector<uint8_t> packed(elements.size() * bytes);
    for (size_t i = 0; i < elements.size(); ++i) {
      std::memcpy(&packed[i * bytes], &elements[i], bytes);
    }
    const uint64_t address = memory_.allocate(packed.size()).value();
    const Status status = memory_.copy_from_host(address, packed.data(), packed.size());
    EXPECT_TRUE(status.ok()) << status.message();
    addresses_.resize(kernel_.params().size());
    addresses_[static_cast<size_t>(param)] = address;
    return address;
  }

  const Kernel& kernel_;
  std::vector<std::byte> params_;
  std::vector<uint64_t> addresses_;
  Memory memory_;
};

// Traced and optimised, checked and unchecked.
TEST(InterpRandom, ComputesWhatEachThreadComputes) {
  int tested = 0;
  int clean = 0;
  for (uint64_t seed = 50'000; seed < 50'000 + kKernels; ++seed) {
    const Kernel traced = random_kernel(seed, {.statements = 40});
    const auto arguments = random_arguments(traced, seed);
    ThreadOracle oracle(traced, arguments);
    if (!oracle.run()) continue;
    ++tested;
    Kernel optimized = traced;
    ASSERT_TRUE(run_pipeline(optimized, kExactPipeline).ok());
    for (const Kernel* const kernel : std::initializer_list<const Kernel*>{&traced, &optimized}) {
      for (const bool checks : {false, true}) {
        Device device(traced, arguments);
        const Status status = device.run(*kernel, checks);
        // The oracle shrugs at a division by zero whose result is not used; the checks do not.
        if (checks && !status.ok()) continue;
        ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status.message();
        clean += checks ? 1 : 0;
        ASSERT_EQ(device.difference(oracle), "")
            << "seed " << seed << (checks ? " checked" : " unchecked")
            << (kernel == &traced ? " traced" : " optimised") << "\n"
            << print(*kernel);
      }
    }
  }
  EXPECT_GT(tested, kKernels / 2);
  EXPECT_GT(clean, tested / 2);
}

}  // namespace
}  // namespace heddle::ir::interp
