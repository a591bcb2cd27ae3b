// Which names a kernel's text has defined, and where each may be used. Used by the parser alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "heddle/ir/ids.h"

namespace heddle::ir {

// A name is used once in a whole kernel, and is visible from its definition to the end of the
// region that it stands in.
class ParserScope {
 public:
  void open() { regions_.emplace_back(); }
  void close();
  size_t depth() const { return regions_.size(); }

  // Both return why not, or an empty string. `line` is that of the definition.
  std::string define(absl::string_view name, ValueId value, int line);
  std::string find(absl::string_view name, ValueId& value) const;
  // The results of an op that owns regions are known before they may be used: `define` them, then
  // hide them while its regions are read.
  void set_hidden(absl::string_view name, bool hidden);

 private:
  enum class State : uint8_t { kVisible, kHidden, kEnded };
  struct Entry {
    ValueId value;
    int line;
    State state;
  };
  absl::flat_hash_map<absl::string_view, Entry> names_;
  std::vector<std::vector<absl::string_view>> regions_;
};

}  // namespace heddle::ir
