// What took long to make, kept in files: what an assembler wrote, what a tool answered.
//
//   if (std::shared_ptr<DiskCache> cache = DiskCache::of_user()) {
//     if (std::optional<std::string> known = cache->find(key)) return *known;
//     cache->store(key, "row_sum, sm_90a", value);
//   }
//
// An entry is one file (entry.h), in a folder of the user's (folder.h). Any number of processes and threads may read, write,
// and delete beside each other, or be killed: a file is there as a whole, or not at all. What is damaged is deleted and made
// again; where the system fails (a full disk, one that is read-only), nothing is deleted, the process says so once, and goes
// on without. No lock is ever taken between processes: two that miss both make what is missing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/codegen/cache/folder.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {

struct CacheLimits {
  uint64_t bytes =
      uint64_t{1} << 30;  // of all entries: those used longest ago go, until a fifth is free
  uint64_t entry_bytes = uint64_t{256} << 20;  // of one
  int64_t sweep_seconds =
      3600;  // between two looks at the size, of all processes, unless one stores much
};

class DiskCache {
 public:
  // That of the user (user_folder.h), in "kernels" there. nullptr where HEDDLE_CACHE is "off" or "0", in programs that run with
  // more rights than their user has, and where there is no folder that can be trusted, which is said once. HEDDLE_CACHE_MIB
  // limits it otherwise than to 1024; 0: off. The environment counts as it is at the time of the call.
  static std::shared_ptr<DiskCache> of_user();
  // The same, whatever HEDDLE_CACHE says; an error says why it cannot be had, and what to do.
  static StatusOr<std::shared_ptr<DiskCache>> open_of_user();
  static StatusOr<std::shared_ptr<DiskCache>> open(const std::string& folder,
                                                   const CacheLimits& limits = {});

  // The value of a key; nullopt where there is none, or one that is damaged, which is deleted.
  std::optional<std::string> find(absl::string_view key);
  // Keeps a value. `label` is for people.
  void store(absl::string_view key, absl::string_view label, absl::string_view value);
  // Forgets a value: it has turned out to be of no use.
  void forget(absl::string_view key);

  struct Entry {
    std::string name;  // of the file
    std::string label;
    bool damaged = false;
    bool foreign = false;  // another version of Heddle has made it
    uint64_t bytes = 0;
    int64_t used = 0;  // on which day, in seconds since 1970
  };
  // All entries, those used last first. Reads all files.
  StatusOr<std::vector<Entry>> entries() const;
  // How many there are, and their bytes. Reads no file.
  struct Usage {
    int64_t entries = 0;
    uint64_t bytes = 0;
  };
  StatusOr<Usage> usage() const;
  // Deletes all entries; how many.
  StatusOr<int> clear() const;
  // Deletes the damaged entries; how many. Those of other versions stay.
  StatusOr<int> drop_damaged() const;
  // Deletes what was used longest ago where all together are over the limit, and what writers that were killed have left.
  void sweep();

  const std::string& path() const { return folder_.path(); }
  const CacheLimits& limits() const { return limits_; }

  // Of this object.
  struct Counts {
    int64_t hits = 0, misses = 0, stored = 0, damaged = 0;
  };
  Counts counts() const { return {hits_, misses_, stored_, damaged_}; }

 private:
  DiskCache(CacheFolder folder, const CacheLimits& limits)
      : folder_(std::move(folder)), limits_(limits) {}
  // The entries' files, of any version.
  StatusOr<std::vector<CacheFolder::File>> files() const;
  // Deletes what is damaged.
  void drop(const std::string& name);
  // Says it once.
  void say(absl::string_view what, const Status& why);

  CacheFolder folder_;
  const CacheLimits limits_;
  std::atomic<int64_t> hits_{0}, misses_{0}, stored_{0}, damaged_{0};
  std::atomic<uint64_t> unswept_{
      0};  // bytes that this object has stored since it last looked at the size
  std::atomic<bool> said_{false}, writes_{true};
};

}  // namespace heddle::codegen
