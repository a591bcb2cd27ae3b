#include "heddle/ir/interp/memory.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heddle::ir::interp {
namespace {

using testing::HasSubstr;

uint8_t* host(uint64_t address) { return reinterpret_cast<uint8_t*>(address); }

TEST(MemoryTest, GivesAlignedZeroedRanges) {
  Memory memory;
  for (uint64_t alignment : {1, 256, 1024, 4096, 1 << 16, 1 << 21}) {
    const uint64_t address = memory.allocate(100, alignment).value();
    EXPECT_EQ(address % alignment, 0u);
    EXPECT_TRUE(std::all_of(host(address), host(address) + 100, [](uint8_t b) { return b == 0; }));
    std::fill_n(host(address), 100, uint8_t{1});
  }
  EXPECT_EQ(memory.allocation_count(), 6u);
  EXPECT_EQ(memory.allocated_bytes(), 600u);
}

TEST(MemoryTest, RefusesBadSizesAndAlignments) {
  Memory memory(1 << 20);
  EXPECT_EQ(memory.allocate(0).status().message(), "cannot allocate 0 bytes");
  EXPECT_EQ(memory.allocate(8, 3).status().message(),
            "alignment 3 is not a power of two up to 1073741824");
  EXPECT_EQ(memory.allocate(8, 0).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(memory.allocate(8, uint64_t{1} << 31).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(memory.allocate((1 << 20) + 1).status().message(),
            "cannot allocate 1048577 bytes: 0 of 1048576 bytes are in use");
  EXPECT_EQ(Memory().allocate(Memory::kNoLimit).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(memory.allocation_count(), 0u);
}

TEST(MemoryTest, FindsRangesThatLieInsideOneAllocation) {
  Memory memory;
  const uint64_t x = memory.allocate(100, 256, "x").value();
  const uint64_t y = memory.allocate(50, 256, "y").value();
  const Allocation* found = memory.find(x, 100);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->begin(), x);
  EXPECT_EQ(found->end(), x + 100);
  EXPECT_EQ(found->id(), 1u);
  EXPECT_EQ(found->label(), "x");
  EXPECT_EQ(found->describe(), "allocation #1 'x' of 100 bytes");
  EXPECT_EQ(memory.find(x + 96, 4), found);
  EXPECT_EQ(memory.find(x + 97, 4), nullptr);
  EXPECT_EQ(memory.find(x - 1, 1), nullptr);
  EXPECT_EQ(memory.find(x + 100, 1), nullptr);
  EXPECT_EQ(memory.find(x + 4, ~uint64_t{0}), nullptr) << "no wrap-around";
  EXPECT_EQ(memory.find(y + 49, 1)->id(), 2u);
  EXPECT_EQ(memory.find(0, 4), nullptr);
}

TEST(MemoryTest, ExplainsBadAddresses) {
  Memory memory;
  const uint64_t x = memory.allocate(100, 256, "x").value();
  EXPECT_EQ(memory.explain(x + 4, 4), "4 bytes at byte 4 of allocation #1 'x' of 100 bytes");
  EXPECT_EQ(memory.explain(x + 98, 4),
            "4 bytes at byte 98 of allocation #1 'x' of 100 bytes, running 2 bytes past its end");
  EXPECT_EQ(memory.explain(x + 100, 1),
            "1 byte starting 0 bytes past the end of allocation #1 'x' of 100 bytes");
  EXPECT_EQ(memory.explain(x + 5000, 4),
            "4 bytes starting 4900 bytes past the end of allocation #1 'x' of 100 bytes");
  EXPECT_EQ(memory.explain(x - 8, 8),
            "8 bytes starting 8 bytes before allocation #1 'x' of 100 bytes");
  EXPECT_EQ(memory.explain(0, 4), "4 bytes at a null pointer");
  EXPECT_EQ(memory.explain(40, 4), "4 bytes at a null pointer plus 40");
  EXPECT_EQ(memory.explain(0x123456789000, 4),
            "4 bytes at 0x123456789000, which belongs to no allocation of this device");
}

TEST(MemoryTest, RemembersWhatWasFreed) {
  Memory memory;
  const uint64_t x = memory.allocate(100, 256, "x").value();
  const uint64_t generation = memory.generation();
  ASSERT_TRUE(memory.free(x).ok());
  EXPECT_NE(memory.generation(), generation);
  EXPECT_EQ(memory.find(x, 1), nullptr);
  EXPECT_EQ(memory.allocated_bytes(), 0u);
  EXPECT_EQ(memory.explain(x + 8, 4),
            "4 bytes at byte 8 of allocation #1 'x' of 100 bytes, which was freed");
  EXPECT_EQ(memory.free(x).message(), "allocation #1 'x' of 100 bytes was freed twice");
  EXPECT_EQ(memory.free(x + 1).message(), "no allocation starts at the address that was freed");
  EXPECT_EQ(*host(x + 8), 0) << "stays readable";
  // New memory lies elsewhere, so that stale addresses stay recognisable.
  for (int i = 0; i < 100; ++i) {
    const uint64_t y = memory.allocate(100).value();
    EXPECT_NE(y, x);
    ASSERT_TRUE(memory.free(y).ok());
  }
  EXPECT_THAT(memory.explain(x, 4), HasSubstr("#1 'x' of 100 bytes, which was freed"));
  // But not for ever.
  for (int i = 0; i < 1100; ++i) ASSERT_TRUE(memory.free(memory.allocate(1).value()).ok());
  EXPECT_THAT(memory.explain(x, 4), testing::Not(HasSubstr("#1 ")));
}

TEST(MemoryTest, ForgetsHugeFreedRangesSooner) {
  Memory memory;
  std::vector<uint64_t> addresses;
  for (int i = 0; i < 40; ++i) {
    addresses.push_back(memory.allocate(uint64_t{1} << 36).value());
    ASSERT_TRUE(memory.free(addresses.back()).ok());
  }
  EXPECT_THAT(memory.explain(addresses.back(), 4), HasSubstr("#40 "));
  EXPECT_THAT(memory.explain(addresses.front(), 4), testing::Not(HasSubstr("#1 ")));
}

TEST(MemoryTest, TracksInitialisedBytes) {
  Memory memory;
  const uint64_t x = memory.allocate(64).value();
  Allocation* allocation = memory.find(x, 64);
  for (uint64_t bytes : {1, 2, 3, 4, 5, 8, 16, 17}) {
    EXPECT_FALSE(allocation->initialized(x + 8, bytes)) << bytes;
  }
  // A byte missing at either end, for every size that has its own path.
  for (uint64_t bytes : {1, 2, 3, 4, 5, 8, 16, 17}) {
    const uint64_t address = memory.allocate(64).value();
    allocation = memory.find(address, 64);
    allocation->mark_initialized(address + 8, bytes);
    EXPECT_TRUE(allocation->initialized(address + 8, bytes)) << bytes;
    EXPECT_FALSE(allocation->initialized(address + 7, bytes)) << bytes;
    EXPECT_FALSE(allocation->initialized(address + 9, bytes)) << bytes;
    EXPECT_TRUE(memory.is_initialized(address + 8, bytes));
  }
  EXPECT_FALSE(memory.is_initialized(x + 60, 8)) << "not a live range";
  EXPECT_FALSE(memory.mark_initialized(x + 60, 8).ok());
  ASSERT_TRUE(memory.mark_initialized(x, 64).ok());
  EXPECT_TRUE(memory.is_initialized(x, 64));
  EXPECT_TRUE(memory.is_initialized(x + 63, 1));
}

TEST(MemoryTest, CopiesCarryWhatWasInitialised) {
  Memory memory;
  const uint64_t size = 300000;
  const uint64_t x = memory.allocate(size).value();
  const uint64_t y = memory.allocate(size).value();
  const std::vector<uint8_t> ones(size, 1);
  ASSERT_TRUE(memory.copy_from_host(x + 100000, ones.data(), 1000).ok());
  ASSERT_TRUE(memory.copy(y, x, size).ok());
  EXPECT_TRUE(memory.is_initialized(y + 100000, 1000));
  EXPECT_FALSE(memory.is_initialized(y + 99999, 1));
  EXPECT_FALSE(memory.is_initialized(y + 101000, 1));
  EXPECT_EQ(*host(y + 100500), 1);

  // Over a target that was wholly written: its bytes become uninitialised where the source's are.
  ASSERT_TRUE(memory.copy_from_host(y, ones.data(), size).ok());
  ASSERT_TRUE(memory.copy(y, x, 200000).ok());
  EXPECT_FALSE(memory.is_initialized(y, 1));
  EXPECT_EQ(*host(y), 0);
  EXPECT_TRUE(memory.is_initialized(y + 100000, 1000));
  EXPECT_FALSE(memory.is_initialized(y + 199999, 1));
  EXPECT_TRUE(memory.is_initialized(y + 200000, 100000)) << "beyond the copy nothing changes";

  // From a source that was wholly written.
  ASSERT_TRUE(memory.copy_from_host(x, ones.data(), size).ok());
  ASSERT_TRUE(memory.copy(y, x, 10).ok());
  EXPECT_TRUE(memory.is_initialized(y, 10));
  EXPECT_FALSE(memory.is_initialized(y, 11));
}

TEST(MemoryTest, CopiesStaySparse) {
  Memory memory;
  const uint64_t size = uint64_t{1} << 33;
  const uint64_t x = memory.allocate(size).value();
  const uint64_t y = memory.allocate(size).value();
  const int value = 42;
  ASSERT_TRUE(memory.copy_from_host(x + size / 2, &value, 4).ok());
  // A window of 64 MiB around it, and the far end.
  ASSERT_TRUE(memory.copy(y + size / 2 - (1 << 25), x + size / 2 - (1 << 25), 1 << 26).ok());
  int back = 0;
  ASSERT_TRUE(memory.copy_to_host(&back, y + size / 2, 4).ok());
  EXPECT_EQ(back, 42);
  EXPECT_TRUE(memory.is_initialized(y + size / 2, 4));
  EXPECT_FALSE(memory.is_initialized(y + size / 2, 5));
}

TEST(MemoryTest, ChecksRangesOfCopies) {
  Memory memory;
  const uint64_t x = memory.allocate(64, 256, "x").value();
  const uint64_t y = memory.allocate(32, 256, "y").value();
  uint8_t bytes[64] = {};
  EXPECT_EQ(memory.copy_from_host(y, bytes, 33).message(),
            "33 bytes at byte 0 of allocation #2 'y' of 32 bytes, running 1 byte past its end");
  EXPECT_FALSE(memory.copy_to_host(bytes, y, 33).ok());
  EXPECT_FALSE(memory.copy(x, y, 33).ok());
  EXPECT_FALSE(memory.copy(y, x, 33).ok());
  EXPECT_EQ(memory.copy(x + 8, x, 9).message(),
            "source and destination of a copy of 9 bytes overlap in allocation #1 'x' of 64 bytes");
  EXPECT_TRUE(memory.copy(x + 8, x, 8).ok());
  EXPECT_TRUE(memory.copy(x, 0, 0).ok());
  EXPECT_TRUE(memory.copy_from_host(0, nullptr, 0).ok());
  EXPECT_TRUE(memory.copy_to_host(nullptr, 0, 0).ok());
}

TEST(MemoryTest, FillsWithPatterns) {
  Memory memory;
  const uint64_t x = memory.allocate(16).value();
  ASSERT_TRUE(memory.fill(x, 0xAB, 1, 3).ok());
  ASSERT_TRUE(memory.fill(x + 4, 0x1234, 2, 2).ok());
  ASSERT_TRUE(memory.fill(x + 8, 0xDEADBEEF, 4, 2).ok());
  const std::vector<uint8_t> expected = {0xAB, 0xAB, 0xAB, 0,    0x34, 0x12, 0x34, 0x12,
                                         0xEF, 0xBE, 0xAD, 0xDE, 0xEF, 0xBE, 0xAD, 0xDE};
  EXPECT_EQ(std::vector<uint8_t>(host(x), host(x) + 16), expected);
  EXPECT_FALSE(memory.is_initialized(x + 3, 1));
  EXPECT_TRUE(memory.is_initialized(x + 4, 12));
  ASSERT_TRUE(memory.fill(x, 0, 4, 4).ok());
  EXPECT_TRUE(std::all_of(host(x), host(x) + 16, [](uint8_t b) { return b == 0; }));
  EXPECT_TRUE(memory.is_initialized(x, 16));

  EXPECT_TRUE(memory.fill(0, 1, 1, 0).ok());
  EXPECT_EQ(memory.fill(x, 1, 3, 1).message(), "a fill pattern has 1, 2 or 4 bytes, not 3");
  EXPECT_EQ(memory.fill(x + 1, 1, 4, 1).message(),
            "a fill of 4-byte values needs an address that is a multiple of 4");
  EXPECT_FALSE(memory.fill(x, 1, 4, 5).ok());
  EXPECT_FALSE(memory.fill(x, 1, 4, ~uint64_t{0} / 2).ok()) << "no wrap-around";
}

TEST(MemoryTest, AnUnreadableGapStandsOnEitherSide) {
  Memory memory;
  const uint64_t x = memory.allocate(4096).value();
  EXPECT_DEATH(*reinterpret_cast<volatile uint8_t*>(x + 4096) = 1, "");
  EXPECT_DEATH(*reinterpret_cast<volatile uint8_t*>(x - 1) = 1, "");
}

TEST(MemoryCursorTest, AgreesWithFind) {
  Memory memory;
  const uint64_t x = memory.allocate(100).value();
  const uint64_t y = memory.allocate(100).value();
  MemoryCursor cursor(memory);
  EXPECT_EQ(cursor.find(x, 4), memory.find(x, 4));
  EXPECT_EQ(cursor.find(x + 96, 4), memory.find(x, 4));
  EXPECT_EQ(cursor.find(x + 97, 4), nullptr);
  EXPECT_EQ(cursor.find(y, 4), memory.find(y, 4));
  EXPECT_EQ(cursor.find(x, 4), memory.find(x, 4));
  ASSERT_TRUE(memory.free(x).ok());
  EXPECT_EQ(cursor.find(x, 4), nullptr) << "the cached answer is stale after a free";
  EXPECT_EQ(cursor.find(y, 4), memory.find(y, 4));
}

}  // namespace
}  // namespace heddle::ir::interp
