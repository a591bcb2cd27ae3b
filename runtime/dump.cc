#include "heddle/runtime/dump.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "heddle/ir/printer.h"

namespace heddle::runtime {

bool dump_wanted(absl::string_view what) {
  const char* const value = std::getenv("HEDDLE_DUMP");
  if (value == nullptr) return false;
  for (const absl::string_view word : absl::StrSplit(value, ',', absl::SkipWhitespace())) {
    if (word == what || word == "all") return true;
  }
  return false;
}

void dump(absl::string_view kernel, absl::string_view suffix, absl::string_view text) {
  const char* const folder = std::getenv("HEDDLE_DUMP_DIR");
  if (folder != nullptr && *folder != '\0') {
    std::ofstream file(absl::StrCat(folder, "/", kernel, ".", suffix));
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
