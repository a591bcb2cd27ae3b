// HEDDLE_DUMP=trace,ir,ptx,constants or all: shows what becomes of every kernel that a program
// compiles.
#pragma once

#include "absl/strings/string_view.h"
#include "heddle/ir/kernel.h"

namespace heddle::runtime {

// Whether HEDDLE_DUMP names `what`, or all. Says once a process what else it names, and when the
// process ends that PTX was asked for by name and never came: the interpreter has none.
bool dump_wanted(absl::string_view what);

// Prints a stage's text under a heading, or into HEDDLE_DUMP_DIR/<kernel>.<suffix>. Compilations
// after the first one of that name, be they variants or other kernels, get <kernel>.1.<suffix> and
// on, in the order in which they come; a thread's dumps of one name are of one compilation until a
// suffix comes again. Thread-safe.
void dump(absl::string_view kernel, absl::string_view suffix, absl::string_view text);

// The host values that a kernel has baked in: one line each, with its type and the user's line.
std::string list_constants(const ir::Kernel& traced);

}  // namespace heddle::runtime
