// The PTX of every operation of the library, for the arguments that are usual for it, held against
// tests/filetests/kernels/. HEDDLE_BLESS=1 in the environment (tools/bless.sh) rewrites the files.
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "heddle/codegen/ptx.h"
#include "heddle/runtime/operation/registry.h"
#include "heddle/runtime/testing/filetest.h"
#include "kernels/launched_ptx.h"
#include "support/any_order.h"
#include "support/matchers.h"

namespace heddle {
namespace {

using runtime::Operation;
using runtime::Settings;

const std::string& folder() {
  static const std::string path = HEDDLE_TEST_DATA_DIR "/filetests/kernels";
  return path;
}

// An operation with one choice of its element types, and how the names of its files begin.
struct GoldenOperation {
  const Operation* operation;
  Settings settings;
  std::string name;
};

void PrintTo(const GoldenOperation& golden, std::ostream* out) { *out << golden.name; }

// Whose kernels are long and alike for all types: their goldens are of the first.
constexpr absl::string_view kAlike[] = {"sort", "sort_pairs"};

std::vector<GoldenOperation> golden_operations() {
  std::vector<GoldenOperation> all;
  for (const Operation* const operation : runtime::registered_operations()) {
    std::vector<GoldenOperation> made = {{operation, {}, operation->name()}};
    for (const runtime::Setting& setting : operation->spec().settings) {
      const bool is_type = absl::c_all_of(setting.choices, [](const std::string& choice) {
        return ir::scalar_from_name(choice).has_value();
      });
      if (!is_type) continue;
      std::vector<GoldenOperation> product;
      for (const GoldenOperation& so_far : made) {
        for (const std::string& choice : setting.choices) {
          GoldenOperation& one = product.emplace_back(so_far);
          one.settings[setting.name] = choice;
          absl::StrAppend(&one.name, "_", choice);
          const bool exists = operation->resolve({one.settings.begin(), one.settings.end()}).ok();
          if (!exists) product.pop_back();
        }
      }
      if (!product.empty()) made = std::move(product);
    }
    const bool is_alike = absl::c_linear_search(kAlike, operation->name());
    all.insert(all.end(), made.begin(), is_alike ? made.begin() + 1 : made.end());
  }
  return all;
}

std::string file_text(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The PTX of each kernel that a call with the operation's example shapes launches, by file.
StatusOr<std::map<std::string, std::string>> ptx_of(const GoldenOperation& golden) {
  const StatusOr<LaunchedPtx> kernels =
      launched_ptx(*golden.operation, golden.settings, hopper_info());
  if (!kernels.ok()) return kernels.status();
  std::map<std::string, std::string> files;
  for (const auto& [kernel, ptx] : *kernels) {
    std::string file = golden.name;
    if (kernels->size() > 1) absl::StrAppend(&file, ".", codegen::ptx_identifier(kernel));
    for (int i = 1; files.contains(file + ".ptx"); ++i)
      file = absl::StrCat(golden.name, ".", kernel, ".", i);
    files[file + ".ptx"] = ptx;
  }
  return files;
}

void expect_golden(const std::string& file, const std::string& ptx) {
  const std::string path = absl::StrCat(folder(), "/", file);
  if (filetest::blessing()) std::ofstream(path) << ptx;
  const std::string golden = file_text(path);
  if (golden == ptx) return;
  if (!kOrderIsExpected && lines_in_any_order(golden) == lines_in_any_order(ptx)) return;
  const std::vector<std::string> wanted = absl::StrSplit(golden, '\n');
  const std::vector<std::string> got = absl::StrSplit(ptx, '\n');
  size_t line = 0;
  while (line < wanted.size() && line < got.size() && wanted[line] == got[line]) ++line;
  ADD_FAILURE() << "filetests/kernels/" << file << ":" << line + 1 << ": "
                << (golden.empty() ? "the golden is missing" : "the golden differs: it has")
                << (line < wanted.size() ? absl::StrCat("\n  ", wanted[line]) : "")
                << "\nand the PTX is now"
                << (line < got.size() ? absl::StrCat("\n  ", got[line]) : " at its end")
                << "\nfix: look at why; where the new PTX is right, tools/bless.sh writes it";
}

class KernelPtx : public testing::TestWithParam<GoldenOperation> {};

TEST_P(KernelPtx, IsTheGoldenOne) {
  const auto files = ptx_of(GetParam());
  ASSERT_THAT(files, IsOk());
  ASSERT_FALSE(files->empty()) << "it launches nothing";
  for (const auto& [file, ptx] : *files) expect_golden(file, ptx);
}

INSTANTIATE_TEST_SUITE_P(Library, KernelPtx, testing::ValuesIn(golden_operations()),
                         [](const auto& test) { return test.param.name; });

TEST(KernelPtxFiles, BelongToAKernel) {
  std::set<std::string> files;
  for (const GoldenOperation& golden : golden_operations()) {
    const auto made = ptx_of(golden);
    ASSERT_THAT(made, IsOk());
    for (const auto& [file, ptx] : *made) files.insert(file);
  }
  EXPECT_GE(files.size(), 20u);
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    EXPECT_TRUE(files.contains(entry.path().filename().string()))
        << entry.path().filename() << " is the golden of no kernel";
  }
}

}  // namespace
}  // namespace heddle
