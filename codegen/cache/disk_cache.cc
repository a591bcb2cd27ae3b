#include "heddle/codegen/cache/disk_cache.h"

#include <sys/auxv.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "heddle/codegen/cache/entry.h"
#include "heddle/codegen/cache/user_folder.h"

namespace heddle::codegen {
namespace {

// Its time is that of the last look at the size.
constexpr char kSwept[] = "swept";
// A writer takes less.
constexpr int64_t kOldestTemporary = 3600;

absl::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

CacheLimits limits_of_user() {
  constexpr int kMib = 20;
  CacheLimits limits;
  uint64_t mib = 0;
  if (absl::SimpleAtoi(variable("HEDDLE_CACHE_MIB"), &mib) && mib < (uint64_t{1} << 40)) {
    limits.bytes = mib << kMib;
  }
  return limits;
}

StatusOr<std::string> folder_of_user() {
  const StatusOr<std::string> folder = user_cache_folder();
  if (!folder.ok()) return folder;
  return absl::StrCat(*folder, "/kernels");
}

// The folders that this process has opened, or failed to.
struct Opened {
  std::mutex mutex;
  std::map<std::pair<std::string, uint64_t>, std::shared_ptr<DiskCache>> of;
  // Never destroyed: another static object's destructor may still compile a kernel.
  static Opened& of_process() {
    static Opened& opened = *new Opened;
    return opened;
  }
};

}  // namespace

std::shared_ptr<DiskCache> DiskCache::of_user() {
  if (variable("HEDDLE_CACHE") == "off" || getauxval(AT_SECURE) != 0) return nullptr;
  Opened& opened = Opened::of_process();
  const std::lock_guard lock(opened.mutex);
  const auto [place, is_new] =
      opened.of.try_emplace({folder_of_user().value_or(""), limits_of_user().bytes}, nullptr);
  if (!is_new) return place->second;
  StatusOr<std::shared_ptr<DiskCache>> cache = open_of_user();
  if (cache.ok()) {
    place->second = *std::move(cache);
  } else {
    std::fprintf(stderr, "heddle: compiled kernels are not kept for other programs: %s\n",
                 std::string(cache.status().message()).c_str());
  }
  return place->second;
}

StatusOr<std::shared_ptr<DiskCache>> DiskCache::open_of_user() {
  const StatusOr<std::string> folder = folder_of_user();
  if (folder.ok()) return open(*folder, limits_of_user());
  return FailedPreconditionError(
      absl::StrCat(folder.status().message(), "; fix: set HEDDLE_CACHE_DIR to a folder of yours"));
}

StatusOr<std::shared_ptr<DiskCache>> DiskCache::open(const std::string& folder,
                                                     const CacheLimits& limits) {
  StatusOr<CacheFolder> opened = CacheFolder::open(folder);
  if (!opened.ok()) return opened.status();
  return std::shared_ptr<DiskCache>(new DiskCache(*std::move(opened), limits));
}

void DiskCache::say(const Status& why) {
  if (said_.exchange(true)) return;
  std::fprintf(stderr, "heddle: the cache of compiled kernels is of no use now: %s\n",
               std::string(why.message()).c_str());
}

std::optional<std::string> DiskCache::find(absl::string_view key) {
  const std::string name = entry_name(key);
  const StatusOr<std::string> bytes = folder_.read(name, limits_.entry_bytes);
  if (bytes.ok()) {
    const StatusOr<CacheEntry> entry = decode_entry(*bytes);
    if (entry.ok() && entry->key == key) {
      folder_.touch(name);
      ++hits_;
      return std::string(entry->value);
    }
    // An entry of another key with the same name is as good as any; what is stored next takes its place.
    if (!entry.ok()) {
      ++damaged_;
      if (Status s = folder_.remove(name); !s.ok()) say(s);
    }
  } else if (IsDataLoss(bytes.status())) {
    ++damaged_;
    if (Status s = folder_.remove(name); !s.ok()) say(s);
  } else if (!IsNotFound(bytes.status())) {
    say(bytes.status());
  }
  ++misses_;
  return std::nullopt;
}

void DiskCache::store(absl::string_view key, absl::string_view label, absl::string_view value) {
  if (!writes_) return;
  const std::string bytes = encode_entry({key, label, value});
  if (bytes.size() > std::min(limits_.entry_bytes, limits_.bytes)) return;
  if (Status s = folder_.write(entry_name(key), bytes); !s.ok()) {
    // A disk that is full or read-only stays so for a while: later kernels are not slowed down by it.
    writes_ = false;
    say(s);
    return;
  }
  ++stored_;
  if (folder_.claim(kSwept, limits_.sweep_seconds)) sweep();
}

void DiskCache::forget(absl::string_view key) {
  if (Status s = folder_.remove(entry_name(key)); !s.ok()) say(s);
}

StatusOr<std::vector<DiskCache::Entry>> DiskCache::entries() const {
  StatusOr<std::vector<CacheFolder::File>> files = folder_.list();
  if (!files.ok()) return files.status();
  std::vector<Entry> all;
  for (const CacheFolder::File& file : *files) {
    if (!is_entry_name(file.name)) continue;
    Entry entry{file.name, "", file.bytes, file.used};
    const StatusOr<std::string> bytes = folder_.read(file.name, limits_.entry_bytes);
    if (IsNotFound(bytes.status())) continue;  // somebody has just deleted it
    if (!bytes.ok() && !IsDataLoss(bytes.status())) return bytes.status();
    if (bytes.ok()) {
      const StatusOr<CacheEntry> decoded = decode_entry(*bytes);
      if (decoded.ok() && entry_name(decoded->key) == file.name) {
        entry.label = std::string(decoded->label);
      }
    }
    all.push_back(std::move(entry));
  }
  std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) {
    return std::pair(b.used, a.name) < std::pair(a.used, b.name);
  });
  return all;
}

