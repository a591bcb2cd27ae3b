// Which registered kernel a command is about, and plug-ins that bring more of them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "heddle/runtime/registry.h"

namespace heddle::tools {

// As given: a name and "dtype=bf16".
struct KernelChoice {
  std::string kernel;
  std::vector<std::string> settings;
};

struct ChosenKernel {
  const runtime::KernelEntry* entry = nullptr;
  runtime::Settings settings;
};

// kNotFound for an unknown kernel, with the nearest name; kInvalidArgument for settings that it
// does not have.
absl::StatusOr<ChosenKernel> choose_kernel(const KernelChoice& choice);

// Loads a shared library for the kernels that it registers; it stays until the program ends.
// kInvalidArgument where it is missing, cannot be loaded or registers none.
absl::Status load_plugin(const std::string& path);

}  // namespace heddle::tools
