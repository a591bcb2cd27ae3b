// Runs one case of a filetest: what filetest.h promises of its directives.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/runtime/testing/expectations.h"

namespace heddle::filetest {

// What the golden below `check-exact` should be.
struct Renewed {
  int line = 0;       // of `check-exact`
  int last_line = 0;  // of the golden that was there
  std::string text;
};

// `text` is an instance of the case, with the line numbers of its file, which places call `name`.
std::vector<Renewed> run_case(absl::string_view text, absl::string_view name,
                              const Expectations& wanted, std::vector<Fault>& faults);

}  // namespace heddle::filetest
