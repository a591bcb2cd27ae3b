// Mistakes that Heddle reported, taken apart, and held against those that a case expects.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/runtime/testing/case_text.h"

namespace heddle::filetest {

struct Found {
  int line = 0;
  std::string text;          // all of it, with notes and fix
  std::vector<Fault> notes;  // with their own lines
  std::string fix;
};

// The mistakes in a message: "t.ir:3: error: …" with what is indented below it. One that names no line of
// `file`, in front or behind, is the kernel's.
std::vector<Found> found_in(absl::string_view message, absl::string_view file, int kernel_line);

// Each is expected, and each expectation met. `kind` is what messages call them: "error", "report".
void compare_found(absl::string_view kind, const std::vector<Found>& found,
                   const std::vector<Fault>& wanted, const std::vector<Fault>& notes,
                   const std::vector<Fault>& fixes, std::vector<Fault>& faults);

}  // namespace heddle::filetest
