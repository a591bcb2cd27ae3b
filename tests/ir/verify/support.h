// What the tests of the verifier share: kernels around a few lines, and mistakes as text.
#pragma once

#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "heddle/ir/text/parser.h"
#include "heddle/ir/verify/verifier.h"

namespace heddle::ir {

// Each mistake on a line of its own, as "line: message; fix".
inline std::string mistakes_of(const Kernel& kernel, Stage stage = Stage::kTraced) {
  return absl::StrJoin(verify(kernel, stage), "\n", [](std::string* out, const Diagnostic& d) {
    absl::StrAppend(out, d.place.line, ": ", d.message, d.fix.empty() ? "" : "; ", d.fix);
  });
}

inline std::string mistakes_of(absl::string_view text, Stage stage = Stage::kTraced) {
  const StatusOr<Kernel> kernel = parse(text, "k.ir", {.text_as_source = true});
  if (!kernel.ok()) return std::string(kernel.status().message());
  return mistakes_of(*kernel, stage);
}

// A kernel with these lines as its body, from line 2 on. A store behind them gives it an effect.
inline std::string with_body(absl::string_view body,
                             absl::string_view header = "block(128, 1, 1)") {
  return absl::StrCat(
      "kernel @k(%x: view<f32, global, 1> [?] strides [1], %c: view<const f32, global, 2> [?, ?] "
      "strides [?, 1], %n: i32, %f: f32, %h: bf16, %p: bool) ",
      header, " {\n", body, "\nstore %x, %f, %n\n}\n");
}

// A body and all that is wrong with it.
struct Mistake {
  const char* name;
  const char* body;
  const char* expected;
};

inline void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

inline std::string mistake_name(const ::testing::TestParamInfo<Mistake>& test) {
  return test.param.name;
}

}  // namespace heddle::ir
