// What is wrong with a kernel, and where: found while tracing, by the verifier, by a pass or by the
// emitter. Mistakes are collected, so that a user sees all of them at once.
//
//   row_sum.cc:21: error: sync_threads() under a condition that differs between threads
//     row_sum.cc:19: this If depends on thread_idx.x
//     fix: move the barrier out of the If, or make the condition the same for the whole block
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"

namespace heddle::ir {

// A line of source, owned: diagnostics outlive the kernel that they speak of.
struct SourceLine {
  std::string file;  // empty: unknown
  int line = 0;
};

struct Note {
  SourceLine place;
  std::string message;
};

struct Diagnostic {
  SourceLine place;
  std::string message;      // what is wrong and why, without a full stop
  std::vector<Note> notes;  // other lines that have a part in it
  std::string fix;          // how to mend it; empty where nothing sensible can be said
  std::string op;           // the IR op concerned, printed; empty while tracing
  // What all that one mistake leads to have in common, and others have not; empty: all of its text.
  std::string mistake = {};
};

using Diagnostics = std::vector<Diagnostic>;

// Each mistake once, by the first diagnostic of it, which counts the others: "and 6 more like it".
// Those that say the very same, as a function called twice makes them, are one.
Diagnostics by_mistake(const Diagnostics& diagnostics);

// One diagnostic, as shown above, or each mistake among several.
std::string to_string(const Diagnostic& diagnostic);
std::string to_string(const Diagnostics& diagnostics);

// OK where there are none, otherwise InvalidArgument with each mistake in its message, headed by
// `what`: "kernel 'row_sum' has 2 errors".
Status to_status(absl::string_view what, const Diagnostics& diagnostics);

}  // namespace heddle::ir
