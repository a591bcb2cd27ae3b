#include "heddle/codegen/toolchain/tool_trust.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace heddle::codegen {
namespace {

constexpr int kMostLinks = 40;  // as the kernel
// Groups below are given out by the distribution and hold administrators (root, staff).
constexpr gid_t kFirstOrdinaryGroup = 100;

// A user's private group has the user's own number; files made under umask 002 are writable by it.
bool trusted_group(gid_t group) { return group < kFirstOrdinaryGroup || group == geteuid(); }

Status check_writers(const std::string& path, const struct stat& status) {
  if ((status.st_mode & S_IWOTH) != 0) {
    return PermissionDeniedError(absl::StrCat(path, " can be written by everyone"));
  }
  if ((status.st_mode & S_IWGRP) != 0 && !trusted_group(status.st_gid)) {
    return PermissionDeniedError(
        absl::StrCat(path, " can be written by every member of group ", status.st_gid));
  }
  return OkStatus();
}

// Everybody may add to a sticky folder such as /tmp, but an entry is its owner's.
bool is_sticky(const struct stat& status) { return (status.st_mode & S_ISVTX) != 0; }

Status check_owner(const std::string& path, const struct stat& status) {
  if (status.st_uid == 0 || status.st_uid == geteuid()) return OkStatus();
  return PermissionDeniedError(
      absl::StrCat(path, " lies in a folder for everyone and belongs to user ", status.st_uid));
}

void push_components(absl::string_view path, std::vector<std::string>* todo) {
  std::vector<std::string> components = absl::StrSplit(path, '/', absl::SkipEmpty());
  todo->insert(todo->end(), components.rbegin(), components.rend());
}

Status check_file(CodeFile kind, const std::string& path, const struct stat& status) {
  if (S_ISDIR(status.st_mode)) {
    return FailedPreconditionError(absl::StrCat(path, " is a folder"));
  }
  if (!S_ISREG(status.st_mode)) {
    return FailedPreconditionError(absl::StrCat(path, " is not a regular file"));
  }
  if (kind == CodeFile::kProgram && faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) != 0) {
    return FailedPreconditionError(absl::StrCat(path, " is not executable"));
  }
  return check_writers(path, status);
}

}  // namespace

Status check_trusted(CodeFile kind, absl::string_view path) {
  if (path.empty() || path[0] != '/') {
    return InvalidArgumentError(absl::StrCat("'", path, "' is not an absolute path"));
  }
  std::vector<std::string> todo;  // components still to walk, the next one last
  push_components(path, &todo);
  std::string here = "/";
  struct stat status;
  if (lstat("/", &status) != 0) return ErrnoToStatus(errno, "cannot look at /");
  int links = 0;
  while (!todo.empty()) {
    if (!S_ISDIR(status.st_mode)) {
      return NotFoundError(absl::StrCat(here, " is not a folder"));
    }
    if (!is_sticky(status)) {
      if (Status writers = check_writers(here, status); !writers.ok()) return writers;
    }
    const std::string component = std::move(todo.back());
    todo.pop_back();
    if (component == ".") continue;
    const std::string folder = here;
    const bool owner_matters = is_sticky(status) && component != "..";
    if (component == "..") {
      here.erase(std::max<size_t>(here.rfind('/'), 1));
    } else {
      absl::StrAppend(&here, here.size() > 1 ? "/" : "", component);
    }
    if (lstat(here.c_str(), &status) != 0) {
      if (errno == ENOENT) return NotFoundError(absl::StrCat(here, " does not exist"));
      return ErrnoToStatus(errno, absl::StrCat("cannot look at ", here));
    }
    if (owner_matters) {
      if (Status owner = check_owner(here, status); !owner.ok()) return owner;
    }
    if (!S_ISLNK(status.st_mode)) continue;

    std::array<char, PATH_MAX> target;
    const ssize_t size = readlink(here.c_str(), target.data(), target.size());
    if (size <= 0 || ++links > kMostLinks) {
      return NotFoundError(absl::StrCat(here, " is a link that leads nowhere"));
    }
    push_components({target.data(), static_cast<size_t>(size)}, &todo);
    here = target[0] == '/' ? "/" : folder;
    if (lstat(here.c_str(), &status) != 0) {
      return ErrnoToStatus(errno, absl::StrCat("cannot look at ", here));
    }
  }
  return check_file(kind, here, status);
}

}  // namespace heddle::codegen
