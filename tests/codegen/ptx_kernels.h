// Kernels that tests of the emitter have in common, and their PTX.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "codegen/ptx_testing.h"
#include "heddle/codegen/ptx.h"

namespace heddle::codegen {

// The PTX of a kernel's text, without places unless asked for.
inline std::string ptx(absl::string_view text, bool line_info = false) {
  PtxOptions options;
  options.line_info = line_info;
  return ptx_of(kernel_from(text), options).text;
}

// A kernel over x, y (f32) and n with a body.
inline std::string kernel_text(absl::string_view body,
                               absl::string_view head = "block(128, 1, 1)") {
  return absl::StrCat(
      "kernel @k(%x: view<const f32, global, 1> [?] strides [1], "
      "%y: view<f32, global, 1> [?] strides [1], %n: i32) ",
      head, " {\n", body, "\n}\n");
}
inline constexpr char kThread[] = "%t = thread_idx {axis = x} : i32\n";

// Sums the rows of a matrix; each line of the source is known.
inline constexpr char kRowSum[] = R"(
kernel @row_sum(%x: view<const f32, global, 2> [?, ?] strides [?, 1],
                %y: view<f32, global, 1> [?] strides [1]) block(512, 1, 1) facts(%x no_overlap 1) {
  %tid = thread_idx {axis = x} : i32 loc("row_sum.cc":10)
  %row = block_idx {axis = x} : i32 loc("row_sum.cc":11)
  %columns = extent %x {dim = 1} : i32 loc("row_sum.cc":12)
  %pitch = stride %x {dim = 0} : i64 loc("row_sum.cc":12)
  %row_wide = convert %row : i64 loc("row_sum.cc":12)
  %start = mul %row_wide, %pitch : i64 loc("row_sum.cc":12)
  %step = const 512 : i32 loc("row_sum.cc":12)
  %zero = const 0.0 : f32 loc("row_sum.cc":12)
  %sum = for %i in %tid .. %columns step %step carry(%acc = %zero) : f32 {
    %ok = bounds %x, %row, %i : check loc("row_sum.cc":13)
    %i_wide = convert %i : i64 loc("row_sum.cc":13)
    %at = add %start, %i_wide : i64 loc("row_sum.cc":13)
    %v = load %x, %at, %ok : f32 loc("row_sum.cc":13)
    %next = add %acc, %v : f32 loc("row_sum.cc":13)
    yield %next loc("row_sum.cc":13)
  } loc("row_sum.cc":12)
  store %y, %sum, %row loc("other.cc":3)
}
)";

}  // namespace heddle::codegen
