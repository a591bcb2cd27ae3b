// Filetests: kernels in text, with what should become of them in comments.
//
//   ; Each element is doubled.                                 prose
//   ; run: fold,dce                                            passes, verified after each
//   kernel @double(%x: view<i32, global, 1> [?] strides [1]) block(4, 1, 1) {
//     %t = thread_idx {axis = x} : i32
//     %v = load %x, %t : i32
//     %d = add %v, %v : i32
//     store %x, %d, %t
//   }
//   ; check: add %v, %v                                        some later line of the result has this
//   ; check-not: mul                                           no line has this
//   ; execute: %x = [1, 2, 3, 4]                               on the interpreter, as written and after `run`
//   ; expect: %x = [2, 4, 6, 8]
//   ; emit: ptx                                                the checks below are about its PTX
//   ; check: add.s32
//
//   ; --- the next case of the file
//   kernel @far(%x: view<i32, global, 1> [?] strides [1]) block(4, 1, 1) {
//     %t = thread_idx {axis = x} : i32
//     store %x, %t, %t                                         ; report: writes 'x' at element offset 2
//   }
//   ; execute: %x = unwritten(2)
//   ; fix: check the index
//
// Of a case, in any order but that what belongs together follows each other:
//
//   for: $T = i32, f32       the case for each value of $T (case_text.h)
//   target: sm_80, sm_90a    the case for each architecture; sm_90+ and all are several
//   run: fold,dce            passes; `default` is the usual pipeline
//   verify: emittable        the verifier alone, for a stage: traced, rewritten, pure_ssa, emittable
//   check:, check-not:       lines of the result, or below `emit` of the PTX
//   check-exact:             the whole of it: the lines below, each behind `; | `
//   check-body:              the same of the kernel's ops alone, without its header
//   check-unchanged:         the passes leave the kernel as it is, and say so
//   guards:                  the facts that the passes read, as `%x align 16, %x extent_div 1 4`, or none
//   execute:, expect:        a launch and its results (execution.h); `expect: success` where memory says
//                            nothing; without an `expect` it is one that is refused or reported
// Behind the code of a line:
//   stores:                  what a store there stores, after `run`: add(%a, 7) (expression.h)
//   error:                   found there by the parser, the verifier, a pass or the emitter; those of the
//                            kernel as a whole on the line of `kernel`
//   report:                  found there by the interpreter, or what the host refuses the launch for
//   note:                    another line that an error or report names
// and on a line of its own
//   fix:                     what an error or report advises
//
// Each error must be expected and each expectation met; a case that expects nothing fails, and so does a
// directive that is misspelt or never looked at. A line `;` with four spaces or more continues the
// directive above. Where no error is expected, the result must also read back as it was printed.
//
// HEDDLE_BLESS=1 in the environment rewrites what follows `; check-exact:`.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace heddle::filetest {

// What running a filetest gives.
struct FiletestResult {
  // "file:line: what is wrong"; empty where the test passes.
  std::vector<std::string> failures;
  // The text with its goldens renewed; that of the test where it has none.
  std::string blessed;
};

// Runs a filetest that is in memory. `name` is what messages and places call it.
FiletestResult run_filetest_text(absl::string_view text, absl::string_view name);

// Runs a file, and rewrites it where `bless`. Failures are those of the rewritten file.
std::vector<std::string> run_filetest(const std::string& path, bool bless);
// Whether the environment asks for goldens to be rewritten: HEDDLE_BLESS=1.
bool blessing();

// The *.ir files of a folder and its subfolders, by name.
std::vector<std::string> find_filetests(const std::string& folder);
// What a test of that file is called: "ops_add" for ops/add.ir.
std::string filetest_name(const std::string& folder, const std::string& path);

}  // namespace heddle::filetest
