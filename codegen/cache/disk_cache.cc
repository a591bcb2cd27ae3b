#include "heddle/codegen/cache/disk_cache.h"

#include <sys/auxv.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "heddle/codegen/cache/entry.h"
#include "heddle/codegen/cache/user_folder.h"
#include "heddle/codegen/environment.h"

namespace heddle::codegen {
namespace {

// Its time is that of the last look at the size.
constexpr char kSwept[] = "swept";
constexpr char kFix[] = "; fix: set HEDDLE_CACHE_DIR to a folder of yours";
constexpr char kNotDeleted[] = "a compiled kernel that is of no use cannot be deleted";
// A part of the limit that is free after a sweep.
constexpr uint64_t kFree = 5;
// A writer takes less.
constexpr int64_t kOldestTemporary = 3600;

CacheLimits limits_of_user() {
  constexpr int kMib = 20;
  CacheLimits limits;
  const std::string text = environment_variable("HEDDLE_CACHE_MIB");
  uint64_t mib = 0;
  if (absl::SimpleAtoi(text, &mib) && mib < (uint64_t{1} << 40)) {
    limits.bytes = mib << kMib;
  } else if (!text.empty()) {
    static std::once_flag said;
    std::call_once(said, [&] {
      std::fprintf(
          stderr,
          "heddle: HEDDLE_CACHE_MIB is '%s', which is no number of MiB; the cache of compiled "
          "kernels has 1024\n",
          text.c_str());
    });
  }
  return limits;
}

bool is_off() {
  const std::string text = environment_variable("HEDDLE_CACHE");
  return text == "off" || text == "0" || limits_of_user().bytes == 0 || getauxval(AT_SECURE) != 0;
}

// What a writer that was killed has left: of an entry, or of the note of the last sweep.
bool is_left_over(absl::string_view name) {
  const std::optional<absl::string_view> target = CacheFolder::target_of(name);
  return target && (*target == kSwept || is_entry_name(*target));
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
  if (is_off()) return nullptr;
  Opened& opened = Opened::of_process();
  const std::lock_guard lock(opened.mutex);
  const auto [place, is_new] =
      opened.of.try_emplace({folder_of_user().value_or(""), limits_of_user().bytes}, nullptr);
  if (!is_new) return place->second;
  StatusOr<std::shared_ptr<DiskCache>> cache = open_of_user();
  if (cache.ok()) {
    place->second = *std::move(cache);
  } else {
    const std::string why(cache.status().message());
    std::fprintf(stderr, "heddle: compiled kernels are not kept for other programs: %s%s\n",
                 why.c_str(), absl::StrContains(why, "; fix: ") ? "" : kFix);
  }
  return place->second;
}

StatusOr<std::shared_ptr<DiskCache>> DiskCache::open_of_user() {
  const StatusOr<std::string> folder = folder_of_user();
  if (folder.ok()) return open(*folder, limits_of_user());
  return FailedPreconditionError(absl::StrCat(folder.status().message(), kFix));
}

StatusOr<std::shared_ptr<DiskCache>> DiskCache::open(const std::string& folder,
                                                     const CacheLimits& limits) {
  StatusOr<CacheFolder> opened = CacheFolder::open(folder);
  if (!opened.ok()) return opened.status();
  return std::shared_ptr<DiskCache>(new DiskCache(*std::move(opened), limits));
}

void DiskCache::say(absl::string_view what, const Status& why) {
  if (said_.exchange(true)) return;
  std::fprintf(stderr, "heddle: %s: %s\n", std::string(what).c_str(),
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
    if (!entry.ok()) drop(name);
  } else if (IsDataLoss(bytes.status())) {
    drop(name);
  } else if (!IsNotFound(bytes.status())) {
    say("a compiled kernel cannot be read, and is compiled again", bytes.status());
  }
  ++misses_;
  return std::nullopt;
}

void DiskCache::drop(const std::string& name) {
  ++damaged_;
  if (Status s = folder_.remove(name); !s.ok()) say(kNotDeleted, s);
}

void DiskCache::store(absl::string_view key, absl::string_view label, absl::string_view value) {
  if (!writes_) return;
  const std::string bytes = encode_entry({key, label, value});
  if (bytes.size() > std::min(limits_.entry_bytes, limits_.bytes)) return;
  if (Status s = folder_.write(entry_name(key), bytes); !s.ok()) {
    // A disk that is full or read-only stays so for a while: later kernels are not slowed down by it.
    writes_ = false;
    say("compiled kernels are kept for other programs no more", s);
    return;
  }
  ++stored_;
  // The first to store after a while looks at the size, and whoever stores much.
  const bool much = (unswept_ += bytes.size()) > limits_.bytes / kFree;
  if (folder_.claim(kSwept, limits_.sweep_seconds) || much) sweep();
}

void DiskCache::forget(absl::string_view key) {
  if (Status s = folder_.remove(entry_name(key)); !s.ok()) say(kNotDeleted, s);
}

StatusOr<std::vector<CacheFolder::File>> DiskCache::files() const {
  StatusOr<std::vector<CacheFolder::File>> files = folder_.list();
  if (!files.ok()) return files;
  std::erase_if(*files, [](const CacheFolder::File& file) { return !is_entry_name(file.name); });
  return files;
}

StatusOr<std::vector<DiskCache::Entry>> DiskCache::entries() const {
  const StatusOr<std::vector<CacheFolder::File>> files = this->files();
  if (!files.ok()) return files.status();
  std::vector<Entry> all;
  for (const CacheFolder::File& file : *files) {
    Entry entry{file.name, "", false, !is_own_entry_name(file.name), file.bytes, file.used};
    if (entry.foreign) {
      all.push_back(std::move(entry));
      continue;
    }
    const StatusOr<std::string> bytes = folder_.read(file.name, limits_.entry_bytes);
    if (IsNotFound(bytes.status())) continue;  // somebody has just deleted it
    if (!bytes.ok() && !IsDataLoss(bytes.status())) return bytes.status();
    entry.damaged = true;
    if (bytes.ok()) {
      const StatusOr<CacheEntry> decoded = decode_entry(*bytes);
      entry.damaged = !decoded.ok() || entry_name(decoded->key) != file.name;
      if (!entry.damaged) entry.label = std::string(decoded->label);
    }
    all.push_back(std::move(entry));
  }
  std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) {
    return std::pair(b.used, a.name) < std::pair(a.used, b.name);
  });
  return all;
}

