// The disk cache: what it keeps, and what happens to its files.
#include "heddle/codegen/cache/disk_cache.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/toolchain/tool_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/codegen/cache/entry.h"
#include "heddle/codegen/cache/user_folder.h"

namespace heddle::codegen {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Sets an environment variable for a scope; nullptr: unsets it.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    const char* const before = getenv(name);
    had_ = before != nullptr;
    if (had_) before_ = before;
    set(value);
  }
  ~Variable() { set(had_ ? before_.c_str() : nullptr); }

 private:
  void set(const char* value) {
    if (value == nullptr) {
      unsetenv(name_);
    } else {
      setenv(name_, value, 1);
    }
  }
  const char* name_;
  bool had_;
  std::string before_;
};

class DiskCacheTest : public testing::Test {
 protected:
  std::shared_ptr<DiskCache> open(const CacheLimits& limits = {}) {
    StatusOr<std::shared_ptr<DiskCache>> cache = DiskCache::open(folder(), limits);
    EXPECT_TRUE(cache.ok()) << cache.status();
    return cache.ok() ? *cache : nullptr;
  }
  std::string folder() const { return temp_.file("a/b/kernels"); }
  std::string file_of(const std::string& key) const {
    return absl::StrCat(folder(), "/", entry_name(key));
  }
  // All names in the folder but the note of the last sweep.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder())) {
      if (entry.path().filename() != "swept") names.push_back(entry.path().filename());
    }
    return names;
  }
  static void set_age(const std::string& path, int64_t seconds) {
    const timespec times[] = {{time(nullptr) - seconds, 0}, {time(nullptr) - seconds, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  // What f() returns in a process of its own; -1: it did not end by itself.
  template <class F>
  static int in_child(F f) {
    const pid_t child = fork();
    if (child == 0) _exit(f());
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // That a key is missed, and what lies in its place makes way for what is stored next.
  void expect_recovers(DiskCache& cache, const std::string& key) {
    EXPECT_EQ(cache.find(key), std::nullopt);
    cache.store(key, "again", "value");
    EXPECT_EQ(cache.find(key), "value");
  }

  TempDir temp_;
};

TEST_F(DiskCacheTest, KeepsWhatOtherProcessesStore) {
  open()->store("key", "k, sm_90a", std::string("a\0b", 3));
  const auto cache = open();
  EXPECT_EQ(cache->find("key"), std::string("a\0b", 3));
  EXPECT_EQ(cache->find("other"), std::nullopt);
  cache->store("key", "k", "new");
  EXPECT_EQ(cache->find("key"), "new");
  EXPECT_THAT(files(), ElementsAre(entry_name("key")));
  EXPECT_EQ(cache->counts().hits, 2);
  EXPECT_EQ(cache->counts().misses, 1);
  EXPECT_EQ(cache->counts().stored, 1);
  cache->forget("key");
  EXPECT_EQ(cache->find("key"), std::nullopt);
}

TEST_F(DiskCacheTest, IsTheUsersAlone) {
  open()->store("key", "k", "value");
  struct stat status;
  ASSERT_EQ(stat(folder().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(stat(file_of("key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(DiskCacheTest, RefusesFoldersThatOthersReach) {
  const auto refused = [](const std::string& path) {
    const Status status = DiskCache::open(path).status();
    EXPECT_EQ(status.code(), StatusCode::kPermissionDenied) << path;
    return std::string(status.message());
  };
  open();
  fs::permissions(folder(), fs::perms::all);
  EXPECT_THAT(refused(folder()), HasSubstr("can be written by others; fix: chmod go-w"));
  fs::permissions(folder(), fs::perms::owner_all);
  fs::create_directory_symlink(folder(), temp_.file("link"));
  EXPECT_THAT(refused(temp_.file("link")), HasSubstr("is a link or a file"));
  write_file(temp_.file("file"), "");
  EXPECT_THAT(refused(temp_.file("file")), HasSubstr("is a link or a file"));
  if (geteuid() == 0) {
    ASSERT_EQ(chown(folder().c_str(), 12345, 0), 0);
    EXPECT_THAT(refused(folder()), HasSubstr("belongs to another user"));
  }
  EXPECT_FALSE(DiskCache::open("/proc/nowhere/kernels").ok());
  EXPECT_FALSE(DiskCache::open(temp_.file(std::string(300, 'x'))).ok());
  EXPECT_FALSE(DiskCache::open(temp_.file(std::string("a\0b", 3))).ok());
}

TEST_F(DiskCacheTest, WhatIsDamagedIsMadeAgain) {
  const auto cache = open();
  cache->store("key", "k", "value");
  const std::string good = content_of(file_of("key"));
  for (size_t size = 0; size < good.size(); ++size) {
    write_file(file_of("key"), good.substr(0, size));
    EXPECT_EQ(cache->find("key"), std::nullopt);
    EXPECT_FALSE(fs::exists(file_of("key"))) << "of " << size << " bytes";
  }
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::string bytes = good;
    const size_t bit = random() % (8 * bytes.size());
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    write_file(file_of("key"), bytes);
    EXPECT_EQ(cache->find("key"), std::nullopt) << bit;
  }
  expect_recovers(*cache, "key");
  EXPECT_EQ(cache->counts().damaged, static_cast<int64_t>(good.size()) + 200);
}

// Its checksum is right, but it is of another key: of a forger's, or with the same hash.
TEST_F(DiskCacheTest, TheWholeKeyIsCompared) {
  const auto cache = open();
  cache->store("other", "o", "wrong");
  fs::rename(file_of("other"), file_of("key"));
  expect_recovers(*cache, "key");
}

TEST_F(DiskCacheTest, WhatIsNoPlainFileIsNoEntry) {
  const auto cache = open();
  const std::string path = file_of("key"), target = temp_.file("target");
  write_file(target, encode_entry({"key", "k", "planted"}));
  const std::vector<std::pair<const char*, std::function<void()>>> plants = {
      {"a link", [&] { fs::create_symlink(target, path); }},
      {"a dangling link", [&] { fs::create_symlink(temp_.file("nothing"), path); }},
      {"a pipe", [&] { ASSERT_EQ(mkfifo(path.c_str(), 0600), 0); }},
      {"an empty folder", [&] { fs::create_directory(path); }},
      {"an entry that others can write", [&] {
         fs::copy_file(target, path);
         fs::permissions(path, fs::perms(0666));
       }}};
  for (const auto& [what, plant] : plants) {
    SCOPED_TRACE(what);
    fs::remove(path);
    plant();
    expect_recovers(*cache, "key");
  }
  EXPECT_TRUE(fs::exists(target)) << "what a link leads to is left alone";
}

// No file can take the place of a folder with something in it: a rename that fails.
TEST_F(DiskCacheTest, WhatCannotBeReplacedIsDoneWithout) {
  const auto cache = open();
  cache->store("other", "o", "value");
  fs::create_directories(file_of("key") + "/full");
  testing::internal::CaptureStderr();
  EXPECT_EQ(cache->find("key"), std::nullopt);
  cache->store("key", "k", "value");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("heddle: a compiled kernel that is of no use cannot be deleted: "));
  EXPECT_EQ(cache->find("key"), std::nullopt);
  EXPECT_EQ(cache->find("other"), "value");
  EXPECT_THAT(files(), SizeIs(2)) << "no half is left";
}

TEST_F(DiskCacheTest, LargeFilesAreNotRead) {
  const auto cache = open({.entry_bytes = 1000});
  cache->store("large", "l", std::string(1000, 'x'));
  EXPECT_THAT(files(), IsEmpty()) << "nor written";
  write_file(file_of("key"), encode_entry({"key", "k", std::string(1000, 'x')}));
  EXPECT_EQ(cache->find("key"), std::nullopt);
}

// A user without rights, and a disk that is read-only, look alike.
TEST_F(DiskCacheTest, AFolderThatCannotBeWrittenIsReadAlone) {
  open()->store("key", "k", "value");
  EXPECT_EQ(
      in_child([&] {
        // Root may write anywhere: another user, to whom the folder belongs, may not.
        if (geteuid() == 0 &&
            (lchown(folder().c_str(), 12345, 0) != 0 ||
             lchown(file_of("key").c_str(), 12345, 0) != 0 ||
             chmod(temp_.path().c_str(), 0755) != 0 || chmod(temp_.file("a").c_str(), 0755) != 0 ||
             chmod(temp_.file("a/b").c_str(), 0755) != 0 || seteuid(12345) != 0)) {
          return 9;
        }
        if (chmod(folder().c_str(), 0500) != 0) return 8;
        const auto cache = open();
        if (cache == nullptr || cache->find("key") != "value") return 1;
        testing::internal::CaptureStderr();
        cache->store("other", "o", "value");
        cache->store("third", "t", "value");
        const std::string said = testing::internal::GetCapturedStderr();
        if (cache->find("other") || cache->find("key") != "value") return 2;
        const size_t first =
            said.find("heddle: compiled kernels are kept for other programs no more: ");
        return first == 0 && said.find("heddle:", 1) == std::string::npos ? 0 : 3;
      }),
      0);
  fs::permissions(folder(), fs::perms::owner_all);
}

// A file that may not grow is what a full disk looks like: the write fails half-way.
TEST_F(DiskCacheTest, AFullDiskLeavesNothingBehind) {
  const auto cache = open();
  cache->store("key", "k", "value");
  EXPECT_EQ(in_child([&] {
              const rlimit limit{100, 100};
              signal(SIGXFSZ, SIG_IGN);
              if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 9;
              cache->store("large", "l", std::string(1 << 20, 'x'));
              if (cache->find("large") || cache->find("key") != "value") return 1;
              return 0;
            }),
            0);
  EXPECT_THAT(files(), ElementsAre(entry_name("key")));
}

TEST_F(DiskCacheTest, WithoutFilesToOpenItMisses) {
  const auto cache = open();
  cache->store("key", "k", "value");
  EXPECT_EQ(in_child([&] {
              const rlimit limit{0, 0};
              if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 9;
              if (cache->find("key")) return 1;
              cache->store("other", "o", "value");
              return 0;
            }),
            0);
  EXPECT_EQ(cache->find("key"), "value") << "a failure of the system deletes nothing";
}

TEST_F(DiskCacheTest, AFolderThatIsDeletedIsSurvived) {
  const auto cache = open();
  fs::remove_all(folder());
  EXPECT_EQ(cache->find("key"), std::nullopt);
  cache->store("key", "k", "value");
  EXPECT_EQ(cache->find("key"), std::nullopt);
}

TEST_F(DiskCacheTest, WhatWasUsedLongestAgoGoesFirst) {
  const auto cache = open({.bytes = 10'000});
  constexpr int kEntries = 9;
  for (int i = 0; i < kEntries; ++i) {
    cache->store(absl::StrCat(i), "k", std::string(1000, 'x'));
    set_age(file_of(absl::StrCat(i)), (kEntries - i) * 100'000);
  }
  EXPECT_EQ(cache->find("0"), std::string(1000, 'x')) << "which counts as use";
  cache->sweep();
  EXPECT_THAT(files(), SizeIs(kEntries)) << "all together are within the limit";
  cache->store("9", "k", std::string(1000, 'x'));
  cache->sweep();
  // Of ten times 1050 bytes so many stay as are within four fifths of the limit.
  EXPECT_THAT(files(), SizeIs(7));
  for (const int gone : {1, 2, 3}) EXPECT_FALSE(fs::exists(file_of(absl::StrCat(gone)))) << gone;
  EXPECT_TRUE(fs::exists(file_of("0")));
}

TEST_F(DiskCacheTest, OneOfManyProcessesSweeps) {
  // Each is a process of its own, that stores little; others have stored more than the limit.
  const auto store = [&](const std::string& key) {
    open({.bytes = 3000, .sweep_seconds = 3600})->store(key, "k", std::string(400, 'x'));
  };
  const auto fill = [&] {
    for (int i = 0; i < 6; ++i) write_file(file_of(absl::StrCat(i)), std::string(1000, 'x'));
    for (int i = 0; i < 6; ++i) set_age(file_of(absl::StrCat(i)), 1000);
  };
  store("first");
  fill();
  store("second");
  EXPECT_THAT(files(), SizeIs(8)) << "the first one has looked";
  set_age(folder() + "/swept", 4000);
  store("third");
  EXPECT_THAT(files(), SizeIs(4)) << "three of 466 bytes, and one of 1000";
  fill();
  store("fourth");
  EXPECT_THAT(files(), SizeIs(10)) << "it has just been looked at";
  set_age(folder() + "/swept", -10'000);
  store("fifth");
  EXPECT_THAT(files(), SizeIs(5)) << "a clock that was set back does not stop it";
}

TEST_F(DiskCacheTest, WhoeverStoresMuchSweepsToo) {
  const auto cache = open({.bytes = 10'000, .sweep_seconds = 3600});
  for (int i = 0; i < 100; ++i) {
    cache->store(absl::StrCat(i), "k", std::string(1000, 'x'));
    EXPECT_LE(cache->usage()->bytes, 10'000u + 10'000 / 5 + 2 * 1100) << i;
  }
}

TEST_F(DiskCacheTest, EntriesOfOtherVersionsAreLeftToThem) {
  const auto cache = open();
  cache->store("key", "k", "value");
  std::string name = entry_name("key");
  name.replace(name.find("-1."), 3, "-2.");
  write_file(absl::StrCat(folder(), "/", name), "in another format");
  EXPECT_EQ(cache->usage()->entries, 2);
  EXPECT_EQ(*cache->drop_damaged(), 0);
  const StatusOr<std::vector<DiskCache::Entry>> entries = cache->entries();
  EXPECT_TRUE(std::any_of(entries->begin(), entries->end(),
                          [](const DiskCache::Entry& entry) { return entry.foreign; }));
  EXPECT_EQ(*cache->clear(), 2);
}

TEST_F(DiskCacheTest, WhatKilledWritersLeaveGoesLater) {
  const auto cache = open();
  const std::string old = absl::StrCat(folder(), "/.", entry_name("key"), ".12.3.4567.tmp"),
                    note = absl::StrCat(folder(), "/.swept.12.3.4567.tmp"),
                    fresh = absl::StrCat(folder(), "/.", entry_name("key"), ".12.4.4567.tmp");
  const std::vector<std::string> foreign = {folder() + "/notes.txt", folder() + "/report.tmp",
                                            folder() + "/.tmp", folder() + "/.swept.tmp",
                                            folder() + "/.report.12.3.4567.tmp"};
  for (const std::string& path : {old, note, fresh}) write_file(path, "x");
  for (const std::string& path : foreign) write_file(path, "x");
  for (const std::string& path : foreign) set_age(path, 10'000);
  for (const std::string& path : {old, note}) set_age(path, 10'000);
  cache->sweep();
  EXPECT_FALSE(fs::exists(old));
  EXPECT_FALSE(fs::exists(note));
  EXPECT_TRUE(fs::exists(fresh)) << "somebody may be writing it";
  EXPECT_EQ(*cache->clear(), 0);
  for (const std::string& path : foreign) EXPECT_TRUE(fs::exists(path)) << path;
}

TEST_F(DiskCacheTest, SaysWhatItHas) {
  const auto cache = open();
  cache->store("key", "k, sm_90a", "value");
  set_age(file_of("key"), 100'000);
  cache->store("other", "o, sm_80", "longer value");
  cache->store("third", "t", "value");
  write_file(file_of("third"), "damaged");
  set_age(file_of("third"), 200'000);
  const StatusOr<std::vector<DiskCache::Entry>> entries = cache->entries();
  ASSERT_TRUE(entries.ok());
  std::vector<std::string> labels;
  for (const DiskCache::Entry& entry : *entries) labels.push_back(entry.label);
  EXPECT_THAT(labels, ElementsAre("o, sm_80", "k, sm_90a", ""));
  EXPECT_FALSE((*entries)[1].damaged);
  EXPECT_TRUE((*entries)[2].damaged);
  EXPECT_EQ((*entries)[0].bytes, fs::file_size(file_of("other")));
  EXPECT_EQ(cache->usage()->entries, 3);
  EXPECT_EQ(cache->usage()->bytes, fs::file_size(file_of("other")) + fs::file_size(file_of("key")) +
                                       fs::file_size(file_of("third")));
  EXPECT_EQ(*cache->drop_damaged(), 1);
  EXPECT_EQ(*cache->drop_damaged(), 0);
  EXPECT_EQ(*cache->clear(), 2);
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(DiskCacheTest, ThreadsReadAndWriteBesideEachOther) {
  const auto cache = open({.bytes = 100'000, .sweep_seconds = 0});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0}, hits{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < 300; ++i) {
        const unsigned key = random() % 20;
        const std::string value(1000 * key + 1, static_cast<char>('a' + key));
        const std::optional<std::string> known = cache->find(absl::StrCat(key));
        if (known) {
          ++hits;
          wrong += *known != value;
        }
        cache->store(absl::StrCat(key), "k", value);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(hits, 0);
}

// Readers, writers and sweepers that are killed at any time: whoever finds a value finds the right one. With
// HEDDLE_STRESS_SECONDS=600 sixteen processes for ten minutes.
TEST_F(DiskCacheTest, ProcessesMayBeKilledAtAnyTime) {
  const char* const seconds = getenv("HEDDLE_STRESS_SECONDS");
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(seconds ? atoi(seconds) : 0);
  const int least_rounds = 30, processes = seconds ? 16 : 4;
  std::mt19937 random(1);
  for (int round = 0; round < least_rounds || std::chrono::steady_clock::now() < end; ++round) {
    std::vector<pid_t> children;
    for (int p = 0; p < processes; ++p) {
      const pid_t child = fork();
      if (child == 0) {
        const auto cache = open({.bytes = 100'000, .sweep_seconds = 0});
        for (unsigned i = 0;; ++i) {
          const unsigned key = (i * 7 + static_cast<unsigned>(p)) % 20;
          const std::string value(2000 * key + 1, static_cast<char>('a' + key));
          const std::optional<std::string> known = cache->find(absl::StrCat(key));
          if ((known && *known != value) || cache->counts().damaged > 0) _exit(1);
          cache->store(absl::StrCat(key), "k", value);
        }
      }
      children.push_back(child);
    }
    for (const pid_t child : children) {
      usleep(random() % 5000);
      kill(child, SIGKILL);
    }
    for (const pid_t child : children) {
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFSIGNALED(status)) << "a wrong value was found";
    }
  }
  const auto cache = open();
  for (unsigned key = 0; key < 20; ++key) {
    const std::optional<std::string> known = cache->find(absl::StrCat(key));
    if (known) {
      EXPECT_EQ(*known, std::string(2000 * key + 1, static_cast<char>('a' + key)));
    }
  }
  EXPECT_EQ(cache->counts().damaged, 0) << "what is there is whole";
}

// Once a process.
std::string said_of_limit;

TEST_F(DiskCacheTest, TheUsersIsWhereTheEnvironmentSays) {
  const Variable on("HEDDLE_CACHE", nullptr), limit("HEDDLE_CACHE_MIB", "7"),
      dir("HEDDLE_CACHE_DIR", temp_.path().c_str()), xdg("XDG_CACHE_HOME", "/nowhere/xdg"),
      home("HOME", "/nowhere/somebody");
  const std::shared_ptr<DiskCache> cache = DiskCache::of_user();
  ASSERT_NE(cache, nullptr);
  EXPECT_EQ(cache->path(), temp_.file("kernels"));
  EXPECT_EQ(cache->limits().bytes, uint64_t{7} << 20);
  EXPECT_EQ(DiskCache::of_user(), cache) << "opened once";
  {
    const Variable off("HEDDLE_CACHE", "off");
    EXPECT_EQ(DiskCache::of_user(), nullptr);
  }
  {
    const Variable nothing("HEDDLE_CACHE_MIB", "0");
    EXPECT_EQ(DiskCache::of_user(), nullptr);
  }
  {
    const Variable wrong("HEDDLE_CACHE_MIB", "1G");
    testing::internal::CaptureStderr();
    ASSERT_NE(DiskCache::of_user(), nullptr);
    EXPECT_EQ(DiskCache::of_user()->limits().bytes, uint64_t{1024} << 20);
    said_of_limit += testing::internal::GetCapturedStderr();
    EXPECT_EQ(said_of_limit,
              "heddle: HEDDLE_CACHE_MIB is '1G', which is no number of MiB; the cache of compiled "
              "kernels "
              "has 1024\n");
  }
  const Variable no_dir("HEDDLE_CACHE_DIR", nullptr);
  EXPECT_EQ(*user_cache_folder(), "/nowhere/xdg/heddle");
  const Variable no_xdg("XDG_CACHE_HOME", "");
  EXPECT_EQ(*user_cache_folder(), "/nowhere/somebody/.cache/heddle");
  if (geteuid() == 0) {
    ASSERT_EQ(chown(temp_.path().c_str(), 12345, 0), 0);
    const Variable others_home("HOME", temp_.path().c_str());
    EXPECT_EQ(user_cache_folder().status().message(),
              absl::StrCat("HOME is ", temp_.path(), ", another user's"));
  }
  // What is wrong with a folder is said once in a process.
  static int round = 0;
  const Variable no_home("HOME", nullptr),
      fresh_limit("HEDDLE_CACHE_MIB", absl::StrCat(10 + round++).c_str());
  testing::internal::CaptureStderr();
  EXPECT_EQ(DiskCache::of_user(), nullptr);
  EXPECT_EQ(DiskCache::of_user(), nullptr);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "heddle: compiled kernels are not kept for other programs: none of HEDDLE_CACHE_DIR, "
            "XDG_CACHE_HOME and HOME is set; fix: set HEDDLE_CACHE_DIR to a folder of yours\n");
}

}  // namespace
}  // namespace heddle::codegen
