// Typed 32-bit ids. Everything in a Kernel is named by one of these: they survive growth of the
// storage, hash and print the same in every run, and cannot be mixed up.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "heddle/ir/check.h"

namespace heddle::ir {

enum class OpId : uint32_t { kNone = 0xFFFFFFFF };
enum class ValueId : uint32_t { kNone = 0xFFFFFFFF };
enum class RegionId : uint32_t { kNone = 0xFFFFFFFF };
enum class LocId : uint32_t { kNone = 0xFFFFFFFF };
enum class StringId : uint32_t { kNone = 0xFFFFFFFF };

template <class Id>
constexpr uint32_t index_of(Id id) {
  return static_cast<uint32_t>(id);
}

template <class Id>
constexpr bool valid(Id id) {
  return id != Id::kNone;
}

// A side table over ids. Reading an id that was never written gives the default.
template <class Id, class T>
class IdMap {
 public:
  explicit IdMap(T initial = T()) : initial_(initial) {}

  const T& operator[](Id id) const {
    return index_of(id) < items_.size() ? items_[index_of(id)].value : initial_;
  }
  T& at(Id id) {
    HEDDLE_CHECK(valid(id), "side table written at an invalid id");
    if (index_of(id) >= items_.size()) items_.resize(index_of(id) + 1, Cell{initial_});
    return items_[index_of(id)].value;
  }
  // at(to) = map[from] would read a reference that at() may have moved away from.
  void copy(Id to, Id from) {
    T value = (*this)[from];
    at(to) = std::move(value);
  }
  void clear() { items_.clear(); }

 private:
  // A struct, so that a map of bool is no std::vector<bool>, which has no references.
  struct Cell {
    T value;
  };
  T initial_;
  std::vector<Cell> items_;
};

}  // namespace heddle::ir
