// What is said of kernels that are wrong. For test files alone.
#pragma once

#include <string>

#include "heddle/heddle.h"

namespace heddle {

// The error of compiling a kernel to PTX for sm_90a; "" where it has none.
template <class... P>
std::string compile_error(const Kernel<P...>& kernel, const Signature& signature) {
  const auto compiled = kernel.compile(
      signature, CompileOptions{.block = {128, 1, 1}, .target = "sm_90a", .stage = Stage::kPtx});
  return std::string(compiled.status().message());
}

}  // namespace heddle
