#include "heddle/ir/passes/pass.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/passes/passes.h"

namespace heddle::ir {

absl::Span<const Pass> builtin_passes() {
  static const auto* const passes = new std::vector<Pass>{
      {.name = "promote-vars",
       .summary = "Turn variables into SSA values that loops and ifs carry",
       .run = promote_vars,
       .gives = kPureSsa},
      {.name = "unroll",
       .summary = "Unroll loops where the program asks for it",
       .run = unroll,
       .needs = kPureSsa},
      {.name = "fold", .summary = "Fold constants and simplify", .run = fold},
      {.name = "reduce-strength",
       .summary = "Turn divisions by computed powers of two into shifts and masks",
       .run = reduce_strength},
      {.name = "dce", .summary = "Eliminate dead code", .run = dce},
      // A variable hides what a loop changes, so before promote-vars nothing would move.
      {.name = "licm", .summary = "Hoist loop-invariant code", .run = licm, .needs = kPureSsa},
      {.name = "cse", .summary = "Eliminate common subexpressions", .run = cse},
      // Behind licm, so that what the offsets of all trips share stands before the loop.
      {.name = "widen-loops",
       .summary = "Split loops along arrays into rounds as wide as an access",
       .run = widen_loops,
       .needs = kPureSsa},
      {.name = "unroll-loads",
       .summary = "Unroll loops so that loads of several trips are under way",
       .run = unroll_loads,
       .needs = kPureSsa},
      {.name = "vectorize",
       .summary = "Merge neighbouring accesses into accesses to vectors",
       .run = vectorize},
      // Behind vectorize, which merges neighbours of one block.
      {.name = "early-loads",
       .summary = "Move loads in front of the pins that ask for them",
       .run = early_loads,
       .needs = kPureSsa},
      {.name = "contract",
       .summary = "Contract multiplications and additions to fma (changes roundings)",
       .run = contract},
      {.name = "order", .summary = "Put pure ops in the order of their uses", .run = order},
  };
  return *passes;
}

PassRegistry::PassRegistry() : passes_(builtin_passes().begin(), builtin_passes().end()) {}

Status PassRegistry::add(Pass pass) {
  const bool word =
      !pass.name.empty() && std::all_of(pass.name.begin(), pass.name.end(), [](unsigned char c) {
        return absl::ascii_isalnum(c) || c == '-' || c == '_';
      });
  if (!word) {
    return InvalidArgumentError(
        absl::StrCat("a pass cannot be called '", pass.name,
                     "', because pipelines are names of letters, digits, '-' and '_' with commas "
                     "between them"));
  }
  if (pass.run == nullptr) {
    return InvalidArgumentError(
        absl::StrCat("pass '", pass.name, "' has no function to run; set Pass::run"));
  }
  if (find(pass.name) != nullptr) {
    return AlreadyExistsError(
        absl::StrCat("there is a pass '", pass.name, "' already; give yours another name"));
  }
  passes_.push_back(std::move(pass));
  return OkStatus();
}

const Pass* PassRegistry::find(absl::string_view name) const {
  for (const Pass& pass : passes_) {
    if (pass.name == name) return &pass;
  }
  return nullptr;
}

}  // namespace heddle::ir
