#include "heddle/ir/launch/timeline_events.h"

#include <map>
#include <mutex>

namespace heddle::ir {
namespace {

// Names by their numbers; only ever grows.
struct Names {
  std::mutex mutex;
  std::map<uint32_t, std::string> texts;
};
Names& names() {
  static Names& all = *new Names;
  return all;
}

// FNV-1a.
uint32_t hash(absl::string_view text) {
  uint32_t value = 2166136261u;
  for (const char c : text) value = (value ^ static_cast<uint8_t>(c)) * 16777619u;
  return value;
}

}  // namespace

TimelineName keep_timeline_name(absl::string_view name) {
  const uint32_t number = hash(name) & TimelineLayout::kNameMask;
  const std::lock_guard<std::mutex> lock(names().mutex);
  const auto known = names().texts.emplace(number, name).first;
  return {number, known->second == name ? std::string() : known->second};
}

std::string timeline_name_of(uint32_t number) {
  const std::lock_guard<std::mutex> lock(names().mutex);
  const auto known = names().texts.find(number);
  return known == names().texts.end() ? std::string() : known->second;
}

}  // namespace heddle::ir
