#include "heddle/tools/command/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"

namespace heddle::tools {

absl::Status write_file(const std::string& path, absl::string_view contents) {
  std::FILE* const file = std::fopen(path.c_str(), "we");
  bool written =
      file != nullptr && std::fwrite(contents.data(), 1, contents.size(), file) == contents.size();
  // A full disk may show only now.
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  if (written) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be written"));
}

bool stdout_is_terminal() { return isatty(STDOUT_FILENO) == 1; }

void print(absl::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace heddle::tools
