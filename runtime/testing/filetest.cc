#include "heddle/runtime/testing/filetest.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "heddle/runtime/testing/case_run.h"

namespace heddle::filetest {
namespace {

// Golden lines that take the place of others.
struct Edit {
  int after = 0;      // the line of `check-exact`
  int last_line = 0;  // of the lines that go
  std::string text;
};

std::string with_edits(absl::string_view file, const std::map<int, Edit>& edits) {
  std::string blessed;
  int number = 0;
  int gone_to = 0;
  std::vector<absl::string_view> lines = absl::StrSplit(file, '\n');
  const bool ends_in_newline = !lines.empty() && lines.back().empty();
  if (ends_in_newline) lines.pop_back();
  for (const absl::string_view line : lines) {
    ++number;
    if (number > gone_to) absl::StrAppend(&blessed, line, "\n");
    const auto edit = edits.find(number);
    if (edit == edits.end()) continue;
    gone_to = edit->second.last_line;
    for (const absl::string_view golden :
         absl::StrSplit(absl::StripSuffix(edit->second.text, "\n"), '\n')) {
      absl::StrAppend(&blessed, golden.empty() ? "; |" : "; | ", golden, "\n");
    }
  }
  if (!ends_in_newline && edits.empty()) blessed.pop_back();
  return blessed;
}

}  // namespace

FiletestResult run_filetest_text(absl::string_view text, absl::string_view name) {
  std::vector<std::string> failures;
  std::set<std::string> told;  // what several instances say alike is said once
  std::map<int, Edit> edits;
  const std::vector<CaseText> cases = split_cases(text);
  bool any = false;
  for (const CaseText& part : cases) {
    std::vector<Fault> faults;
    const auto tell = [&](absl::string_view values) {
      for (const Fault& fault : faults) {
        std::string failure = absl::StrCat(name, ":", fault.line, ": ", fault.text);
        if (!told.insert(failure).second) continue;
        if (!values.empty()) absl::StrAppend(&failure, " (with ", values, ")");
        failures.push_back(std::move(failure));
      }
      faults.clear();
    };
    const std::vector<Instance> instances = instances_of(part, faults);
    tell("");
    for (const Instance& instance : instances) {
      const Expectations wanted = read_expectations(instance.text, faults);
      const bool has_kernel = wanted.kernel_line != 0;
      any |= has_kernel;
      if (!has_kernel && faults.empty() && &part != &cases.front()) {
        faults.push_back({part.first_line, "this case has no kernel"});
      }
      if (has_kernel && faults.empty()) {
        const bool several = instances.size() > 1 || wanted.targets.size() > 1;
        for (const OutputChecks* const output : {&wanted.ir, &wanted.ptx}) {
          if (!several || !output->golden) continue;
          faults.push_back({output->golden->line,
                            "a golden is that of one kernel for one target; this case is several"});
        }
        if (faults.empty()) {
          for (const Renewed& golden : run_case(instance.text, name, wanted, faults)) {
            edits[golden.line] = {golden.line, golden.last_line, golden.text};
          }
        }
      }
      tell(instance.values);
    }
  }
  if (!any && failures.empty())
    failures.push_back(absl::StrCat(name, ":1: this file has no kernel"));
  return {std::move(failures), with_edits(text, edits)};
}

std::vector<std::string> run_filetest(const std::string& path, bool bless) {
  const std::string name = std::filesystem::path(path).filename().string();
  std::ifstream in(path, std::ios::binary);
  if (!in) return {absl::StrCat(path, ": cannot be read")};
  std::stringstream text;
  text << in.rdbuf();
  FiletestResult result = run_filetest_text(text.str(), name);
  if (!bless || result.blessed == text.str()) return result.failures;
  std::ofstream out(path, std::ios::binary);
  out << result.blessed;
  if (!out.flush()) return {absl::StrCat(path, ": cannot be written")};
  return run_filetest_text(result.blessed, name).failures;
}

bool blessing() {
  const char* const value = std::getenv("HEDDLE_BLESS");
  return value != nullptr && *value != '\0' && std::string(value) != "0";
}

std::vector<std::string> find_filetests(const std::string& folder) {
  std::vector<std::string> paths;
  if (!std::filesystem::is_directory(folder)) return paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".ir") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string filetest_name(const std::string& folder, const std::string& path) {
  std::string name =
      std::filesystem::path(path).lexically_relative(folder).replace_extension().string();
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

}  // namespace heddle::filetest
