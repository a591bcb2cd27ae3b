#include "fuzz/pipelines.h"

#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/check.h"
#include "heddle/ir/passes/pipeline.h"
#include "heddle/ir/passes/pipeline_text.h"

namespace heddle::fuzz {
namespace {

using ir::Kernel;
using Passes = std::vector<std::string>;

bool rounds_products(const Kernel& kernel) {
  bool found = false;
  kernel.walk([&](ir::OpId id) {
    const ir::Op& op = kernel.op(id);
    found |= op.opcode == ir::Opcode::kMul && ir::is_float(kernel.type(op.result()).scalar);
  });
  return found;
}
// Whether the pass keeps what the kernel computes.
bool is_exact(const Kernel& kernel, absl::string_view pass) {
  return pass != "contract" || !rounds_products(kernel);
}

// The pass with values for all of its options.
template <class ValueOf>
std::string with_options(const ir::Pass& pass, ValueOf value_of) {
  if (pass.options.empty()) return std::string(pass.name);
  size_t next = 0;
  const auto append = [&](std::string* out, const ir::PassOption& option) {
    absl::StrAppend(out, option.name, "=", value_of(option, next++));
  };
  return absl::StrCat(pass.name, "{", absl::StrJoin(pass.options, ",", append), "}");
}
// As the pass is, or with all of its options set.
std::string with_random_options(const ir::Pass& pass, std::mt19937_64& random) {
  if (random() % 2 == 0) return std::string(pass.name);
  return with_options(pass, [&](const ir::PassOption& option, size_t) {
    const int64_t choices = std::min(option.most - option.least + 1, int64_t{8});
    return option.least + static_cast<int64_t>(random() % static_cast<uint64_t>(choices));
  });
}

// What a pipeline's text stands for.
std::vector<Passes> of_text(const PipelineRequest& request, absl::string_view text) {
  const auto steps = ir::parse_pipeline(request.registry, text);
  HEDDLE_CHECK(steps.ok(), std::string(steps.status().message()));
  Passes passes;
  for (const ir::PipelineStep& step : *steps) {
    if (!is_exact(request.kernel, step.pass->name)) continue;
    passes.push_back(with_options(
        *step.pass, [&](const ir::PassOption&, size_t option) { return step.values[option]; }));
  }
  return {passes};
}

// The names of the properties that hold of a kernel.
std::set<absl::string_view> properties_of(const PipelineRequest& request) {
  std::set<absl::string_view> names;
  for (const ir::Property& property : request.registry.properties()) {
    if (property.check(request.kernel).empty()) names.insert(property.name);
  }
  return names;
}

// So many of the registry's passes as their needs allow, in any order.
std::vector<Passes> in_any_order(const PipelineRequest& request) {
  std::set<absl::string_view> properties = properties_of(request);
  const auto holds = [&](absl::string_view name) { return properties.count(name) > 0; };
  Passes passes;
  for (const uint64_t length = 4 + request.random() % 12; passes.size() < length;) {
    const auto all = request.registry.passes();
    const ir::Pass& pass = all[request.random() % all.size()];
    if (!absl::c_all_of(pass.needs, holds) || !is_exact(request.kernel, pass.name)) continue;
    for (const absl::string_view name : pass.breaks) properties.erase(name);
    properties.insert(pass.gives.begin(), pass.gives.end());
    passes.push_back(with_random_options(pass, request.random));
  }
  return {passes};
}

// Each pass of the registry, behind the first one that gives what it needs.
std::vector<Passes> alone(const PipelineRequest& request) {
  const absl::Span<const ir::Pass> registered = request.registry.passes();
  const std::set<absl::string_view> properties = properties_of(request);
  std::vector<Passes> all;
  for (const ir::Pass& pass : registered) {
    if (!is_exact(request.kernel, pass.name)) continue;
    Passes passes;
    for (const absl::string_view need : pass.needs) {
      if (properties.count(need) > 0) continue;
      const auto gives = [&](const ir::Pass& other) {
        return absl::c_linear_search(other.gives, need);
      };
      const auto giver = absl::c_find_if(registered, gives);
      HEDDLE_CHECK(giver != registered.end(), "no pass gives what another needs");
      passes.emplace_back(giver->name);
    }
    passes.push_back(with_random_options(pass, request.random));
    all.push_back(std::move(passes));
  }
  return all;
}

// Four trips side by side, and accesses of at most eight bytes.
constexpr absl::string_view kUnroll4 =
    "promote-vars,unroll{factor=4,full=2},fold,if-convert,licm,cse,vectorize{bytes=8},reduce-"
    "strength,dce";
// The loads of three trips under way together, and few registers that wait.
constexpr absl::string_view kUnrollLoads =
    "promote-vars,fold,cse,unroll-loads{trips=3},widen-loops,vectorize,early-loads{registers=4},"
    "lower-division,licm,dce";

template <const absl::string_view& kText>
std::vector<Passes> text(const PipelineRequest& request) {
  return of_text(request, kText);
}
constexpr absl::string_view kO0 = "O0", kO1 = "O1", kO2 = "O2", kO3 = "O3";

constexpr NamedPipeline kPipelines[] = {
    {"O0", text<kO0>},
    {"O1", text<kO1>},
    {"O2", text<kO2>},
    {"O3", text<kO3>},
    {"unroll-4", text<kUnroll4>},
    {"unroll-loads", text<kUnrollLoads>},
    {"any-order", in_any_order},
    {"alone", alone},
};

}  // namespace

absl::Span<const NamedPipeline> pipelines() { return kPipelines; }

std::vector<Passes> pipelines_for(const PipelineRequest& request) {
  std::vector<Passes> all;
  for (const NamedPipeline& pipeline : kPipelines) {
    for (Passes& passes : pipeline.passes(request)) all.push_back(std::move(passes));
  }
  return all;
}

}  // namespace heddle::fuzz
