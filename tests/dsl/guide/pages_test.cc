// The documents show code that compiles: each block of C++ or CMake, and each span of code in the tables
// (in the column that is Heddle's), stands between the marks `<page>` and `</page>` of a source that is
// built: the tests in tests/dsl/from_cuda and tests/dsl/guide, and the project in tests/downstream.
#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "heddle/ir/text/printer.h"
#include "support/any_order.h"
#include "support/matchers.h"

namespace heddle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;

// What differs between a line of a table and clang-format's lines does not count.
std::string without_spaces(std::string text) {
  std::erase_if(text, absl::ascii_isspace);
  return text;
}

std::vector<std::string> lines(const std::string& text) { return absl::StrSplit(text, '\n'); }

std::string marked(const std::string& source) {
  std::string text;
  bool inside = false;
  for (const std::string& line : lines(source)) {
    if (absl::StrContains(line, "</page>")) inside = false;
    if (inside) absl::StrAppend(&text, line, "\n");
    if (absl::StrContains(line, "<page>")) inside = true;
  }
  return without_spaces(text);
}

// A cell of a row of a table, by its heading; empty for other lines.
class Column {
 public:
  explicit Column(std::string heading) : heading_(std::move(heading)) {}

  std::string cell(const std::string& line) {
    if (!absl::StartsWith(line, "|")) index_.reset();
    if (!absl::StartsWith(line, "|") || absl::StartsWith(line, "|---")) return "";
    const std::string bar = "\x01";
    std::vector<std::string> cells = absl::StrSplit(absl::StrReplaceAll(line, {{"\\|", bar}}), '|');
    for (std::string& cell : cells) {
      cell = absl::StrReplaceAll(absl::StripAsciiWhitespace(cell), {{bar, "|"}});
    }
    if (!index_) {
      const auto found = std::find(cells.begin(), cells.end(), heading_);
      index_ = static_cast<size_t>(found - cells.begin());
      return "";
    }
    return *index_ < cells.size() ? cells[*index_] : "";
  }

 private:
  std::string heading_;
  std::optional<size_t> index_;  // of the column in the table that the last line is in
};

struct Page {
  std::vector<std::string> snippets;
  std::vector<std::string> rows_without;  // that neither show code nor say that there is none
};

// The fenced blocks in these languages.
std::vector<std::string> blocks(const std::string& text, const std::set<std::string>& languages) {
  std::vector<std::string> result;
  std::string block;
  bool inside = false;
  for (const std::string& line : lines(text)) {
    absl::string_view fence = absl::StripAsciiWhitespace(line);
    if (absl::ConsumePrefix(&fence, "```")) {
      if (inside) result.push_back(block);
      block.clear();
      inside = languages.count(std::string(fence)) != 0;
    } else if (inside) {
      absl::StrAppend(&block, line, "\n");
    }
  }
  return result;
}

Page read_page(const std::string& text, const std::string& heading) {
  Page page = {blocks(text, {"cpp", "cmake"}), {}};
  Column column(heading);
  for (const std::string& line : lines(text)) {
    const std::string cell = column.cell(line);
    if (cell.empty()) continue;
    const std::vector<std::string> parts = absl::StrSplit(cell, '`');
    for (size_t i = 1; i < parts.size(); i += 2) page.snippets.push_back(parts[i]);
    if (parts.size() < 3 && !absl::StartsWith(cell, "not yet") &&
        !absl::StartsWith(cell, "nothing")) {
      page.rows_without.push_back(line);
    }
  }
  return page;
}

// `…` stands for anything.
bool contains(const std::string& code, const std::string& snippet) {
  size_t from = 0;
  const std::vector<std::string> parts = absl::StrSplit(without_spaces(snippet), "…");
  for (const std::string& part : parts) {
    from = code.find(part, from);
    if (from == std::string::npos) return false;
    from += part.size();
  }
  return true;
}

std::vector<std::string> missing(const Page& page, const std::string& code) {
  std::vector<std::string> result;
  for (const std::string& snippet : page.snippets) {
    if (!contains(code, snippet)) result.push_back(snippet);
  }
  return result;
}

