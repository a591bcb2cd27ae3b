// What tests of the emitter share: kernels from text, and ptxas where it is installed.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "codegen/toolchain/tool_testing.h"
#include "gtest/gtest.h"
#include "heddle/codegen/ptx.h"
#include "heddle/codegen/toolchain/ptxas.h"
#include "heddle/ir/check.h"
#include "heddle/ir/status.h"
#include "heddle/ir/text/parser.h"
#include "heddle/ir/verify/verifier.h"

namespace heddle::codegen {

// A kernel in text that the verifier accepts for emission.
inline ir::Kernel kernel_from(absl::string_view text) {
  StatusOr<ir::Kernel> kernel = ir::parse(text, "test.ir");
  HEDDLE_CHECK(kernel.ok(), std::string(kernel.status().message()));
  const ir::Diagnostics wrong = ir::verify(*kernel, ir::Stage::kEmittable);
  HEDDLE_CHECK(wrong.empty(), ir::to_string(wrong));
  return *std::move(kernel);
}

// Its PTX.
inline PtxModule ptx_of(const ir::Kernel& kernel, const PtxOptions& options = {}) {
  StatusOr<PtxModule> module = emit_ptx(kernel, options);
  HEDDLE_CHECK(module.ok(), std::string(module.status().message()));
  return *std::move(module);
}

// The lines of a text without their indentation.
inline std::vector<std::string> lines_of(absl::string_view text) {
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    lines.emplace_back(absl::StripAsciiWhitespace(line));
  }
  return lines;
}

// How many lines have this in them.
inline int count_lines(absl::string_view text, absl::string_view part) {
  const std::vector<std::string> lines = lines_of(text);
  return static_cast<int>(std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
    return absl::StrContains(line, part);
  }));
}

// Many kernels of one target in one module: ptxas starts once.
class PtxBatch {
 public:
  void add(const PtxModule& module) {
    bool in_head = true;
    for (const absl::string_view line : absl::StrSplit(module.text, '\n')) {
      if (in_head && read_head(line)) continue;
      // What several kernels declare alike is declared once.
      const bool is_shared = absl::StartsWith(line, ".extern");
      if (is_shared && !declared_.insert(std::string(line)).second) continue;
      in_head = false;
      absl::StrAppend(&body_, line, "\n");
    }
    entries_.push_back(module.entry);
  }
  const std::vector<std::string>& entries() const { return entries_; }
  std::string text() const {
    return absl::StrCat(".version ", version_ / 10, ".", version_ % 10, "\n", target_,
                        "\n.address_size 64\n", body_);
  }

 private:
  bool read_head(absl::string_view line) {
    int major = 0, minor = 0;
    if (absl::ConsumePrefix(&line, ".version ")) {
      const std::vector<std::string> parts = absl::StrSplit(line, '.');
      HEDDLE_CHECK(absl::SimpleAtoi(parts[0], &major) && absl::SimpleAtoi(parts[1], &minor),
                   "a version is two numbers");
      version_ = std::max(version_, 10 * major + minor);
      return true;
    }
    if (absl::StartsWith(line, ".target")) target_ = std::string(line);
    return line.empty() || absl::StartsWith(line, ".target") ||
           absl::StartsWith(line, ".address_size");
  }

  int version_ = 0;
  std::string target_, body_;
  std::set<std::string> declared_;
  std::vector<std::string> entries_;
};

// What ptxas says of a module; the failures name the PTX lines.
inline StatusOr<Assembly> assemble_for(const std::string& text, absl::string_view arch,
                                       std::vector<std::string> entries, int opt_level = 3) {
  AssembleOptions options;
  options.arch = std::string(arch);
  options.entries = std::move(entries);
  options.opt_level = opt_level;
  std::vector<Diagnostic> said;
  StatusOr<Assembly> assembly = assemble(text, options, &said);
  if (assembly.ok()) return assembly;
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  std::string message(assembly.status().message());
  for (const Diagnostic& d : said) {
    if (!d.is_error()) continue;
    absl::StrAppend(&message, "\n", d.text);
    if (d.ptx_line > 0 && d.ptx_line <= static_cast<int>(lines.size())) {
      absl::StrAppend(&message, " | ", lines[static_cast<size_t>(d.ptx_line - 1)]);
    }
  }
  return Status(assembly.status().code(), message);
}

}  // namespace heddle::codegen
