#include "heddle/ir/text/parser_scope.h"

#include "absl/strings/str_cat.h"
#include "heddle/ir/wording.h"

namespace heddle::ir {

void ParserScope::close() {
  for (const absl::string_view name : regions_.back()) names_.at(name).state = State::kEnded;
  regions_.pop_back();
}

std::string ParserScope::define(absl::string_view name, ValueId value, int line) {
  const auto [it, inserted] = names_.try_emplace(name, Entry{value, line, State::kVisible});
  if (!inserted) {
    return absl::StrCat(name, " is already defined at line ", it->second.line,
                        "; give this value another name");
  }
  regions_.back().push_back(name);
  return {};
}

std::string ParserScope::find(absl::string_view name, ValueId& value) const {
  const auto it = names_.find(name);
  if (it == names_.end()) {
    std::vector<absl::string_view> visible;
    for (const auto& region : regions_) {
      for (const absl::string_view other : region) visible.push_back(other.substr(1));
    }
    const absl::string_view meant = nearest(name.substr(1), visible);
    return absl::StrCat(
        name, " is not defined before this line; ",
        meant.empty() ? "define it above" : absl::StrCat("did you mean %", meant, "?"));
  }
  switch (it->second.state) {
    case State::kVisible:
      value = it->second.value;
      return {};
    case State::kHidden:
      return absl::StrCat(name, " is a result of the op at line ", it->second.line,
                          ", so it does not exist inside that op's regions; use what the region is "
                          "given");
    case State::kEnded:
      return absl::StrCat(name, " is defined at line ", it->second.line,
                          " inside a region that has ended; yield it from there");
  }
  return {};
}

void ParserScope::set_hidden(absl::string_view name, bool hidden) {
  names_.at(name).state = hidden ? State::kHidden : State::kVisible;
}

}  // namespace heddle::ir
