#include "heddle/ir/analysis/analyses.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace heddle::ir {

const Analyses::Entry* Analyses::find(absl::string_view name) const {
  const auto entry = absl::c_find_if(entries_, [&](const Entry& e) { return e.name == name; });
  return entry == entries_.end() ? nullptr : &*entry;
}

void* Analyses::find_or_make(absl::string_view name, Make make, Compare compare) {
  if (!making_.empty()) making_.back().push_back(name);
  if (const Entry* const known = find(name)) return known->analysis.get();
  making_.emplace_back();
  std::shared_ptr<void> made = make(*this);
  Entry entry{name, std::move(made), compare, std::move(making_.back())};
  making_.pop_back();
  return entries_.emplace_back(std::move(entry)).analysis.get();
}

void Analyses::keep(absl::Span<const absl::string_view> names) {
  std::vector<Entry> kept;
  for (Entry& entry : entries_) {
    const bool stands = absl::c_all_of(entry.parts, [&](absl::string_view part) {
      return absl::c_any_of(kept, [&](const Entry& e) { return e.name == part; });
    });
    if (stands && absl::c_linear_search(names, entry.name)) kept.push_back(std::move(entry));
  }
  entries_ = std::move(kept);
}

void Analyses::put(const Entry& entry) {
  const auto place =
      absl::c_find_if(entries_, [&](const Entry& mine) { return mine.name == entry.name; });
  if (place == entries_.end()) {
    entries_.push_back(entry);
  } else {
    place->analysis = entry.analysis;
  }
}

std::string Analyses::disagreement() const {
  Analyses fresh(kernel_);
  for (const Entry& entry : entries_) {
    const std::string what = entry.compare(entry.analysis.get(), fresh);
    if (!what.empty()) return absl::StrCat(entry.name, " says that ", what);
    // What builds on it is compared with one that does so too: ranges that are kept may say more than new ones, of what
    // a pass has put in place of a quotient, and so may uniformity then.
    fresh.put(entry);
  }
  return "";
}

}  // namespace heddle::ir