std::string read(const std::string& path) {
  std::ifstream file(absl::StrCat(HEDDLE_TEST_DATA_DIR, "/", path));
  EXPECT_TRUE(file.is_open()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Document {
  const char* path;
  const char* heading;  // of the column with Heddle's code
  std::vector<const char*> sources;
  size_t least;  // snippets, so that a page that is read wrongly does not pass
};

TEST(Pages, ShowCodeThatCompiles) {
  const Document documents[] = {
      {"README.md",
       "",
       {"downstream/main.cc", "downstream/CMakeLists.txt", "runtime/interop/dlpack_test.cc"},
       3},
      {"dsl/LANGUAGE.md",
       "Write",
       {"dsl/guide/values_test.cc", "dsl/guide/memory_test.cc", "dsl/guide/threads_test.cc",
        "dsl/guide/layouts_test.cc", "dsl/guide/host_test.cc", "dsl/guide/pipeline_test.cc",
        "kernels/library_guide_test.cc", "kernels/map_guide_test.cc", "downstream/plugin.cc",
        "downstream/filetests.cc", "downstream/CMakeLists.txt", "tools/host/main.cc"},
       150},
      {"ir/EXTENDING.md",
       "",
       {"downstream/passes.cc", "downstream/operations.cc", "downstream/CMakeLists.txt"},
       7},
      {"dsl/SYNCHRONISATION.md", "Write", {"dsl/guide/synchronisation_test.cc"}, 20},
      {"dsl/FROM_CUDA.md",
       "Heddle",
       {"dsl/from_cuda/device_test.cc", "dsl/from_cuda/arithmetic_test.cc",
        "dsl/from_cuda/intrinsics_test.cc", "dsl/from_cuda/groups_test.cc",
        "dsl/from_cuda/layouts_test.cc", "dsl/from_cuda/host_test.cc"},
       100},
  };
  for (const Document& document : documents) {
    std::string code;
    for (const char* source : document.sources) absl::StrAppend(&code, marked(read(source)));
    const Page page = read_page(read(absl::StrCat("../", document.path)), document.heading);
    EXPECT_GE(page.snippets.size(), document.least) << document.path;
    EXPECT_THAT(missing(page, code), IsEmpty()) << document.path;
    EXPECT_THAT(page.rows_without, IsEmpty()) << document.path;
  }
}

// The program of README.md, and the same with a mistake.
template <int kOff>
const auto row_sum = define_kernel("row_sum(x, y)", [](Tensor<const float, 2> x,
                                                       Tensor<float, 1> y) {
  Int row = block_idx.x;
  Float sum = For(range(thread_idx.x, x.shape(1), block_dim.x), Float(0),
                  [&](Int col, Float acc) { return acc + x(row, col + kOff); });
  Float total = block_reduce(sum, plus());
  If(thread_idx.x == 0, [&] { y(row) = total; });
});

TEST(Pages, ReadmeShowsWhatIsPrinted) {
  const std::string readme = read("../README.md");
  const Device device = Device::open("interp").value();
  const Stream stream = device.create_stream().value();
  const Buffer in = device.upload<float>({1, 2, 3, 4, 5, 6}).value();
  const Buffer out = device.allocate(2 * sizeof(float)).value();
  const auto run = [&](const auto& kernel) {
    Status status = kernel.launch(stream, {.grid = 2, .block = 128},
                                  as_tensor<const float>(in, {2, 3}), as_tensor<float>(out, {2}));
    return status.ok() ? stream.synchronize() : status;
  };
  ASSERT_THAT(run(row_sum<0>), IsOk());
  const std::vector<float> y = out.download<float>(stream).value();
  EXPECT_THAT(readme, HasSubstr(absl::StrCat("It prints `", y[0], " ", y[1], "`")));
  const auto compiled =
      row_sum<0>.compile(Signature{tensor({kAny, kAny}), tensor({kAny})},
                         CompileOptions{.block = {128, 1, 1}, .stage = Stage::kPtx});
  ASSERT_THAT(compiled, IsOk());
  const std::string message(run(row_sum<1>).message());

  const std::vector<std::string> program = lines(blocks(readme, {"cpp"})[0]);
  const auto at = std::find_if(program.begin(), program.end(), [](const std::string& line) {
    return absl::StrContains(line, "x(row, col)");
  });
  const std::string printed =
      absl::StrCat(ir::print(compiled->ir()), "main.cc:", at - program.begin() + 1, ":",
                   message.substr(message.find(" error: ")));
  const std::vector<std::string> shown = blocks(readme, {"text"});
  EXPECT_EQ(shown.size(), 2u);
  for (const std::string& block : shown) {
    const bool is_code = absl::StartsWith(block, "%");
    if (kOrderIsExpected || !is_code) {
      EXPECT_THAT(without_spaces(printed), HasSubstr(without_spaces(block)));
    } else {
      EXPECT_THAT(lines_in_any_order(printed), IsSupersetOf(lines_in_any_order(block)));
    }
  }
}

TEST(Pages, AreFoundToShowWhatDoesNot) {
  const std::string code = marked("a();\n// <page>\nuse(b(1, 2));\nc | d;\n// </page>\ne();\n");
  const Page page = read_page(
      "| CUDA C++ | Heddle |\n|---|---|\n| x | `b(1,  2)` or `a()` |\n| y | `c \\| d` |\n"
      "| z | soon |\n| w | not yet |\n| v | `use(… c` `c … b` |\n```cpp\ne();\n```\n"
      "| Heddle |\n|---|\n| `f` |\n\n| Other |\n|---|\n| `g` |\n```cmake\nh()\n```\n"
      "```sh\ni\n```\n",
      "Heddle");
  EXPECT_THAT(missing(page, code), ElementsAre("e();\n", "h()\n", "a()", "c … b", "f"));
  EXPECT_THAT(page.rows_without, ElementsAre("| z | soon |"));
}

}  // namespace
}  // namespace heddle
