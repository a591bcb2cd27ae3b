// Compile options as text: what HEDDLE_OPTIONS has for every kernel of a program that was not compiled otherwise, and what a program
// may take from its own user.
//
//   HEDDLE_OPTIONS="--opt-level=1 --assembler=ptxas --keep=ptx,cubin --keep-dir=out"
//   CompileOptions options;
//   if (Status s = read_compile_options("--gpu-arch=sm_90a --line-info=off", options); !s.ok()) ...
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/compile_options.h"

namespace heddle::runtime {

// One option.
struct CompileOptionText {
  absl::string_view name;    // "opt-level"
  absl::string_view values;  // "0|1|2|3", "TARGET"
  absl::string_view help;    // what it does
  // Its value in `options`.
  std::string (*print)(const CompileOptions& options);
  // Sets it. kInvalidArgument where it takes no such value; the message may be empty.
  Status (*read)(absl::string_view value, CompileOptions& options);
};

// Every option that text can have. Blocks, clusters, stages and watched pipelines are for programs.
absl::Span<const CompileOptionText> compile_option_texts();

// Reads `--name=value`, with blanks between options; a value may stand in single or double quotes, and of a switch is "on" where none is given.
// kInvalidArgument for an unknown name, with the nearest one, and for values that are wrong; `options` is then unchanged.
Status read_compile_options(absl::string_view text, CompileOptions& options);

// Those that are not at their defaults, as read_compile_options takes them; but for values with quotes of both kinds.
std::string print_compile_options(const CompileOptions& options);

// `options` with the values of HEDDLE_OPTIONS for what they leave at its default. kInvalidArgument names the variable.
StatusOr<CompileOptions> with_environment(const CompileOptions& options);

}  // namespace heddle::runtime

namespace heddle {
using runtime::print_compile_options;
using runtime::read_compile_options;
}  // namespace heddle
