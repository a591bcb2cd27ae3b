// Entries of the disk cache as bytes: every damage is found.
#include "heddle/codegen/cache/entry.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/codegen/cache/fields.h"

namespace heddle::codegen {
namespace {

using testing::HasSubstr;

const std::string kKey("ptx\0of a kernel", 15), kValue("cubin\0\n", 7);

// What somebody may write who knows the format: any content, with the checksum that fits.
std::string forged(const std::string& content) {
  XXH128_canonical_t hash;
  XXH128_canonicalFromHash(&hash, XXH3_128bits(content.data(), content.size()));
  return "HEDDLE/1" + std::string(reinterpret_cast<const char*>(hash.digest), sizeof(hash.digest)) +
         content;
}

TEST(CacheEntryTest, ForgedOnesHaveThreeFieldsToo) {
  std::string content;
  for (int fields = 0; fields < 5; ++fields) {
    const StatusOr<CacheEntry> entry = decode_entry(forged(content));
    EXPECT_EQ(entry.ok(), fields == 3) << fields;
    append_field(content, "text");
  }
  std::string huge(8, '\xFF');
  EXPECT_THAT(std::string(decode_entry(forged(huge)).status().message()),
              HasSubstr("its lengths do not add up"));
}

TEST(CacheEntryTest, ComesBackAsItWas) {
  const std::string bytes = encode_entry({kKey, "k, sm_90a", kValue});
  const StatusOr<CacheEntry> entry = decode_entry(bytes);
  ASSERT_TRUE(entry.ok()) << entry.status();
  EXPECT_EQ(entry->key, kKey);
  EXPECT_EQ(entry->label, "k, sm_90a");
  EXPECT_EQ(entry->value, kValue);
  const std::string nothing = encode_entry({"", "", ""});
  EXPECT_TRUE(decode_entry(nothing).ok());
}

TEST(CacheEntryTest, EveryCutIsFound) {
  const std::string bytes = encode_entry({kKey, "k, sm_90a", kValue});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(decode_entry(bytes.substr(0, size)).status().code(), StatusCode::kDataLoss) << size;
  }
  EXPECT_EQ(decode_entry(bytes + '\0').status().code(), StatusCode::kDataLoss);
}

TEST(CacheEntryTest, EveryBitThatFlipsIsFound) {
  const std::string bytes = encode_entry({kKey, "k, sm_90a", kValue});
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string other = bytes;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(decode_entry(other).status().code(), StatusCode::kDataLoss) << bit;
  }
}

// Whoever writes a checksum that fits can still not make a length lead out of the bytes.
TEST(CacheEntryTest, LengthsStayWithinTheBytes) {
  EXPECT_THAT(std::string(decode_entry("HEDDLE/0 what an older Heddle wrote").status().message()),
              HasSubstr("does not begin as an entry of this version does"));
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 40, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 3 == 0 ? random() : random() % 4);
    Fields fields(bytes);
    size_t read = 0;
    while (const auto field = fields.next()) read += sizeof(uint64_t) + field->size();
    EXPECT_LE(read, bytes.size());
    EXPECT_EQ(fields.at_end(), read == bytes.size());
  }
  std::string huge;
  append_field(huge, "text");
  for (size_t i = 0; i < sizeof(uint64_t); ++i) huge[i] = static_cast<char>(0xFF);
  EXPECT_FALSE(Fields(huge).next());
}

TEST(CacheEntryTest, ListsOfTextsAreToldApart) {
  std::string one, other;
  append_field(one, "ab");
  append_field(one, "c");
  append_field(other, "a");
  append_field(other, "bc");
  EXPECT_NE(one, other);
  EXPECT_NE(entry_name(one), entry_name(other));
}

TEST(CacheEntryTest, NamesAreDigitsAlone) {
  const std::string name = entry_name(kKey);
  EXPECT_TRUE(is_entry_name(name)) << name;
  EXPECT_EQ(name, entry_name(kKey));
  for (const char* other : {"", "swept", "../../etc/passwd", ".0123.tmp", "0123.heddle"}) {
    EXPECT_FALSE(is_entry_name(other)) << other;
  }
  EXPECT_TRUE(is_own_entry_name(name));
  EXPECT_FALSE(is_entry_name(name + "x"));
  const std::string digits = name.substr(0, 32);
  EXPECT_TRUE(is_entry_name(digits + "-23.heddle"));
  EXPECT_FALSE(is_own_entry_name(digits + "-23.heddle"));
  for (const char* end : {".heddle", "-.heddle", "1.heddle", "-x.heddle", "-1.heddle.tmp"}) {
    EXPECT_FALSE(is_entry_name(digits + end)) << end;
  }
  EXPECT_FALSE(is_entry_name("g" + name.substr(1)));
  EXPECT_FALSE(is_entry_name("A" + name.substr(1)));
}

}  // namespace
}  // namespace heddle::codegen
