// Runs the integer part of the PTX that the emitter prints, for one thread: enough to see whether
// control flow, copies, registers and addresses mean what the IR means. It knows nothing of the
// emitter but its text.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace heddle::codegen {

class PtxSimulator {
 public:
  // Stops the test run where the text is not understood.
  explicit PtxSimulator(absl::string_view text);

  // The entry's parameters, in order.
  std::vector<uint64_t> params;
  // Global memory: address 0x1000 is its first byte.
  static constexpr uint64_t kBase = 0x1000;
  std::vector<uint8_t> memory;
  uint32_t thread = 0;  // %tid.x

  // Whether it came to its end within so many instructions.
  bool run(int64_t max_instructions);

 private:
  struct Instruction {
    std::string text;
    std::string guard;              // "%p1", "!%p1" or nothing
    std::vector<std::string> name;  // "ld", "global", "v2", "b32"
    std::vector<std::string> operands;
  };

  uint64_t read(const std::string& operand) const;
  void write(const std::string& reg, uint64_t value);
  void execute(const Instruction& i);
  void move(const Instruction& i);
  void access(const Instruction& i);
  uint64_t address_of(const std::string& operand) const;
  [[noreturn]] void unknown(const Instruction& i) const;

  std::string entry_;
  std::vector<Instruction> code_;
  std::map<std::string, size_t> labels_;
  std::map<std::string, uint64_t> registers_;
};

}  // namespace heddle::codegen
