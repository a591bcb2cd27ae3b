// Passes on text: what a pipeline makes of one kernel must be the other, up to names.
#pragma once

#include "gtest/gtest.h"
#include "heddle/ir/passes/pipeline.h"
#include "heddle/ir/text/printer.h"
#include "ir/text/parse_text.h"

namespace heddle::ir {

// The text of a kernel in which only parameters have names.
inline std::string anonymous_text(Kernel kernel) {
  for (size_t i = 0; i < kernel.value_count(); ++i) {
    const ValueId id{static_cast<uint32_t>(i)};
    if (!kernel.param_index(id)) kernel.value(id).name = StringId::kNone;
  }
  return print(kernel);
}

// Runs passes on a kernel, verifying after each.
inline void run_verified(Kernel& kernel, absl::string_view passes) {
  const Status status = run_pipeline(kernel, passes, {.verify_each = true});
  EXPECT_TRUE(status.ok()) << status.message();
}

// With a block of 256 threads.
inline void expect_passes(absl::string_view passes, absl::string_view params,
                          absl::string_view before, absl::string_view after) {
  Kernel kernel = parse_body("256, 1, 1", params, before);
  run_verified(kernel, passes);
  EXPECT_EQ(anonymous_text(kernel), anonymous_text(parse_body("256, 1, 1", params, after)))
      << "from" << before;
}

}  // namespace heddle::ir
