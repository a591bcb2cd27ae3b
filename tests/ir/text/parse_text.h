// Kernels from text, for tests that look at single values in them.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/text/parser.h"

namespace heddle::ir {

// A kernel from its whole text. A mistake in the text ends the test program.
inline Kernel parse_kernel(absl::string_view text) {
  StatusOr<Kernel> kernel = parse(text, "test.ir");
  if (!kernel.ok()) {
    ADD_FAILURE() << kernel.status() << "\n" << text;
    std::abort();
  }
  return *std::move(kernel);
}

// A kernel of these ops with a block of these threads: "256, 1, 1" or "?".
inline Kernel parse_body(absl::string_view block, absl::string_view params,
                         absl::string_view body) {
  return parse_kernel(absl::StrCat("kernel @test(", params, ") block(", block,
                                   ") cluster(1, 1, 1) target(sm_90a) {\n", body, "}\n"));
}

// The value that the text calls %name.
inline ValueId value_named(const Kernel& kernel, absl::string_view name) {
  for (size_t i = 0; i < kernel.value_count(); ++i) {
    const ValueId id{static_cast<uint32_t>(i)};
    if (kernel.text(kernel.value(id).name) == name) return id;
  }
  ADD_FAILURE() << "no value is called %" << name;
  std::abort();
}

}  // namespace heddle::ir
