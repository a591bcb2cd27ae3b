// Filetests: kernels in text, with what should become of them in comments.
//
//   ; The first barrier is fine, the second one is not.        prose
//   ; run: fold,dce                                            passes to run, verified after each
//   kernel @k(%x: view<f32, global, 1> [?] strides [1], %n: i32) block(64, 1, 1) {
//     %t = thread_idx {axis = x} : i32
//     %p = lt %t, %n : bool
//     if %p {
//       barrier                                              ; error: differs between threads
//       yield
//     }
//   }
//   ; check: store %x                                          some later line has this
//   ; check-not: add                                           no line has this
//   ; check-exact                                              all that follows is the whole result
//   ; | kernel @k(...) ...
//
// `; verify` asks for the verifier alone, `; verify emittable` (or pure_ssa) for a later stage. An
// error is expected on the line that carries its comment; those of the kernel as a whole belong on
// the line of `kernel`. Each must be expected, each expectation met, and a file that expects
// nothing fails. Where no error is expected, the result must also read back as it was printed.
//
// HEDDLE_BLESS=1 in the environment rewrites what follows `; check-exact`.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace heddle::test {

struct FiletestResult {
  // "file:line: what is wrong"; empty where the test passes.
  std::vector<std::string> failures;
  // The text with its golden result renewed; that of the test where it has none.
  std::string blessed;
};

// Runs a filetest that is in memory. `name` is what messages and places call it.
FiletestResult run_filetest_text(absl::string_view text, absl::string_view name);

// Runs a file, and rewrites it where `bless`. Failures are those of the rewritten file.
std::vector<std::string> run_filetest(const std::string& path, bool bless);

// The *.ir files of a folder and its subfolders, by name.
std::vector<std::string> find_filetests(const std::string& folder);

}  // namespace heddle::test
