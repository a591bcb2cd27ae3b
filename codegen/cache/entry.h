// An entry of the disk cache as the bytes of its file: what it is of (the whole key), what it is called, what it holds, and
// a checksum over all of it.
//
// The checksum finds damage. It does not tell who wrote the file: whom the folder belongs to does (folder.h).
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {

struct CacheEntry {
  absl::string_view key;
  absl::string_view label;  // for people: "row_sum, sm_90a"
  absl::string_view value;
};

// The name of a key's file: 32 hexadecimal digits (XXH3, 128 bits), the version of the format, and ".heddle". Two keys of one
// name are told apart by the entry, which has the whole key.
std::string entry_name(absl::string_view key);
// Whether a file of this name may be an entry, of any version; and of this one.
bool is_entry_name(absl::string_view name);
bool is_own_entry_name(absl::string_view name);

std::string encode_entry(const CacheEntry& entry);
// Points into the bytes. kDataLoss, with what is wrong, for anything but a whole entry of this version.
StatusOr<CacheEntry> decode_entry(absl::string_view bytes);

}  // namespace heddle::codegen
