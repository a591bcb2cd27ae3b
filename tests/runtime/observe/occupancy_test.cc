// How many blocks fit, against figures computed by hand from the documented limits of each architecture.
#include "heddle/runtime/observe/occupancy.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace heddle::runtime {
namespace {

// "4 blocks, 32 of 64 warps: registers"
std::string of(absl::string_view target, const BlockResources& block) {
  const std::optional<Occupancy> o = occupancy_of(*ir::find_target(target), block);
  if (!o) return "not known";
  std::string text =
      absl::StrCat(o->blocks, " blocks, ", o->warps, " of ", o->max_warps, " warps:");
  for (const OccupancyLimit limit : o->limits) absl::StrAppend(&text, " ", name_of(limit));
  return text;
}

TEST(Occupancy, OfRegisters) {
  // A warp of 64 registers a thread takes 2048: 32 warps of the 65536.
  EXPECT_EQ(of("sm_90a", {.threads = 256, .registers = 64}), "4 blocks, 32 of 64 warps: registers");
  // 65 become 72, in units of 256 a warp: 2304, of which 7 fit in a quarter, 28 in all.
  EXPECT_EQ(of("sm_90", {.threads = 256, .registers = 65}), "3 blocks, 24 of 64 warps: registers");
  EXPECT_EQ(of("sm_90", {.threads = 32, .registers = 65}), "28 blocks, 28 of 64 warps: registers");
  // 168: 5376, and a quarter's 16384 hold 3 of them.
  EXPECT_EQ(of("sm_90a", {.threads = 384, .registers = 168}),
            "1 blocks, 12 of 64 warps: registers");
  // 200 take 6400: 9 warps would fit in 65536 registers, and 2 in each quarter are 8.
  EXPECT_EQ(of("sm_90", {.threads = 288, .registers = 200}), "0 blocks, 0 of 64 warps: registers");
  EXPECT_EQ(of("sm_90", {.threads = 256, .registers = 255}), "1 blocks, 8 of 64 warps: registers");
  EXPECT_EQ(of("sm_90", {.threads = 288, .registers = 255}), "0 blocks, 0 of 64 warps: registers");
}

TEST(Occupancy, OfSharedMemory) {
  // Each block takes 1 KiB more than its own: 228 KiB hold four of 56 KiB.
  EXPECT_EQ(of("sm_90", {.threads = 128, .registers = 32, .shared_bytes = 56 * 1024}),
            "4 blocks, 16 of 64 warps: shared memory");
  EXPECT_EQ(of("sm_90", {.threads = 128, .registers = 32, .shared_bytes = 56 * 1024 + 1}),
            "3 blocks, 12 of 64 warps: shared memory");
  EXPECT_EQ(of("sm_90", {.threads = 128, .registers = 32, .shared_bytes = 227 * 1024}),
            "1 blocks, 4 of 64 warps: shared memory");
  EXPECT_EQ(of("sm_90", {.threads = 128, .registers = 32, .shared_bytes = 227 * 1024 + 1}),
            "0 blocks, 0 of 64 warps: shared memory");
  // 5802 + 1024 bytes would fit 15 times in 100 KiB; in units of 128 they are 6912.
  EXPECT_EQ(of("sm_86", {.threads = 32, .shared_bytes = 5802}),
            "14 blocks, 14 of 48 warps: shared memory");
  EXPECT_EQ(of("sm_80", {.threads = 64, .shared_bytes = 81 * 1024}),
            "2 blocks, 4 of 64 warps: shared memory");
}

TEST(Occupancy, OfWarpsBlocksAndBarriers) {
  EXPECT_EQ(of("sm_90", {.threads = 1024, .registers = 32}),
            "2 blocks, 64 of 64 warps: registers warps");
  EXPECT_EQ(of("sm_90", {.threads = 1024, .registers = 16}), "2 blocks, 64 of 64 warps: warps");
  EXPECT_EQ(of("sm_90", {.threads = 33, .registers = 16}),
            "32 blocks, 64 of 64 warps: warps blocks");
  EXPECT_EQ(of("sm_90", {.threads = 1, .registers = 16}), "32 blocks, 32 of 64 warps: blocks");
  EXPECT_EQ(of("sm_86", {.threads = 32, .registers = 16}), "16 blocks, 16 of 48 warps: blocks");
  EXPECT_EQ(of("sm_89", {.threads = 1024, .registers = 16}), "1 blocks, 32 of 48 warps: warps");
  EXPECT_EQ(of("sm_120a", {.threads = 32, .registers = 16}), "24 blocks, 24 of 48 warps: blocks");
  EXPECT_EQ(of("sm_90", {.threads = 64, .registers = 16, .barriers = 5}),
            "12 blocks, 24 of 64 warps: barriers");
  EXPECT_EQ(of("sm_80", {.threads = 64, .registers = 16, .barriers = 16}),
            "32 blocks, 64 of 64 warps: warps blocks");
}

TEST(Occupancy, IsNotKnownOfAnyBlock) {
  EXPECT_EQ(of("sm_90", {.threads = 0, .registers = 16}), "not known");
  ir::Target other = *ir::find_target("sm_90");
  other.sm = 75;
  EXPECT_FALSE(occupancy_of(other, {.threads = 32}).has_value());
  // All that there are have limits.
  for (const ir::Target& target : ir::kTargets) {
    EXPECT_TRUE(occupancy_of(target, {.threads = 32}).has_value()) << target.name;
  }
}

}  // namespace
}  // namespace heddle::runtime
