// What the kernels behind dsl/FROM_CUDA.md share.
#pragma once

#include "gtest/gtest.h"
#include "heddle/codegen/toolchain/tool_path.h"
#include "heddle/heddle.h"
#include "support/matchers.h"

namespace heddle {

// Records an expression.
template <class X>
void use(const X&) {}

// To machine code where there is an assembler.
template <class... P>
void expect_compiles(const Kernel<P...>& kernel, const Signature& signature,
                     const char* target = "sm_90a") {
  const bool assemble = codegen::find_tool(codegen::Tool::kPtxas).ok();
  const auto compiled =
      kernel.compile(signature, CompileOptions{.block = {256, 1, 1},
                                               .cluster = {2, 1, 1},
                                               .target = target,
                                               .stage = assemble ? Stage::kCubin : Stage::kPtx});
  EXPECT_THAT(compiled, IsOk());
}

}  // namespace heddle