StatusOr<DiskCache::Usage> DiskCache::usage() const {
  const StatusOr<std::vector<CacheFolder::File>> files = this->files();
  if (!files.ok()) return files.status();
  Usage usage;
  for (const CacheFolder::File& file : *files) {
    ++usage.entries;
    usage.bytes += file.bytes;
  }
  return usage;
}

StatusOr<int> DiskCache::clear() const {
  const StatusOr<std::vector<CacheFolder::File>> files = this->files();
  if (!files.ok()) return files.status();
  int count = 0;
  for (const CacheFolder::File& file : *files) {
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
    if (!entry.damaged) continue;
    if (Status s = folder_.remove(entry.name); !s.ok()) return s;
    ++count;
  }
  return count;
}

void DiskCache::sweep() {
  unswept_ = 0;
  StatusOr<std::vector<CacheFolder::File>> files = folder_.list();
  if (!files.ok()) return;
  uint64_t bytes = 0;
  std::vector<CacheFolder::File> entries;
  for (CacheFolder::File& file : *files) {
    if (is_entry_name(file.name)) {
      bytes += file.bytes;
      entries.push_back(std::move(file));
    } else if (is_left_over(file.name) && std::time(nullptr) - file.used > kOldestTemporary) {
      (void)folder_.remove(file.name);
    }
  }
  if (bytes <= limits_.bytes) return;
  std::sort(entries.begin(), entries.end(),
            [](const CacheFolder::File& a, const CacheFolder::File& b) { return a.used < b.used; });
  const uint64_t wanted = limits_.bytes - limits_.bytes / kFree;
  for (const CacheFolder::File& file : entries) {
    if (bytes <= wanted) break;
    if (folder_.remove(file.name).ok()) bytes -= file.bytes;
  }
}

}  // namespace heddle::codegen
