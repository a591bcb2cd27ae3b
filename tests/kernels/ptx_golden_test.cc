// The PTX of every kernel that the library ships, for the arguments that are usual for it, held against
// tests/filetests/kernels/. HEDDLE_BLESS=1 in the environment (tools/bless.sh) rewrites the files.
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "heddle/runtime/compile.h"
#include "heddle/runtime/registry.h"
#include "heddle/runtime/specialize.h"
#include "heddle/runtime/testing/filetest.h"
#include "support/matchers.h"

namespace heddle {
namespace {

const std::string& folder() {
  static const std::string path = HEDDLE_TEST_DATA_DIR "/filetests/kernels";
  return path;
}

// An entry with one choice of its settings, and the name of its file.
struct GoldenKernel {
  const KernelEntry* entry;
  Settings settings;
  std::string file;
};

void PrintTo(const GoldenKernel& kernel, std::ostream* out) { *out << kernel.file; }

std::vector<GoldenKernel> golden_kernels() {
  std::vector<GoldenKernel> all;
  for (const KernelEntry* const entry : runtime::registered_kernels()) {
    const Settings usual = runtime::resolve_settings(*entry, {}).value();
    std::vector<GoldenKernel> made = {{entry, usual, entry->name}};
    for (const runtime::Setting& setting : entry->settings) {
      std::vector<GoldenKernel> product;
      for (const GoldenKernel& so_far : made) {
        for (const std::string& choice : setting.choices) {
          GoldenKernel& one = product.emplace_back(so_far);
          one.settings[setting.name] = choice;
          absl::StrAppend(&one.file, "_", choice);
        }
      }
      if (!product.empty()) made = std::move(product);
    }
    for (GoldenKernel& one : made) {
      one.file += ".ptx";
      all.push_back(std::move(one));
    }
  }
  return all;
}

std::string file_text(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Without the lines that lead back to the source, which change with every comment there.
std::string without_places(absl::string_view ptx) {
  std::string text;
  for (const absl::string_view line : absl::StrSplit(ptx, '\n')) {
    const absl::string_view code = absl::StripLeadingAsciiWhitespace(line);
    if (absl::StartsWith(code, ".loc") || absl::StartsWith(code, ".file")) continue;
    absl::StrAppend(&text, line, "\n");
  }
  text.pop_back();
  return text;
}

absl::StatusOr<std::string> ptx_of(const GoldenKernel& kernel) {
  const absl::StatusOr<Variant> variant = kernel.entry->variant(kernel.settings);
  if (!variant.ok()) return variant.status();
  absl::StatusOr<ir::Specialization> arguments =
      runtime::specialize(*variant->source, variant->signature);
  if (!arguments.ok()) return arguments.status();
  CompileOptions options = variant->options;
  options.target = "sm_90a";
  options.stage = Stage::kPtx;
  arguments->block = options.block;
  arguments->cluster = options.cluster;
  arguments->target = ir::find_target(options.target);
  const auto compilation =
      runtime::compile_source(*variant->source, *std::move(arguments), options);
  if (!compilation.ok()) return compilation.status();
  return without_places((*compilation)->ptx.text);
}

class KernelPtx : public testing::TestWithParam<GoldenKernel> {};

TEST_P(KernelPtx, IsTheGoldenOne) {
  const absl::StatusOr<std::string> ptx = ptx_of(GetParam());
  ASSERT_THAT(ptx, IsOk());
  const std::string path = absl::StrCat(folder(), "/", GetParam().file);
  if (filetest::blessing()) std::ofstream(path) << *ptx;
  const std::string golden = file_text(path);
  if (golden == *ptx) return;
  const std::vector<std::string> wanted = absl::StrSplit(golden, '\n');
  const std::vector<std::string> got = absl::StrSplit(*ptx, '\n');
  size_t line = 0;
  while (line < wanted.size() && line < got.size() && wanted[line] == got[line]) ++line;
  FAIL() << "filetests/kernels/" << GetParam().file << ":" << line + 1 << ": "
         << (golden.empty() ? "the golden is missing" : "the golden differs: it has")
         << (line < wanted.size() ? absl::StrCat("\n  ", wanted[line]) : "")
         << "\nand the PTX is now"
         << (line < got.size() ? absl::StrCat("\n  ", got[line]) : " at its end")
         << "\nfix: look at why; where the new PTX is right, tools/bless.sh writes it";
}

INSTANTIATE_TEST_SUITE_P(Library, KernelPtx, testing::ValuesIn(golden_kernels()),
                         [](const auto& test) {
                           return test.param.file.substr(0, test.param.file.find('.'));
                         });

TEST(KernelPtxFiles, BelongToAKernel) {
  std::set<std::string> files;
  for (const GoldenKernel& kernel : golden_kernels()) files.insert(kernel.file);
  EXPECT_GE(files.size(), 20u);
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    EXPECT_TRUE(files.contains(entry.path().filename().string()))
        << entry.path().filename() << " is the golden of no kernel";
  }
}

}  // namespace
}  // namespace heddle
