// Kernels as the printer writes them: what the tests of printer, parser and verifier start from.
#pragma once

#include <random>
#include <string>

#include "absl/strings/string_view.h"

namespace heddle::ir {

inline constexpr absl::string_view kRowSumText =
    R"(kernel @row_sum(
    %x: view<const f32, global, 2> [?, ?] strides [?, 1],
    %y: view<f32, global, 1> [?] strides [1],
    %n: i32) block(512, 1, 1) cluster(1, 1, 1) target(sm_90a)
    facts(%x align 16, %x fits32 1, %x extent_div 1 4) {
  %row = block_idx {axis = x} : i32
  %tid = thread_idx {axis = x} : i32
  %step = const 512 : i32
  %zero = const 0.0 : f32
  %pitch = stride %x {dim = 0} : i32
  %0 = mul %row, %pitch : i32
  %sum = for %i in %tid .. %n step %step carry(%acc = %zero) : f32 {
    %ok = bounds %x, %row, %i : check
    %1 = add %0, %i : i32
    %2 = load %x, %1, %ok : f32
    %acc.1 = add %acc, %2 : f32
    yield %acc.1
  }
  %scratch = shared {extents = [16], name = "scratch"} : view<f32, shared, 1>
  %3 = warp_id : i32
  %lane = lane_id : i32
  %4 = const 0 : i32
  %first = eq %lane, %4 : bool
  if %first {
    store %scratch, %sum, %3
    yield
  }
  barrier
  %5 = load %scratch, %4 : f32
  %chosen = if %first : f32 {
    yield %5
  } else {
    yield %zero
  }
  store %y, %chosen, %row
}
)";

inline constexpr absl::string_view kMixedText =
    R"(kernel @"mixed bag"(
    %p: view<f16, global, 1> unbounded [?] strides [1],
    %flag: bool) block(?) cluster(2, 1, 1) target(sm_90) {
  %0 = const 0 : i32
  %1 = const 1 : i32
  %2 = const 0x7fc00000 : f32
  %go = var %flag {name = "go on"} : var<bool>
  %count, %other = while carry(%c = %0, %d = %2) : i32, f32 {
    %3 = var.load %go : bool
    yield %3
  } do(%c.1, %d.1) {
    %c.2 = add %c.1, %1 : i32
    %4 = ne %c.2, %1 : bool
    var.store %go, %4
    yield %c.2, %d.1
  }
  while {
    yield %flag
  } do {
    assert %flag {message = "never \"here\"\n"}
    yield
  }
  %5 = load %p, %count {volatile = 1} : vec<f16, 8>
  %6 = shfl.xor %5, %1 {width = 8} : vec<f16, 8>
  %wide = convert %6 : vec<f32, 8>
  %low = slice %wide {index = 0} : vec<f32, 4>
  %7 = extract %low {index = 3} : f32
  %8 = splat %7 : frag<f32, 64>
  %9 = extract %8 {index = 63} : f32
  %10 = convert %9 : f16
  store %p, %10, %count
}
)";

inline constexpr absl::string_view kAccumulateText =
    R"(kernel @accumulate(
    %y: view<f32, global, 1> [?] strides [1],
    %n: i32) block(128, 1, 1) cluster(1, 1, 1) target(sm_90a) {
  %0 = const 0 : i32
  %1 = const 1 : i32
  %tile = shared {extents = [2048], align = 1024, name = "tile"} : view<bf16, shared, 1>
  %desc = smem.desc %tile, %0 {leading = 128, stride = 256, swizzle = 0} : smem_desc<bf16>
  %2 = undef : frag<f32, 8>
  %3 = wgmma.begin %2 : pending<f32, 8>
  %4 = for %k in %0 .. %n step %1 carry(%acc = %3) : pending<f32, 8> {
    %more = ne %k, %0 : bool
    %5 = wgmma %acc, %desc, %desc, %more : pending<f32, 8>
    wgmma.commit
    wgmma.wait {groups = 1}
    yield %5
  }
  %sum = wgmma.wait %4 {groups = 0} : frag<f32, 8>
  %6 = extract %sum {index = 7} : f32
  store %y, %6, %0
}
)";

inline constexpr absl::string_view kSamples[] = {kRowSumText, kMixedText, kAccumulateText};

// A text with a few bytes removed, replaced, repeated, or pieces of kernels put in.
inline std::string mutated(absl::string_view sample, std::mt19937& random) {
  const auto below = [&random](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  static constexpr absl::string_view kPieces[] = {"%",
                                                  "{",
                                                  "}",
                                                  "(",
                                                  ")",
                                                  "\"",
                                                  ",",
                                                  ":",
                                                  "\n",
                                                  "0",
                                                  "-1",
                                                  "1e9",
                                                  "0x",
                                                  "if",
                                                  "for",
                                                  "..",
                                                  "while",
                                                  "%n",
                                                  "%x",
                                                  "load",
                                                  "f32",
                                                  "bool",
                                                  "[",
                                                  "]",
                                                  "?",
                                                  "<",
                                                  ">",
                                                  "@",
                                                  ";",
                                                  "\\",
                                                  "loc",
                                                  "do",
                                                  "=",
                                                  "else",
                                                  "yield",
                                                  " ",
                                                  "i64",
                                                  "%acc",
                                                  "%1",
                                                  "vec<",
                                                  "frag<f32, 8>",
                                                  "var<i32>",
                                                  "pending<f32, 8>",
                                                  "wgmma.wait %acc {groups = 0}",
                                                  "else {\nyield\n}"};
  std::string text(sample);
  for (size_t edits = 1 + below(3); edits > 0; --edits) {
    const size_t at = below(text.size());
    switch (below(4)) {
      case 0:
        text.erase(at, 1 + below(8));
        break;
      case 1:
        text.insert(at, std::string(kPieces[below(std::size(kPieces))]));
        break;
      case 2:
        text[at] = static_cast<char>(below(256));
        break;
      case 3:
        text.insert(below(text.size()), text.substr(at, below(40)));
        break;
    }
  }
  return text;
}

}  // namespace heddle::ir
