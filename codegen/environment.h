// The environment of the process.
#pragma once

#include <cstdlib>
#include <string>

namespace heddle::codegen {

// Empty where the variable is not set.
inline std::string environment_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace heddle::codegen
