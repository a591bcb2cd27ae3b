#include "heddle/tools/command/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace heddle::tools {
namespace {

Status not_written(const std::string& path, int error) {
  return ErrnoToStatus(error, absl::StrCat(path, ": cannot be written"));
}

}  // namespace

Status write_file(const std::string& path, absl::string_view contents) {
  std::FILE* const file = std::fopen(path.c_str(), "we");
  bool written =
      file != nullptr && std::fwrite(contents.data(), 1, contents.size(), file) == contents.size();
  // A full disk may be reported only now.
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  if (written) return OkStatus();
  return not_written(path, errno);
}

Status check_writable(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return not_written(path, EISDIR);
  if (access(path.c_str(), W_OK) == 0) return OkStatus();
  if (errno != ENOENT) return not_written(path, errno);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0) return OkStatus();
  return not_written(path, errno);
}

bool stdout_is_terminal() { return isatty(STDOUT_FILENO) == 1; }

void print(absl::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace heddle::tools
