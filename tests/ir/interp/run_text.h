// Kernels from text on the interpreter: what they leave in memory, as they are and after passes.
//
//   const RunArgument x = memory(8), n = number(3);
//   EXPECT_EQ(run_text(text, "", {x, n}), run_text(text, "unroll,fold", {x, n}));
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "heddle/ir/interp/interpreter.h"
#include "heddle/ir/interp/memory.h"
#include "heddle/ir/interp/program.h"
#include "heddle/ir/launch/abi.h"
#include "ir/passes/pass_text.h"

namespace heddle::ir {

// A scalar's bits, or a view's elements.
struct RunArgument {
  uint64_t bits = 0;
  std::vector<uint64_t> elements;
};
inline RunArgument number(int64_t value) { return {static_cast<uint64_t>(value), {}}; }
inline RunArgument memory(size_t count) { return {0, std::vector<uint64_t>(count)}; }

// What one launch of the kernel made.
struct RunResult {
  std::string error;                          // the interpreter's report; empty: there is none
  std::vector<std::vector<uint64_t>> memory;  // of each argument
  bool operator==(const RunResult&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const RunResult& result) {
  out << "error '" << result.error << "'";
  for (const auto& elements : result.memory) {
    out << " [";
    for (const uint64_t element : elements) out << element << " ";
    out << "]";
  }
  return out;
}

// A grid of one block, or one cluster.
inline RunResult run_kernel(const Kernel& kernel, std::vector<RunArgument> arguments,
                            const interp::RunOptions& options = {.max_instructions = 10'000'000}) {
  RunResult result;
  interp::Memory memory;
  const ParamLayout layout = param_layout(kernel);
  std::vector<std::byte> block(static_cast<size_t>(layout.bytes));
  std::vector<uint64_t> addresses(arguments.size());
  const auto bytes_of_element = [&](size_t p) {
    return static_cast<size_t>(bytes_of(kernel.type(kernel.params()[p].value).scalar));
  };
  for (size_t p = 0; p < arguments.size(); ++p) {
    const std::vector<uint64_t>& elements = arguments[p].elements;
    if (elements.empty()) continue;
    const size_t bytes = bytes_of_element(p);
    std::vector<std::byte> packed(elements.size() * bytes);
    for (size_t i = 0; i < elements.size(); ++i) {
      std::memcpy(&packed[i * bytes], &elements[i], bytes);
    }
    addresses[p] = memory.allocate(packed.size()).value();
    EXPECT_TRUE(memory.copy_from_host(addresses[p], packed.data(), packed.size()).ok());
  }
  for (const ParamSlot& slot : layout.slots) {
    const auto p = static_cast<size_t>(slot.param);
    const uint64_t bits = slot.kind == SlotKind::kAddress  ? addresses[p]
                          : slot.kind == SlotKind::kExtent ? arguments[p].elements.size()
                          : slot.kind == SlotKind::kStride ? 1
                                                           : arguments[p].bits;
    std::memcpy(&block[static_cast<size_t>(slot.offset)], &bits, static_cast<size_t>(slot.bytes));
  }
  const StatusOr<interp::Program> program = interp::compile(kernel, {.checks = true});
  const Status status =
      program.ok()
          ? interp::run(*program, {.grid = kernel.cluster, .block = kernel.block, .params = block},
                        memory, options)
          : program.status();
  result.error = std::string(status.message());
  for (size_t p = 0; p < arguments.size(); ++p) {
    std::vector<uint64_t>& elements = result.memory.emplace_back(arguments[p].elements.size());
    for (size_t i = 0; i < elements.size(); ++i) {
      const size_t bytes = bytes_of_element(p);
      EXPECT_TRUE(memory.copy_to_host(&elements[i], addresses[p] + i * bytes, bytes).ok());
    }
  }
  return result;
}

// The kernel after passes, with a verifier between them; none for "".
inline RunResult run_text(absl::string_view text, absl::string_view passes,
                          const std::vector<RunArgument>& arguments) {
  Kernel kernel = parse_kernel(text);
  if (!passes.empty()) run_verified(kernel, passes);
  return run_kernel(kernel, arguments);
}

// Passes change nothing of what it does, which is this.
inline void expect_run(absl::string_view text, absl::string_view passes,
                       const std::vector<RunArgument>& arguments,
                       const std::vector<uint64_t>& first_argument) {
  const RunResult plain = run_text(text, "", arguments);
  EXPECT_EQ(plain.error, "") << text;
  EXPECT_EQ(plain.memory[0], first_argument) << text;
  EXPECT_EQ(run_text(text, passes, arguments), plain) << passes << "\n" << text;
}

}  // namespace heddle::ir
