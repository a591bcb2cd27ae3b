// The pipelines that a random kernel goes through, eight of them: the levels, and what exercises
// passes outside of these, with options and in other places.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/passes/pass.h"

namespace heddle::fuzz {

// What pipelines of a kernel follow from.
struct PipelineRequest {
  const ir::Kernel& kernel;
  const ir::PassRegistry& registry;
  std::mt19937_64& random;
};

struct NamedPipeline {
  absl::string_view name;
  // Lists of passes whose needs are met, as pipelines call them; each begins with the kernel. Without
  // `contract` where that would change roundings.
  std::vector<std::vector<std::string>> (*passes)(const PipelineRequest& request);
};
absl::Span<const NamedPipeline> pipelines();

// All that they run for a kernel.
std::vector<std::vector<std::string>> pipelines_for(const PipelineRequest& request);

}  // namespace heddle::fuzz
