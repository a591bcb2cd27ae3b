// The cases of a filetest (filetest.h), as text.
//
//   for (const CaseText& part : split_cases(file)) {
//     for (const Instance& instance : instances_of(part, faults)) …   // one for each $T
//   }
//
// A line that begins with `; ---` starts the next case; what follows the dashes is its title. In a case,
//
//   ; for: $T = i32, f32          or a class of ops.def: num int float bits word data
//   ; for: $T/$U = f32/i32, f64/i64
//   ; for: $op = barrier, `store %x, %n, %n`          what has commas or slashes of its own
//
// makes one instance for each value, the dollar names in the rest of its text replaced; several such
// lines make one for each combination.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace heddle::filetest {

// Something wrong, at a line of the file.
struct Fault {
  int line = 0;
  std::string text;
};

struct CaseText {
  std::string title;
  int first_line = 1;
  absl::string_view text;  // of the file that was split
};
std::vector<CaseText> split_cases(absl::string_view file);

struct Instance {
  // With newlines in front, so that its lines have the numbers that they have in the file.
  std::string text;
  std::string values;  // "$T = i32, $op = add"; empty where the case has no variables
};
std::vector<Instance> instances_of(const CaseText& part, std::vector<Fault>& faults);

// A comment of the form `; word: rest`.
struct Directive {
  int line = 0;
  std::string word;
  std::string rest;
  bool own_line = false;  // nothing stands in front of it
};
// Those of a case in order, lines that continue one (`;` and four spaces or more) joined to it. A golden
// (`; | `) is no directive.
std::vector<Directive> directives_of(absl::string_view text);

// Whether a line is one of a golden, and its content.
std::optional<absl::string_view> golden_line(absl::string_view line);

}  // namespace heddle::filetest
