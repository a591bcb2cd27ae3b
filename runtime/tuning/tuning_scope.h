// Watches which problems a thread's operations solve, and says by which candidates: how they are measured.
//
//   TuningScope scope;
//   Status s = kernels::gemm(dry_stream, a, b, d);               // runs on the model's choice
//   for (const std::string& name : scope.asked()[0].candidates) {
//     scope.use(scope.asked()[0], name);
//     time(kernels::gemm(stream, a, b, d));
//   }
//
// Within a scope no file of tuned choices counts: what is not chosen by use() is the model's choice.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heddle/runtime/tuning/chosen_configs.h"

namespace heddle::runtime {

// A problem that an operation had to solve.
struct TuningProblem {
  // The name under which choices are kept, the problem, its candidates, and which of them the model chose.
  std::string operation, problem;
  std::vector<std::string> candidates;
  std::string model;
};

// Lives on a thread's stack, and is about operations that this thread calls. The innermost scope counts.
class TuningScope {
 public:
  // Begins and ends it.
  TuningScope();
  ~TuningScope();
  TuningScope(const TuningScope&) = delete;
  TuningScope& operator=(const TuningScope&) = delete;

  // The thread's innermost one; nullptr: none.
  static TuningScope* current();

  // The problems so far, or since ask_again(), each once, in the order in which they came.
  const std::vector<TuningProblem>& asked() const { return asked_; }
  // Forgets them, but not what was chosen for them.
  void ask_again() { asked_.clear(); }
  // From now on this candidate solves the problem.
  void use(const TuningProblem& problem, const std::string& candidate);

  // For Tunable: whether the problem is in asked(), adding it, and what use() chose for an operation.
  bool knows(const std::string& operation, const std::string& problem) const;
  void add(TuningProblem problem);
  ChosenConfigs& of(const std::string& operation);

 private:
  TuningScope* outer_;
  std::vector<TuningProblem> asked_;
  std::map<std::string, std::unique_ptr<ChosenConfigs>> chosen_;
};

}  // namespace heddle::runtime
