#include "heddle/runtime/dump.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "heddle/ir/text/printer.h"

namespace heddle::runtime {
namespace {

constexpr absl::string_view kStages[] = {"trace", "ir", "ptx", "constants"};
constexpr absl::string_view kAll = "all";
constexpr absl::string_view kPtx = "ptx";

std::vector<absl::string_view> wanted_words() {
  const char* const value = std::getenv("HEDDLE_DUMP");
  if (value == nullptr) return {};
  std::vector<absl::string_view> words;
  for (const absl::string_view word : absl::StrSplit(value, ',', absl::SkipWhitespace())) {
    words.push_back(absl::StripAsciiWhitespace(word));
  }
  return words;
}

void say(const std::string& message) { std::fprintf(stderr, "heddle: %s\n", message.c_str()); }

void say_unknown_words() {
  std::vector<std::string> unknown;
  for (const absl::string_view word : wanted_words()) {
    if (word == kAll || absl::c_linear_search(kStages, word)) continue;
    unknown.push_back(absl::StrCat("'", word, "'"));
  }
  if (unknown.empty()) return;
  say(absl::StrCat("HEDDLE_DUMP: ", absl::StrJoin(unknown, ", "), " ignored; it takes ",
                   absl::StrJoin(kStages, ", "), " or ", kAll, ", several with commas"));
}

std::atomic<bool> ptx_shown{false};

void say_ptx_never_came() {
  if (ptx_shown.load()) return;
  say("HEDDLE_DUMP=ptx showed nothing: no kernel was compiled as far as PTX, which the interpreter "
      "does not need; 'heddle dump KERNEL --stage ptx' shows it without a GPU");
}

// Where files of one compilation go: "k", "k.1", … in one process, whatever was there before.
std::string take_stem(absl::string_view kernel) {
  static std::mutex& mutex = *new std::mutex;
  static auto& taken = *new std::set<std::string>;
  const std::lock_guard<std::mutex> lock(mutex);
  std::string stem(kernel);
  for (int i = 1; !taken.insert(stem).second; ++i) stem = absl::StrCat(kernel, ".", i);
  return stem;
}

// What a thread has written of the compilation that it is at.
struct Current {
  std::string kernel;
  std::string stem;
  std::set<std::string, std::less<>> suffixes;
};

std::string stem_for(absl::string_view kernel, absl::string_view suffix) {
  thread_local Current current;
  if (current.kernel != kernel || current.suffixes.count(suffix) != 0) {
    current = {std::string(kernel), take_stem(kernel), {}};
  }
  current.suffixes.emplace(suffix);
  return current.stem;
}

}  // namespace

bool dump_wanted(absl::string_view what) {
  static std::once_flag unknown_said, ptx_watched;
  std::call_once(unknown_said, say_unknown_words);
  const std::vector<absl::string_view> words = wanted_words();
  const bool by_name = absl::c_linear_search(words, what);
  if (by_name && what == kPtx) {
    std::call_once(ptx_watched, [] { (void)std::atexit(say_ptx_never_came); });
  }
  return by_name || absl::c_linear_search(words, kAll);
}

void dump(absl::string_view kernel, absl::string_view suffix, absl::string_view text) {
  if (suffix == kPtx) ptx_shown.store(true);
  const char* const folder = std::getenv("HEDDLE_DUMP_DIR");
  if (folder != nullptr && *folder != '\0') {
    std::ofstream file(absl::StrCat(folder, "/", stem_for(kernel, suffix), ".", suffix));
    file << text;
    if (file.flush()) return;
    std::fprintf(stderr, "heddle: HEDDLE_DUMP_DIR=%s cannot be written; printing instead\n",
                 folder);
  }
  std::fprintf(stderr, "--- %.*s: %.*s ---\n%.*s\n", static_cast<int>(kernel.size()), kernel.data(),
               static_cast<int>(suffix.size()), suffix.data(), static_cast<int>(text.size()),
               text.data());
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
