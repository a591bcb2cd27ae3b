#include "heddle/codegen/cache/entry.h"

#define XXH_INLINE_ALL  // the header alone
#include <xxhash.h>

#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "heddle/codegen/cache/fields.h"

namespace heddle::codegen {
namespace {

// Another format has another number in both.
constexpr absl::string_view kMagic = "HEDDLE/1", kSuffix = "-1.heddle";
constexpr absl::string_view kEnd = ".heddle";  // of all formats
constexpr size_t kHashBytes = sizeof(XXH128_canonical_t), kHashDigits = 2 * kHashBytes;

XXH128_canonical_t hash_of(absl::string_view bytes) {
  XXH128_canonical_t hash;
  XXH128_canonicalFromHash(&hash, XXH3_128bits(bytes.data(), bytes.size()));
  return hash;
}

}  // namespace

std::string entry_name(absl::string_view key) {
  std::string name;
  for (const unsigned char byte : hash_of(key).digest) absl::StrAppendFormat(&name, "%02x", byte);
  absl::StrAppend(&name, kSuffix);
  return name;
}

bool is_entry_name(absl::string_view name) {
  if (!absl::ConsumeSuffix(&name, kEnd)) return false;
  const absl::string_view digits = name.substr(0, kHashDigits);
  absl::string_view version = name.substr(digits.size());
  int number = 0;
  return digits.size() == kHashDigits &&
         absl::c_all_of(
             digits,
             [](unsigned char c) { return absl::ascii_isxdigit(c) && !absl::ascii_isupper(c); }) &&
         absl::ConsumePrefix(&version, "-") && absl::SimpleAtoi(version, &number);
}
bool is_own_entry_name(absl::string_view name) {
  return is_entry_name(name) && absl::EndsWith(name, kSuffix);
}

std::string encode_entry(const CacheEntry& entry) {
  std::string content;
  for (const absl::string_view field : {entry.key, entry.label, entry.value}) {
    append_field(content, field);
  }
  const XXH128_canonical_t hash = hash_of(content);
  const absl::string_view checksum(reinterpret_cast<const char*>(hash.digest), kHashBytes);
  return absl::StrCat(kMagic, checksum, content);
}

StatusOr<CacheEntry> decode_entry(absl::string_view bytes) {
  if (!absl::StartsWith(bytes, kMagic)) {
    return DataLossError("it does not begin as an entry of this version does");
  }
  bytes.remove_prefix(kMagic.size());
  if (bytes.size() < kHashBytes) return DataLossError("it is cut off");
  const absl::string_view checksum = bytes.substr(0, kHashBytes),
                          content = bytes.substr(kHashBytes);
  const XXH128_canonical_t hash = hash_of(content);
  if (std::memcmp(checksum.data(), hash.digest, kHashBytes) != 0) {
    return DataLossError("its checksum is another");
  }
  Fields fields(content);
  const auto key = fields.next(), label = fields.next(), value = fields.next();
  if (!value || !fields.at_end()) return DataLossError("its lengths do not add up");
  return CacheEntry{*key, *label, *value};
}

}  // namespace heddle::codegen
