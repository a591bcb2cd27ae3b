#include "heddle/runtime/dump.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "heddle/codegen/environment.h"
#include "heddle/ir/text/printer.h"

namespace heddle::runtime {
namespace {

constexpr absl::string_view kStages[] = {"trace", "ir", "ptx", "cubin", "constants"};
constexpr absl::string_view kAll = "all";
constexpr absl::string_view kPtx = "ptx";

std::vector<std::string> words_of(absl::string_view list) {
  std::vector<std::string> words;
  for (const absl::string_view word : absl::StrSplit(list, ',', absl::SkipWhitespace())) {
    words.emplace_back(absl::StripAsciiWhitespace(word));
  }
  return words;
}

std::vector<std::string> words_of_environment() {
  return words_of(codegen::environment_variable("HEDDLE_DUMP"));
}

// "'sass', 'bogus'"
std::string unknown_words(const std::vector<std::string>& words) {
  std::vector<std::string> unknown;
  for (const std::string& word : words) {
    if (word == kAll || absl::c_linear_search(kStages, word)) continue;
    unknown.push_back(absl::StrCat("'", word, "'"));
  }
  return absl::StrJoin(unknown, ", ");
}

std::string what_it_takes() {
  return absl::StrCat("it takes ", absl::StrJoin(kStages, ", "), " or ", kAll,
                      ", several with commas");
}

void say(const std::string& message) { std::fprintf(stderr, "heddle: %s\n", message.c_str()); }

void say_unknown_words() {
  const std::string unknown = unknown_words(words_of_environment());
  if (!unknown.empty()) {
    say(absl::StrCat("HEDDLE_DUMP: ", unknown, " ignored; ", what_it_takes()));
  }
}

std::atomic<bool> ptx_shown{false};

void say_ptx_never_came() {
  if (ptx_shown.load()) return;
  say("HEDDLE_DUMP=ptx showed nothing: no kernel was compiled as far as PTX, which the interpreter "
      "does not need; 'heddle dump KERNEL --stage ptx' shows it without a GPU");
}

// Where files of one compilation go: "k", "k.1", … of a folder in one process, whatever was there before.
std::string take_stem(const std::string& folder, const std::string& name) {
  static std::mutex& mutex = *new std::mutex;
  static auto& taken = *new std::set<std::string>;
  const std::lock_guard<std::mutex> lock(mutex);
  std::string stem = name;
  for (int i = 1; !taken.insert(absl::StrCat(folder, "/", stem)).second; ++i)
    stem = absl::StrCat(name, ".", i);
  return stem;
}

}  // namespace

Status check_dump_stages(absl::string_view list) {
  const std::string unknown = unknown_words(words_of(list));
  if (unknown.empty()) return OkStatus();
  return InvalidArgumentError(absl::StrCat("no stage is called ", unknown, "; ", what_it_takes()));
}

Dumps::Dumps(absl::string_view kernel, absl::string_view arch, absl::string_view stages,
             absl::string_view folder)
    : kernel_(kernel), arch_(arch), stages_(words_of(stages)), folder_(folder) {
  static std::once_flag unknown_said;
  std::call_once(unknown_said, say_unknown_words);
  const std::vector<std::string> more = words_of_environment();
  watches_ptx_ = absl::c_linear_search(more, kPtx);
  stages_.insert(stages_.end(), more.begin(), more.end());
  if (folder_.empty()) folder_ = codegen::environment_variable("HEDDLE_DUMP_DIR");
}

bool Dumps::wanted(absl::string_view stage) const {
  static std::once_flag ptx_watched;
  if (watches_ptx_ && stage == kPtx) {
    std::call_once(ptx_watched, [] { (void)std::atexit(say_ptx_never_came); });
  }
  return absl::c_linear_search(stages_, stage) || absl::c_linear_search(stages_, kAll);
}

void Dumps::show(absl::string_view suffix, absl::string_view text, bool binary) {
  if (suffix == kPtx) ptx_shown.store(true);
  if (!folder_.empty()) {
    if (stem_.empty()) stem_ = take_stem(folder_, absl::StrCat(kernel_, ".", arch_));
    std::error_code ignored;  // what cannot be made cannot be written to
    std::filesystem::create_directories(folder_, ignored);
    std::ofstream file(absl::StrCat(folder_, "/", stem_, ".", suffix), std::ios::binary);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    if (file.flush()) return;
    say(absl::StrCat("the folder ", folder_, " for dumps cannot be written; printing instead"));
  }
  const std::string shown =
      binary ? absl::StrCat(text.size(), " bytes, which a folder receives (HEDDLE_DUMP_DIR)")
             : std::string(text);
  std::fprintf(stderr, "--- %s: %.*s ---\n%s\n", kernel_.c_str(), static_cast<int>(suffix.size()),
               suffix.data(), shown.c_str());
}

std::string list_constants(const ir::Kernel& traced) {
  std::string text;
  traced.walk([&](ir::OpId id) {
    if (traced.op(id).opcode != ir::Opcode::kConst) return;
    const ir::Loc loc = traced.loc(id);
    absl::StrAppend(&text, ir::print_op(traced, id));
    if (!loc.file.empty()) absl::StrAppend(&text, "  ; ", loc.file, ":", loc.line);
    absl::StrAppend(&text, "\n");
  });
  return text;
}

}  // namespace heddle::runtime
