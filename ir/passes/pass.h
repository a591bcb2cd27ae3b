// What a pass is, and a table of them.
//
//   PassRegistry registry;                                       // holds the built-in passes
//   registry.add({.name = "count", .summary = "Counts ops", .run = [&](Kernel& k) { … }});
//   run_pipeline(kernel, "promote-vars,count,dce", {.registry = &registry});   // pipeline.h
//
// A pass declares what must hold before it runs, what it establishes and what it destroys, so that
// a pipeline that cannot work is refused before it starts.
#pragma once

#include <functional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/status.h"

namespace heddle::ir {

// What may hold of a kernel as a whole: bits of a set.
enum Property : uint32_t {
  kNoProperties = 0,
  kPureSsa = 1,  // no variables: values are immutable, loops and ifs say what they carry
};

struct Pass {
  absl::string_view name;     // as pipelines call it; must outlive the registry
  absl::string_view summary;  // one line, a verb first; likewise
  // Rewrites the kernel and says whether it changed anything. An error ends the pipeline.
  std::function<StatusOr<bool>(Kernel&)> run;
  uint32_t needs = kNoProperties;
  uint32_t gives = kNoProperties;
  uint32_t breaks = kNoProperties;
};

// The passes that come with Heddle, in the order in which they usually run.
absl::Span<const Pass> builtin_passes();

// Passes by name: the built-in ones and a program's own. Not changed while a pipeline runs.
class PassRegistry {
 public:
  PassRegistry();

  // AlreadyExists where a pass has that name; InvalidArgument where the name cannot stand in a
  // pipeline or there is nothing to run.
  Status add(Pass pass);
  // nullptr where there is none.
  const Pass* find(absl::string_view name) const;
  absl::Span<const Pass> passes() const { return passes_; }

 private:
  std::vector<Pass> passes_;
};

}  // namespace heddle::ir
