#include "heddle/codegen/cache/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <memory>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace heddle::codegen {
namespace {

constexpr mode_t kFolderMode = 0700, kFileMode = 0600, kOthersWrite = 0022;
constexpr int64_t kDay = 24 * 60 * 60;

// A descriptor that is closed with its scope.
class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  explicit operator bool() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }
  // Some systems report a full disk only here.
  bool close() { return ::close(std::exchange(descriptor_, -1)) == 0; }

 private:
  int descriptor_;
};

// A name that no other file has: processes and threads write beside each other. So many numbers follow the file's own.
constexpr int kFreshNumbers = 3;
std::string fresh_name(const std::string& name) {
  static std::atomic<uint32_t> count{0};
  return absl::StrCat(".", name, ".", getpid(), ".", ++count, ".", std::random_device{}(), ".tmp");
}

// The folders on the way may be links, and others' too: only the last one holds what is run.
Status make_folders(const std::string& path) {
  for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1)) {
    if (mkdir(path.substr(0, end).c_str(), kFolderMode) != 0 && errno != EEXIST) {
      const int error = errno;
      struct stat status;
      if (stat(path.substr(0, end).c_str(), &status) != 0) {
        return ErrnoToStatus(error, absl::StrCat(path, " cannot be made"));
      }
    }
  }
  if (mkdir(path.c_str(), kFolderMode) == 0 || errno == EEXIST) return OkStatus();
  return ErrnoToStatus(errno, absl::StrCat(path, " cannot be made"));
}

int64_t now() { return std::time(nullptr); }

// By this machine's clock: a file server's may be another.
bool set_to_now(int folder, const std::string& name) {
  const timespec times[] = {{now(), 0}, {now(), 0}};
  return utimensat(folder, name.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0;
}

}  // namespace

StatusOr<CacheFolder> CacheFolder::open(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    return InvalidArgumentError("a folder's name has no NUL byte");
  }
  if (Status s = make_folders(path); !s.ok()) return s;
  const int descriptor =
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    if (errno == ELOOP || errno == ENOTDIR) {
      return PermissionDeniedError(absl::StrCat(path, " is a link or a file, and no folder"));
    }
    return ErrnoToStatus(errno, absl::StrCat(path, " cannot be opened"));
  }
  CacheFolder folder(path, descriptor);
  struct stat status;
  if (fstat(descriptor, &status) != 0) return ErrnoToStatus(errno, path);
  if (status.st_uid != geteuid()) {
    return PermissionDeniedError(absl::StrCat(path, " belongs to another user"));
  }
  if ((status.st_mode & kOthersWrite) != 0) {
    return PermissionDeniedError(
        absl::StrCat(path, " can be written by others; fix: chmod go-w ", path));
  }
  return folder;
}

CacheFolder::CacheFolder(CacheFolder&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}
CacheFolder::~CacheFolder() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::optional<absl::string_view> CacheFolder::target_of(absl::string_view file) {
  if (!absl::ConsumePrefix(&file, ".") || !absl::ConsumeSuffix(&file, ".tmp")) return std::nullopt;
  for (int number = 0; number < kFreshNumbers; ++number) {
    const size_t dot = file.rfind('.');
    if (dot == absl::string_view::npos) return std::nullopt;
    file = file.substr(0, dot);
  }
  return file;
}

Status CacheFolder::failed(absl::string_view what, const std::string& name, int error) const {
  return ErrnoToStatus(error, absl::StrCat(path_, "/", name, " cannot be ", what));
}

StatusOr<std::string> CacheFolder::read(const std::string& name, uint64_t most) const {
  // O_NONBLOCK: a FIFO would wait for somebody to write.
  const OpenFile file(
      openat(descriptor_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) {
    if (errno == ENOENT) return NotFoundError(name);
    if (errno == ELOOP || errno == ENXIO) return DataLossError("it is no plain file");
    return failed("opened", name, errno);
  }
  struct stat status;
  if (fstat(file.get(), &status) != 0) return failed("read", name, errno);
  if (!S_ISREG(status.st_mode)) return DataLossError("it is no plain file");
  if (status.st_uid != geteuid() || (status.st_mode & kOthersWrite) != 0) {
    return DataLossError("it belongs to another user, or others can write it");
  }
  if (static_cast<uint64_t>(status.st_size) > most) {
    return DataLossError(absl::StrCat("it has more than ", most, " bytes"));
  }
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t count = ::read(file.get(), bytes.data() + at, bytes.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed("read", name, errno);
    // Somebody cuts it while it is read: what is missing is found by its reader.
    if (count == 0) bytes.resize(at);
    at += static_cast<size_t>(count);
  }
  return bytes;
}

Status CacheFolder::write(const std::string& name, absl::string_view bytes) const {
  const std::string fresh = fresh_name(name);
  OpenFile file(openat(descriptor_, fresh.c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  if (!file) return failed("written", name, errno);
  const auto fail = [&] {
    const int error = errno;
    unlinkat(descriptor_, fresh.c_str(), 0);
    return failed("written", name, error);
  };
  while (!bytes.empty()) {
    const ssize_t count = ::write(file.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail();
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  // Not synchronised with the disk: an entry that a crash of the machine cuts is found by its checksum.
  if (!file.close() || renameat(descriptor_, fresh.c_str(), descriptor_, name.c_str()) != 0) {
    return fail();
  }
  return OkStatus();
}

Status CacheFolder::remove(const std::string& name) const {
  if (unlinkat(descriptor_, name.c_str(), 0) == 0 || errno == ENOENT) return OkStatus();
  // A folder in the place of a file; one with something in it stays.
  if (errno == EISDIR && unlinkat(descriptor_, name.c_str(), AT_REMOVEDIR) == 0) return OkStatus();
  return failed("removed", name, errno);
}

void CacheFolder::touch(const std::string& name) const {
  struct stat status;
  if (fstatat(descriptor_, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  // A clock that was set back makes files of the future, which are as good as new.
  if (now() - status.st_mtime < kDay) return;
  set_to_now(descriptor_, name);
}

bool CacheFolder::claim(const std::string& name, int64_t seconds) const {
  struct stat status;
  if (fstatat(descriptor_, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return write(name, "").ok() && set_to_now(descriptor_, name);
  }
  const int64_t age = now() - status.st_mtime;
  if (age >= 0 && age < seconds) return false;
  return set_to_now(descriptor_, name);
}

StatusOr<std::vector<CacheFolder::File>> CacheFolder::list() const {
  // A description of its own, whose place in the folder nobody else moves.
  const int copy = openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return ErrnoToStatus(errno, absl::StrCat(path_, " cannot be listed"));
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(fdopendir(copy), closedir);
  if (folder == nullptr) {
    ::close(copy);
    return ErrnoToStatus(errno, absl::StrCat(path_, " cannot be listed"));
  }
  std::vector<File> files;
  while (const dirent* entry = readdir(folder.get())) {
    struct stat status;
    if (fstatat(descriptor_, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode)) {
      continue;
    }
    files.push_back({entry->d_name, static_cast<uint64_t>(status.st_size), status.st_mtime});
  }
  return files;
}

}  // namespace heddle::codegen
