#include "heddle/codegen/cache/entry.h"

#define XXH_INLINE_ALL  // the header alone
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "heddle/codegen/cache/fields.h"

namespace heddle::codegen {
namespace {

// The last digit is the format's version.
constexpr absl::string_view kMagic = "HEDDLE/1";
constexpr absl::string_view kSuffix = ".heddle";
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
  return name.size() == kHashDigits + kSuffix.size() && absl::EndsWith(name, kSuffix) &&
         std::all_of(name.begin(), name.begin() + kHashDigits, [](char c) {
           return absl::ascii_isxdigit(static_cast<unsigned char>(c)) &&
                  !absl::ascii_isupper(static_cast<unsigned char>(c));
         });
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
