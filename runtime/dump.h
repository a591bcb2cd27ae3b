// HEDDLE_DUMP: shows what becomes of every kernel that a program compiles.
#pragma once

#include "absl/strings/string_view.h"
#include "heddle/ir/kernel.h"

namespace heddle::runtime {

// Whether HEDDLE_DUMP names `what`: "trace", "ir", "ptx", "constants" or "all".
bool dump_wanted(absl::string_view what);

// Prints a stage's text under a heading, or into HEDDLE_DUMP_DIR/<kernel>.<suffix>.
void dump(absl::string_view kernel, absl::string_view suffix, absl::string_view text);

// The host values that a kernel has baked in: one line each, with its type and the user's line.
std::string list_constants(const ir::Kernel& traced);

}  // namespace heddle::runtime
