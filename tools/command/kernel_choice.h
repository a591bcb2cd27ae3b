// Which registered kernel a command is about, and plug-ins that bring more of them.
#pragma once

#include <string>
#include <vector>

#include "heddle/ir/status.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::tools {

// As given: a name, "dtype=bf16" and "rows=1000".
struct KernelChoice {
  std::string kernel;
  std::vector<std::string> settings = {};
  std::vector<std::string> sizes = {};
};

struct ChosenKernel {
  const runtime::Operation* operation = nullptr;
  runtime::Settings settings;
  runtime::Sizes sizes;  // those that were given
};

// The kernel of a name. kNotFound for an unknown one, with the nearest name; kInvalidArgument for one
// that is registered wrongly.
StatusOr<const runtime::Operation*> find_kernel(const std::string& name);
// And kInvalidArgument for settings and sizes that it does not have.
StatusOr<ChosenKernel> choose_kernel(const KernelChoice& choice);

// Loads a shared library for the kernels and passes that it registers; it stays until the program ends.
// kInvalidArgument where it is missing, cannot be loaded or registers none.
Status load_plugin(const std::string& path);

}  // namespace heddle::tools
