// Passes on kernels from text, for tests that look at single values. Others are filetests.
#pragma once

#include "gtest/gtest.h"
#include "heddle/ir/passes/pipeline.h"
#include "heddle/ir/text/printer.h"
#include "ir/text/parse_text.h"

namespace heddle::ir {

// Runs passes on a kernel, verifying after each.
inline void run_verified(Kernel& kernel, absl::string_view passes) {
  const Status status = run_pipeline(kernel, passes, {.verify_each = true});
  EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace heddle::ir
