#include "heddle/runtime/cuda/launch_ring.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace heddle::runtime::cuda {
namespace {

constexpr StreamHandle kA{1};
constexpr StreamHandle kB{2};

uint64_t add(LaunchRing& ring, const std::string& kernel, StreamHandle stream = kA) {
  return ring.add(LaunchSite(kernel, "file.cc", 3), {.grid = 1, .block = 1}, stream);
}

std::string names(const LaunchRing& ring) {
  std::string text;
  for (const LaunchRecord& record : ring.records()) {
    absl::StrAppend(&text, text.empty() ? "" : " ", record.site.kernel());
  }
  return text;
}

TEST(LaunchRingTest, KeepsEverythingOfALaunch) {
  LaunchRing ring;
  EXPECT_TRUE(ring.records().empty());
  const LaunchShape shape{.grid = {2147483647, 65535, 65535},
                          .block = {1024, 1, 1},
                          .cluster = {1, 5, 3},
                          .shared_bytes = 232448};
  EXPECT_EQ(ring.add(LaunchSite("row_sum", "row_sum.cc", 14), shape, kB), 0u);
  const std::vector<LaunchRecord> records = ring.records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].site.describe(), "kernel 'row_sum' (row_sum.cc:14)");
  EXPECT_EQ(records[0].shape.grid, shape.grid);
  EXPECT_EQ(records[0].shape.block, shape.block);
  EXPECT_EQ(records[0].shape.cluster, shape.cluster);
  EXPECT_EQ(records[0].shape.shared_bytes, 232448);
  EXPECT_EQ(records[0].stream, kB);
}

TEST(LaunchRingTest, ListsTheNewestFirstAndForgetsTheOldest) {
  LaunchRing ring;
  for (int i = 0; i < 18; ++i) EXPECT_EQ(add(ring, absl::StrCat("k", i)), static_cast<uint64_t>(i));
  EXPECT_EQ(names(ring), "k17 k16 k15 k14 k13 k12 k11 k10 k9 k8 k7 k6 k5 k4 k3 k2");
  EXPECT_EQ(ring.next_ticket(), 18u);
}

TEST(LaunchRingTest, ForgetsWhatWasRefused) {
  LaunchRing ring;
  add(ring, "a");
  const uint64_t refused = add(ring, "b");
  add(ring, "c");
  ring.remove(refused);
  EXPECT_EQ(names(ring), "c a");
  ring.remove(refused);
  EXPECT_EQ(names(ring), "c a");
  // A ticket whose slot another launch has taken removes nothing.
  for (int i = 0; i < 16; ++i) add(ring, absl::StrCat("n", i));
  ring.remove(2);
  EXPECT_EQ(ring.records().size(), 16u);
}

TEST(LaunchRingTest, ForgetsWhatWasWaitedFor) {
  LaunchRing ring;
  add(ring, "a1", kA);
  add(ring, "b1", kB);
  add(ring, "a2", kA);
  const uint64_t here = ring.next_ticket();
  add(ring, "a3", kA);
  ring.complete(kA, here);
  EXPECT_EQ(names(ring), "a3 b1") << "other streams and later launches stay";
  ring.complete_all(here);
  EXPECT_EQ(names(ring), "a3");
  ring.complete_all(ring.next_ticket());
  EXPECT_EQ(names(ring), "");
}

TEST(LaunchRingTest, NeverMixesLaunchesOfSeveralThreads) {
  LaunchRing ring;
  std::atomic<bool> stop{false};
  std::atomic<int> mixed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      // Every field of a record is made of the one number.
      const int number = t + 1;
      const LaunchSite site(std::string(40, static_cast<char>('a' + t)),
                            std::string(40, static_cast<char>('A' + t)), number);
      while (!stop.load()) {
        const uint64_t ticket = ring.add(site, {.grid = number, .block = number},
                                         StreamHandle{static_cast<uintptr_t>(number)});
        if (ticket % 3 == 0) ring.remove(ticket);
        if (ticket % 7 == 0) ring.complete_all(ticket);
      }
    });
  }
  size_t seen = 0;
  for (int i = 0; i < 20000 || seen == 0; ++i) {
    for (const LaunchRecord& record : ring.records()) {
      const int number = record.site.line();
      const bool whole =
          record.site.kernel() == std::string(40, static_cast<char>('a' + number - 1)) &&
          record.site.file() == std::string(40, static_cast<char>('A' + number - 1)) &&
          record.shape.grid.x == number && record.shape.block.x == number &&
          record.stream == StreamHandle{static_cast<uintptr_t>(number)};
      if (!whole) ++mixed;
      ++seen;
    }
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(mixed.load(), 0);
}

}  // namespace
}  // namespace heddle::runtime::cuda
