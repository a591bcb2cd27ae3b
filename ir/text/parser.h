// Reads the text form of a kernel (printer.h describes it).
//
//   StatusOr<Kernel> kernel = parse(text, "scale.ir");
//
// print(parse(print(k))) == print(k) for every kernel that the verifier accepts. The parser itself
// asks only what the text form needs: names that are defined once and before their uses, ops and
// attributes that exist, regions that end in a yield. It never crashes, whatever the text. The
// verifier judges the rest.
#pragma once

#include "absl/strings/string_view.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/status.h"

namespace heddle::ir {

struct ParseOptions {
  // The kernel, and an op without loc(...), gets its own line of the text as its place, so that
  // diagnostics lead there.
  bool text_as_source = false;
};

// The kernel, or InvalidArgument with the first mistake: "scale.ir:3:10: unknown op 'lod'; did you
// mean 'load'?". `filename` is for messages and places only.
StatusOr<Kernel> parse(absl::string_view text, absl::string_view filename,
                       ParseOptions options = {});

}  // namespace heddle::ir
