// HEDDLE_DUMP=trace,ir,ptx,constants or all: shows what becomes of every kernel that a program
// compiles.
#pragma once

#include "absl/strings/string_view.h"
#include "heddle/ir/kernel.h"

namespace heddle::runtime {

// Whether HEDDLE_DUMP names `what`, or all. Unknown words in it are reported once in a process, and
// at its end that PTX was asked for but never made, since the interpreter has none.
bool dump_wanted(absl::string_view what);

// Prints a stage's text under a heading, or into HEDDLE_DUMP_DIR/<kernel>.<suffix>. Further
// compilations of kernels of that name get <kernel>.1.<suffix> and so on, in their order; a
// thread's dumps of one name belong to one compilation until a suffix comes again. Thread-safe.
void dump(absl::string_view kernel, absl::string_view suffix, absl::string_view text);

// The host values that are constants of the kernel, a line for each: the value, its type and the
// user's line.
std::string list_constants(const ir::Kernel& traced);

}  // namespace heddle::runtime
