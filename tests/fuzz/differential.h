// Runs a kernel on the interpreter before and after every pass of pipelines, and compares all that
// it wrote with what it writes by the oracle, bit for bit; NaNs count as one. What the analyses say
// of its values is run as promises, which the interpreter checks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "fuzz/inputs.h"
#include "fuzz/oracle.h"
#include "fuzz/outcome.h"
#include "heddle/ir/interp/memory.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/passes/pass.h"

namespace heddle::fuzz {

struct Failure {
  // That ran, the last one being at fault; none: the analyses, the interpreter or the oracle.
  std::vector<std::string> passes;
  std::string what;
};

enum class Verdict : uint8_t {
  kSame,       // nothing differs
  kDiffers,    // see failure()
  kDiscarded,  // the program itself is wrong or runs for too long, so that there is nothing to
               // compare
};

struct Counts {
  int64_t consulted = 0;    // programs that the oracle was asked about
  int64_t comparisons = 0;  // runs whose output was compared
  int64_t pipelines = 0;
  int64_t passes = 0;  // that ran
  int64_t passes_changed = 0;
  std::map<std::string, int64_t> programs_changed_by;  // by pass, in whatever pipeline
};

class Differential {
 public:
  using Oracle = std::function<Outcome(const ir::Kernel&, const Inputs&)>;

  // `registry` must outlive it.
  explicit Differential(const ir::PassRegistry& registry, Oracle oracle = consult_oracle)
      : registry_(registry), oracle_(std::move(oracle)) {}

  // Runs the pipelines, lists of names whose needs are met; passes with which several begin run once.
  Verdict check(const ir::Kernel& kernel, uint64_t seed,
                absl::Span<const std::vector<std::string>> pipelines);

  // The last check's, where it differs; why it was discarded.
  const Failure& failure() const { return failure_; }
  const Counts& counts() const { return counts_; }

 private:
  Outcome run(const ir::Kernel& kernel);
  std::string compare(const ir::Kernel& kernel);
  // Pipelines as a tree: those that begin with the same passes run these once.
  struct Step {
    std::map<std::string, Step> next{};  // by the pass that comes then
    bool ends = false;                   // a pipeline
  };
  // Each runs passes and is false where something differs. What passes find out is handed on, as in
  // one pipeline.
  bool follow(const Step& step, ir::Kernel& kernel, ir::Analyses& analyses);
  bool finish(const Step& step, ir::Kernel& kernel, ir::Analyses& analyses);
  bool run_pass(const std::string& name, ir::Kernel& kernel, ir::Analyses& analyses);
  // Whether the oracle takes the kernel to mean what the interpreter made of it.
  std::string check_meaning(const ir::Kernel& kernel);
  std::string check_claims(const ir::Kernel& kernel);

  const ir::PassRegistry& registry_;
  const Oracle oracle_;
  Inputs inputs_;
  // Of the inputs' buffers, kept for all runs of a kernel.
  std::unique_ptr<ir::interp::Memory> memory_;
  std::vector<uint64_t> addresses_;
  Outcome expected_;
  std::set<std::string> changed_it_;       // passes, the kernel
  absl::flat_hash_set<std::string> seen_;  // texts of kernels that were compared already
  Failure failure_;
  Counts counts_;
};

}  // namespace heddle::fuzz
