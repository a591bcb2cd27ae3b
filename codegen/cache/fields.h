// Texts one behind the other, each with its length in front: no two lists of texts are the same bytes.
//
//   std::string bytes;
//   append_field(bytes, "sm_90a");
//   append_field(bytes, ptx);
//   Fields fields(bytes);
//   std::optional<absl::string_view> arch = fields.next();
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace heddle::codegen {

// Appends a length of 64 bits, in the machine's order of bytes, and the text.
inline void append_field(std::string& bytes, absl::string_view text) {
  const uint64_t size = text.size();
  bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
  bytes.append(text.data(), text.size());
}

// Reads them again; what it returns points into the bytes.
class Fields {
 public:
  explicit Fields(absl::string_view bytes) : rest_(bytes) {}

  // nullopt: there is none, or the bytes end within it.
  std::optional<absl::string_view> next() {
    uint64_t size = 0;
    if (rest_.size() < sizeof(size)) return std::nullopt;
    std::memcpy(&size, rest_.data(), sizeof(size));
    if (size > rest_.size() - sizeof(size)) return std::nullopt;
    const absl::string_view text = rest_.substr(sizeof(size), static_cast<size_t>(size));
    rest_.remove_prefix(sizeof(size) + text.size());
    return text;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  absl::string_view rest_;
};

}  // namespace heddle::codegen
