// Shows what becomes of a kernel, stage by stage, on stderr or in files: HEDDLE_DUMP=trace,ir,ptx,cubin,constants or all, and
// HEDDLE_DUMP_DIR; CompileOptions::keep and keep_dir, for one compilation.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/status.h"

namespace heddle::runtime {

// The stages, with commas between them, or "all". kInvalidArgument for another word.
Status check_dump_stages(absl::string_view list);

// The dumps of one compilation.
class Dumps {
 public:
  // `stages` and `folder` come from its options, and may be empty. The environment asks for further stages; unknown words of it are
  // reported once in a process, and at its end that PTX was asked for but never made, since the interpreter has none.
  Dumps(absl::string_view kernel, absl::string_view arch, absl::string_view stages,
        absl::string_view folder);

  // Whether a stage is asked for.
  bool wanted(absl::string_view stage) const;
  // Whether any is.
  bool any_wanted() const { return !stages_.empty(); }
  // Prints under a heading, or into <folder>/<kernel>.<arch>.<suffix>. Further compilations of that kernel for that target get
  // <kernel>.<arch>.1.<suffix> and so on, in their order. Of bytes (`binary`) stderr has the number. Thread-safe.
  void show(absl::string_view suffix, absl::string_view text, bool binary = false);

 private:
  const std::string kernel_, arch_;
  std::vector<std::string> stages_;
  bool watches_ptx_ = false;  // the environment asks for it by name
  std::string folder_;
  std::string stem_;  // of its files, from the first on
};

// The host values that are constants of the kernel, a line for each: the value, its type and the
// user's line.
std::string list_constants(const ir::Kernel& traced);

}  // namespace heddle::runtime
