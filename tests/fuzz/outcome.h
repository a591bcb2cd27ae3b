// What a run of a fuzzed kernel left behind, and where two runs differ.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fuzz/inputs.h"
#include "heddle/ir/kernel.h"

namespace heddle::fuzz {

struct Outcome {
  std::string error{};  // empty where all is well
  std::vector<std::vector<uint8_t>> buffers{};
};

// The first element that differs: "%a[3] was 1 and became 2". Empty where both are alike; NaNs count as one.
std::string difference(const ir::Kernel& kernel, const Inputs& inputs, const Outcome& before,
                       const Outcome& after);

}  // namespace heddle::fuzz