StatusOr<DiskCache::Usage> DiskCache::usage() const {
  const StatusOr<std::vector<CacheFolder::File>> files = folder_.list();
  if (!files.ok()) return files.status();
  Usage usage;
  for (const CacheFolder::File& file : *files) {
    if (!is_entry_name(file.name)) continue;
    ++usage.entries;
    usage.bytes += file.bytes;
  }
  return usage;
}

StatusOr<int> DiskCache::clear() const {
  const StatusOr<std::vector<CacheFolder::File>> files = folder_.list();
  if (!files.ok()) return files.status();
  int count = 0;
  for (const CacheFolder::File& file : *files) {
    if (!is_entry_name(file.name)) continue;
    if (Status s = folder_.remove(file.name); !s.ok()) return s;
    ++count;
  }
  return count;
}

StatusOr<int> DiskCache::drop_damaged() const {
  const StatusOr<std::vector<Entry>> all = entries();
  if (!all.ok()) return all.status();
  int count = 0;
  for (const Entry& entry : *all) {
    if (!entry.label.empty()) continue;
    if (Status s = folder_.remove(entry.name); !s.ok()) return s;
    ++count;
  }
  return count;
}

void DiskCache::sweep() const {
  StatusOr<std::vector<CacheFolder::File>> files = folder_.list();
  if (!files.ok()) return;
  uint64_t bytes = 0;
  std::vector<CacheFolder::File> entries;
  for (CacheFolder::File& file : *files) {
    if (is_entry_name(file.name)) {
      bytes += file.bytes;
      entries.push_back(std::move(file));
    } else if (absl::EndsWith(file.name, ".tmp") &&
               std::time(nullptr) - file.used > kOldestTemporary) {
      (void)folder_.remove(file.name);
    }
  }
  if (bytes <= limits_.bytes) return;
  std::sort(entries.begin(), entries.end(),
            [](const CacheFolder::File& a, const CacheFolder::File& b) { return a.used < b.used; });
  const uint64_t wanted = limits_.bytes - limits_.bytes / 5;
  for (const CacheFolder::File& file : entries) {
    if (bytes <= wanted) break;
    if (folder_.remove(file.name).ok()) bytes -= file.bytes;
  }
}

}  // namespace heddle::codegen
