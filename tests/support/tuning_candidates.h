// Runs an operation by what `heddle tune` may choose.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/runtime/tuning/tuning_scope.h"

namespace heddle {

// Calls run() as launches choose, and then for candidates of the first problem that it asks for: `most` of them, or all where
// that is 0, the last one among them; then that runs twice, as what is chosen once is remembered. Stops where a test has failed.
inline void by_each_candidate(const std::function<void()>& run, int most = 0) {
  runtime::TuningScope scope;
  run();
  if (scope.asked().empty()) return;
  const runtime::TuningProblem problem = scope.asked()[0];
  const std::vector<std::string>& all = problem.candidates;
  EXPECT_THAT(all, testing::Contains(problem.model));
  const size_t step = most == 0 ? 1 : (all.size() + most - 1) / most;
  for (size_t i = (all.size() - 1) % step; i < all.size(); i += step) {
    if (testing::Test::HasFatalFailure()) return;
    SCOPED_TRACE(problem.problem + ": " + all[i]);
    scope.use(problem, all[i]);
    run();
    if (most == 0 && i + 1 == all.size() && !testing::Test::HasFatalFailure()) run();
  }
}

}  // namespace heddle
