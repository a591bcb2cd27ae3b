// What a pass is, and a table of them.
//
//   PassRegistry registry;                                       // holds the built-in passes
//   registry.add({.name = "count", .summary = "Count ops", .run = [&](Kernel& kernel) { … }});
//   run_pipeline(kernel, "promote-vars,count,dce", {.registry = &registry});   // pipeline.h
//
// A pass declares what must hold before it runs, what it establishes and what it destroys, so that
// a pipeline that cannot work is refused before it starts. It says which analyses survive it, and what
// can be set: `unroll{factor=4}`. Verification checks what it declares (PipelineOptions::verify_each).
//
// A program or plug-in registers its own for whatever is compiled from then on:
//
//   const RegisteredPass count({.name = "count", .summary = "Count ops", .run = …, .after = "vectorize"});
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/analysis/analyses.h"
#include "heddle/ir/diagnostic.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/status.h"

namespace heddle::ir {

// Something that holds of a kernel as a whole, or does not.
struct Property {
  absl::string_view name;  // as passes declare it; must outlive the registry
  absl::string_view says;  // in messages: "a kernel without variables"; likewise
  // What speaks against it; empty where it holds.
  std::function<Diagnostics(const Kernel&)> check;
};
// No variables: values are immutable, loops and ifs say what they carry.
inline constexpr absl::string_view kNoVariables = "no-variables";

// A number of a pass that pipelines may set.
struct PassOption {
  absl::string_view name;
  int64_t otherwise = 0;        // where the pipeline does not say
  int64_t least = 0, most = 0;  // inclusive
  absl::string_view says;       // one line
};

// What a pass works on. Where a Kernel& is expected, it is one.
class PassContext {
 public:
  // `options` has a value for each of the pass's options, in their order.
  PassContext(Kernel& kernel, Analyses& analyses, absl::Span<const PassOption> options = {},
              absl::Span<const int64_t> values = {})
      : kernel_(kernel), analyses_(analyses), options_(options), values_(values) {}

  Kernel& kernel() const { return kernel_; }
  operator Kernel&() const { return kernel_; }  // NOLINT: most passes need no more
  // What is known of the kernel as the last pass has left it. A pass that asks after it has changed the
  // kernel gets what was true before, unless it was not known.
  template <class A>
  A& analysis() const {
    return analyses_.get<A>();
  }
  // The value of an option that the pass declares. Of another 0, and the pass's run is an error.
  int64_t option(absl::string_view name) const;

  // Makes the pass's run an error, from where none can be returned; the first of several counts.
  void fail(Status why) const { failure_.Update(std::move(why)); }
  const Status& failure() const { return failure_; }

 private:
  Kernel& kernel_;
  Analyses& analyses_;
  absl::Span<const PassOption> options_;
  absl::Span<const int64_t> values_;
  mutable Status failure_;
};

struct Pass {
  using Names = std::vector<absl::string_view>;

  absl::string_view name;     // as pipelines call it; must outlive the registry
  absl::string_view summary;  // one line, a verb first; likewise
  // Rewrites the kernel and says whether it changed anything. An error ends the pipeline, and so does a kernel that is
  // not legal behind a pass of a program or plug-in.
  std::function<StatusOr<bool>(PassContext&)> run{};
  // Properties: those it relies on, those that hold behind it, and those that may not.
  Names needs{}, gives{}, breaks{};
  // The analyses that hold of the kernel still where it has changed something.
  Names keeps{};
  std::vector<PassOption> options{};
  // Where the levels O0 to O3 run it, if they do: behind the last run of a pass in a level, or in front of the first.
  absl::string_view after{}, before{};
  // The architectures it is for, such as {"sm_90a"}; all where there is none.
  Names targets{};
};

// The passes that come with Heddle, in the order in which they usually run.
absl::Span<const Pass> builtin_passes();
absl::Span<const Property> builtin_properties();

// Passes and properties by name: the built-in ones and a program's own. Not changed while a pipeline runs.
class PassRegistry {
 public:
  // The built-in ones.
  PassRegistry();

  // AlreadyExists where a pass has that name; NotFound where it names a property that there is not;
  // InvalidArgument where the name cannot stand in a pipeline, there is nothing to run, or an option takes no value.
  Status add(Pass pass);
  // AlreadyExists where a property has that name; InvalidArgument where nothing checks it.
  Status add(Property property);
  // nullptr where there is none.
  const Pass* find(absl::string_view name) const;
  const Property* find_property(absl::string_view name) const;
  absl::Span<const Pass> passes() const { return passes_; }
  // Whether one of its passes comes with Heddle.
  bool is_builtin(const Pass& pass) const {
    return &pass < passes_.data() + builtin_passes().size();
  }
  absl::Span<const Property> properties() const { return properties_; }

 private:
  std::vector<Pass> passes_;
  std::vector<Property> properties_;
};

// What pipelines use where their options name no registry: the built-in passes and all registered ones, as of
// now. The error of PassRegistry::add() where one of these cannot be added.
StatusOr<std::shared_ptr<const PassRegistry>> process_passes();

// Registers a pass, or a property, for the whole program as long as this object lives: a constant of a
// program or plug-in. Kernels that are compiled already stay as they are.
class RegisteredPass {
 public:
  explicit RegisteredPass(Pass pass);
  explicit RegisteredPass(Property property);
  ~RegisteredPass();
  RegisteredPass(const RegisteredPass&) = delete;
  RegisteredPass& operator=(const RegisteredPass&) = delete;

 private:
  int number_;
};

}  // namespace heddle::ir
