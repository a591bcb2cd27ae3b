// Pipelines as text.
//
//   promote-vars,unroll{factor=4},fold,dce      passes by name, and their options
//   O2,unroll-loads{trips=2}                    a level stands for its passes
//   O3,-licm                                    without a pass that stands in front
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/passes/pass.h"
#include "heddle/ir/status.h"

namespace heddle::ir {

// How much is optimised, by a name that stands for passes.
struct PipelineLevel {
  absl::string_view name;
  absl::string_view passes;
  absl::string_view says;  // one line
};
// O0 to O3.
absl::Span<const PipelineLevel> pipeline_levels();

// A pass of a pipeline, and the values of its options in their order.
struct PipelineStep {
  const Pass* pass = nullptr;
  std::vector<int64_t> values{};
};

// The steps of a pipeline. In the place of a level there are its passes and those that are registered to
// stand beside one of them. kInvalidArgument where a name, an option or a value is wrong.
StatusOr<std::vector<PipelineStep>> parse_pipeline(const PassRegistry& registry,
                                                   absl::string_view text);

// The pass of a name. kInvalidArgument where there is none; `where` says who asks: "pipeline 'a,b'".
StatusOr<const Pass*> find_pass(const PassRegistry& registry, absl::string_view name,
                                absl::string_view where);
// Names with commas between them. What stands between braces is left together.
std::vector<absl::string_view> split_pipeline(absl::string_view text);

}  // namespace heddle::ir
