#include "heddle/tools/command/python.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "heddle/tools/command/output.h"
#include "nlohmann/json.hpp"

namespace heddle::tools {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The variable's value, or a place of the installation or the build tree, both of which have programs in a folder of their
// own.
StatusOr<std::string> find_part(absl::string_view what, const char* variable,
                                absl::string_view from_root) {
  if (const char* const given = std::getenv(variable); given != nullptr && *given != '\0') {
    return std::string(given);
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path path = program.parent_path().parent_path() / std::string(from_root);
  if (!error && fs::exists(path, error)) return path.string();
  return NotFoundError(absl::StrCat(what, " should be ", path.string(),
                                    ", which is not there; fix: build or install all of Heddle, or "
                                    "set ",
                                    variable));
}

}  // namespace

StatusOr<std::string> measure_folder() {
  return find_part("the programs that measure", "HEDDLE_MEASURE", HEDDLE_DATA_FOLDER "/measure");
}

StatusOr<std::string> shared_library() {
  return find_part("Heddle's shared library", "HEDDLE_LIBRARY",
                   HEDDLE_LIBRARY_FOLDER "/libheddle.so");
}

Exit run_python(absl::string_view purpose, const std::string& program,
                const nlohmann::ordered_json& request) {
  const StatusOr<std::string> folder = measure_folder();
  if (!folder.ok()) return failed(folder.status());
  const char* const chosen = std::getenv("HEDDLE_PYTHON");
  const std::string python = chosen != nullptr && *chosen != '\0' ? chosen : "python3";
  // In a file: an argument may have 128 KiB at most.
  std::error_code error;
  std::string file = (fs::temp_directory_path(error) / "heddle.XXXXXX").string();
  const int written = mkstemp(file.data());
  if (written < 0) return failed(absl::StrCat(file, " cannot be made: ", std::strerror(errno)));
  close(written);
  const absl::Cleanup remove = [&] { unlink(file.c_str()); };
  const std::string text = request.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (Status s = write_file(file, text); !s.ok()) return failed(s);
  // -B: nothing is written beside the programs.
  std::string arguments[] = {python, "-B", absl::StrCat(*folder, "/", program), file};
  char* argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(),
                  arguments[3].data(), nullptr};
  std::fflush(stdout);
  pid_t child = 0;
  if (const int code = posix_spawnp(&child, python.c_str(), nullptr, nullptr, argv, environ)) {
    return failed(absl::StrCat(purpose, " measures in Python, and ", python,
                               " cannot be started: ", std::strerror(code),
                               "; fix: install Python 3, or set HEDDLE_PYTHON to it"));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    return failed(absl::StrCat(purpose, ": ", python, " was ended by signal ", WTERMSIG(status)));
  }
  const int code = WEXITSTATUS(status);
  return code == 0 ? Exit::kDone : code == 2 ? Exit::kMisused : Exit::kFailed;
}

}  // namespace heddle::tools
