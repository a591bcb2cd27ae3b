#include "heddle/runtime/tuning/tuning_scope.h"

#include <algorithm>
#include <utility>

namespace heddle::runtime {
namespace {

thread_local TuningScope* innermost = nullptr;

}  // namespace

TuningScope::TuningScope() : outer_(std::exchange(innermost, this)) {}
TuningScope::~TuningScope() { innermost = outer_; }

TuningScope* TuningScope::current() { return innermost; }

void TuningScope::use(const TuningProblem& problem, const std::string& candidate) {
  of(problem.operation).set(problem.problem, candidate);
}

bool TuningScope::knows(const std::string& operation, const std::string& problem) const {
  return std::any_of(asked_.begin(), asked_.end(), [&](const TuningProblem& known) {
    return known.operation == operation && known.problem == problem;
  });
}

void TuningScope::add(TuningProblem problem) { asked_.push_back(std::move(problem)); }

ChosenConfigs& TuningScope::of(const std::string& operation) {
  std::unique_ptr<ChosenConfigs>& chosen = chosen_[operation];
  if (chosen == nullptr) chosen = std::make_unique<ChosenConfigs>(ChosenConfigs::Names());
  return *chosen;
}

}  // namespace heddle::runtime
