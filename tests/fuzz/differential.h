// Runs a kernel on the interpreter before and after every pass of pipelines, and compares all that
// it wrote, bit for bit; NaNs count as one. What the analyses say of its values is run as promises,
// which the interpreter checks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "fuzz/inputs.h"
#include "heddle/ir/interp/memory.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/passes/pass.h"

namespace heddle::fuzz {

struct Failure {
  std::vector<std::string> passes;  // that ran, the last one being at fault; none: the analyses
  std::string what;
};

enum class Verdict : uint8_t {
  kSame,       // nothing differs
  kDiffers,    // see failure()
  kDiscarded,  // the program itself is wrong or runs for too long, so that there is nothing to
               // compare
};

struct Counts {
  int64_t comparisons = 0;  // runs whose output was compared
  int64_t pipelines = 0;
  int64_t passes = 0;  // that ran
  int64_t passes_changed = 0;
  std::map<std::string, int64_t> programs_changed_by;  // by pass: the default pipeline's runs
};

class Differential {
 public:
  // `registry` must outlive it.
  explicit Differential(const ir::PassRegistry& registry) : registry_(registry) {}

  // Runs the pipelines, lists of names whose needs are met.
  Verdict check(const ir::Kernel& kernel, uint64_t seed,
                absl::Span<const std::vector<std::string>> pipelines);

  // The last check's, where it differs; why it was discarded.
  const Failure& failure() const { return failure_; }
  const Counts& counts() const { return counts_; }

 private:
  struct Outcome {
    std::string error{};  // what the interpreter says; empty where all is well
    std::vector<std::vector<uint8_t>> buffers{};
  };
  Outcome run(const ir::Kernel& kernel);
  // Empty where both are alike.
  std::string difference(const ir::Kernel& kernel, const Outcome& before,
                         const Outcome& after) const;
  std::string compare(const ir::Kernel& kernel);
  std::string check_claims(const ir::Kernel& kernel);

  const ir::PassRegistry& registry_;
  Inputs inputs_;
  // Of the inputs' buffers, kept for all runs of a kernel.
  std::unique_ptr<ir::interp::Memory> memory_;
  std::vector<uint64_t> addresses_;
  Outcome expected_;
  absl::flat_hash_set<std::string> seen_;  // texts of kernels that were compared already
  Failure failure_;
  Counts counts_;
};

// Pipelines for a kernel: the default one, and so many of the registry's passes in any order that
// their needs allow. Without `contract` where that would change roundings.
std::vector<std::vector<std::string>> pipelines_for(const ir::Kernel& kernel,
                                                    const ir::PassRegistry& registry,
                                                    std::mt19937_64& random, int count);

}  // namespace heddle::fuzz
