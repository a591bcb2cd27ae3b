// Measures the candidates of everything that can be tuned in a call of an operation.
//
//   StatusOr<std::vector<Tuned>> tuned = search(device, call, {.budget_s = 60}, timer);
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/ir/status.h"
#include "heddle/runtime/operation/bound_call.h"
#include "heddle/runtime/tuning/tuned_choices.h"
#include "heddle/runtime/tuning/tuning_scope.h"
#include "heddle/tools/command/execution.h"

namespace heddle::tools {

// Microseconds of a call on one of several sets of operands, which take turns: the median of bursts of
// `launches`.
using Launch = std::function<Status(size_t set)>;
using Timer = std::function<StatusOr<double>(const Launch& launch, int launches, int bursts)>;

// Called behind each candidate: which of how many of a problem, and the fastest microseconds so far.
using OnProgress =
    std::function<void(const runtime::TuningProblem& problem, size_t done, double best_us)>;

// How long to search, and who is told.
struct SearchOptions {
  double budget_s = 60;
  OnProgress on_progress = {};
};

// A candidate's microseconds.
struct CandidateTime {
  std::string name;
  double us;
};

// What was found out of a problem.
struct Tuned {
  runtime::TuningProblem problem;
  runtime::TunedChoice choice;
  size_t tried = 0;     // candidates that were launched
  size_t measured = 0;  // of them those that ran
  std::vector<CandidateTime>
      times;  // of them those whose results were not found wrong, fastest first
  std::vector<std::string> failed;  // "64x32x128 …: why", of those that were left out
};

// Times by events of a stream of the device, after it has been idle.
Timer device_timer(const Device& device);

// Tunes the problems that the call has to solve, one after the other; each by its candidates in the order
// of the operation, the model's first. All run once; those that are near the fastest are timed again.
// Inputs of a float type are random in [-1, 1], others zeros, and as many sets of operands take turns as
// fill four times the L2 cache. Candidates that cannot be launched are left out, those near the fastest
// whose results differ from the model's, and those that the budget has no time for, but the model's. Errors: the call itself fails, or all candidates of a
// problem do.
StatusOr<std::vector<Tuned>> search(const Device& device, const runtime::BoundCall& call,
                                    const SearchOptions& options, const Timer& timer);

}  // namespace heddle::tools
