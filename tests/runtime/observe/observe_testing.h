// A kernel of one tensor, compiled by a stand-in for ptxas, and lines of the log without their times.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "codegen/toolchain/tool_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/runtime/compile.h"
#include "heddle/runtime/observe/log.h"
#include "support/text_source.h"

namespace heddle::runtime {

// It asks whether its tensor is aligned, and whether 16 divides its extent.
inline TextSource store_source(absl::string_view block = "block(256, 1, 1) ") {
  return TextSource(absl::StrCat("kernel @gemm(%y: view<f32, global, 1> [?] strides [1]) ", block,
                                 "target(sm_90a) {\n  %z = const 0 : i32\n  %e = const 1.0 : f32\n"
                                 "  store %y, %e, %z loc(\"gemm.cc\":12)\n}\n"),
                    {{"y", ir::Type::view(ir::Scalar::kF32, ir::Space::kGlobal, 1), false}},
                    {{ir::FactKind::kAlignment, 0, 0}, {ir::FactKind::kExtentDivisor, 0, 0}});
}

// What the stand-in says of it: 24 registers, spills, a warning and a note of the line of its store.
inline constexpr absl::string_view kSaid =
    "ptxas info    : Compiling entry function 'gemm' for 'sm_90a'\n"
    "ptxas info    : Function properties for gemm\n"
    "    16 bytes stack frame, 24 bytes spill stores, 20 bytes spill loads\n"
    "ptxas info    : Used 64 registers, used 1 barriers, 512 bytes smem\n"
    "ptxas warning : (C7000) something is odd\n"
    "ptxas info    : (C7001) this is no matter\n"
    "ptxas info    : (C7510) Potential Performance Loss: it is slow in around line %LINE in the "
    "function 'gemm'\n";

// A stand-in for ptxas in that folder. It appends to `runs` there.
inline std::string fake_ptxas(const codegen::TempDir& dir, absl::string_view said = kSaid) {
  const std::string cubin =
      codegen::write_file(dir.file("cubin"), codegen::make_cubin(90, {"gemm"}));
  return codegen::write_fake_ptxas(
      dir.file("ptxas"),
      absl::StrCat("line=$(cat | grep -n st.global | head -1 | cut -d: -f1)\necho run >> '",
                   dir.file("runs"), "'\ncp '", cubin,
                   "' \"$out\"\nsed \"s/%LINE/$line/\" >&2 <<'END'\n", said, "END\n"));
}

// With T for each number with two decimals behind its point.
inline std::string without_times(std::string text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[end]))) ++end;
    const bool in_version = i > 0 && text[i - 1] == '.';
    const bool time = !in_version && end > i && text.substr(end, 1) == "." &&
                      end + 2 < text.size() &&
                      absl::ascii_isdigit(static_cast<unsigned char>(text[end + 1])) &&
                      absl::ascii_isdigit(static_cast<unsigned char>(text[end + 2]));
    result += time ? "T" : text.substr(i, std::max<size_t>(end - i, 1));
    i = time ? end + 3 : std::max(end, i + 1);
  }
  return result;
}

// Keeps the lines of the log, "info: …", while it lives.
class LogLines {
 public:
  explicit LogLines(LogLevel level) {
    set_log(level, [this](LogLevel at, absl::string_view line) {
      lines_.push_back(absl::StrCat(name_of(at), ": ", without_times(std::string(line))));
    });
  }
  ~LogLines() { set_log(LogLevel::kOff); }
  std::vector<std::string> take() { return std::exchange(lines_, {}); }

 private:
  std::vector<std::string> lines_;
};

}  // namespace heddle::runtime
