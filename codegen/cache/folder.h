// A folder of files that belong to one user: opened once, trusted or refused, and then reached by its descriptor alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {

class CacheFolder {
 public:
  // Makes the folder (rights 0700), and those on the way to it, where there is none.
  //   kPermissionDenied    it is a link, belongs to another user, or others can write there
  //   and the codes of the system; each message names the folder
  static StatusOr<CacheFolder> open(const std::string& path);

  CacheFolder(CacheFolder&& other) noexcept;
  CacheFolder& operator=(CacheFolder&&) = delete;
  ~CacheFolder();

  const std::string& path() const { return path_; }

  // The whole file. kNotFound: there is none; kDataLoss: it is no plain file of the user's, or larger than `most` bytes;
  // otherwise the system failed.
  StatusOr<std::string> read(const std::string& name, uint64_t most) const;
  // Of a file that write() is making, or was when it was killed, the name that it was to have; nullopt: it is none.
  static std::optional<absl::string_view> target_of(absl::string_view file);
  // Puts a file there, in place of one of the name: whole, or not at all.
  Status write(const std::string& name, absl::string_view bytes) const;
  // OK where there is none.
  Status remove(const std::string& name) const;
  // Notes that a file is used, once a day at most.
  void touch(const std::string& name) const;
  // Whether the file `name` is older than so many seconds, or absent; then its time is set to now, so that of several
  // processes that ask one is told so, or a few that ask at once.
  bool claim(const std::string& name, int64_t seconds) const;

  struct File {
    std::string name;
    uint64_t bytes = 0;
    int64_t used = 0;  // when, in seconds since 1970
  };
  // All plain files, in no order.
  StatusOr<std::vector<File>> list() const;

 private:
  CacheFolder(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  Status failed(absl::string_view what, const std::string& name, int error) const;

  std::string path_;
  int descriptor_;  // -1: moved from
};

}  // namespace heddle::codegen
