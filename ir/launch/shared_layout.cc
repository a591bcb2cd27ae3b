#include "heddle/ir/launch/shared_layout.h"

#include <algorithm>
#include <map>
#include <vector>

namespace heddle::ir {
namespace {

int64_t align_up(int64_t offset, int align) { return (offset + align - 1) / align * align; }

// What is placed as one: an array, or the regions of an arena above each other.
struct Unit {
  std::vector<std::pair<OpId, int64_t>> arrays;  // and where they lie in it
  int align = 16;
  int64_t bytes = 0;
  std::map<int64_t, int64_t> regions;  // of an arena: how far each reaches
};

SharedLayout layout_of(const Kernel& kernel, Opcode kind, bool apart) {
  std::vector<Unit> units;
  std::map<int64_t, size_t> arenas;
  kernel.walk([&](OpId id) {
    const Op& op = kernel.op(id);
    if (op.opcode != kind) return;
    const auto arena = apart ? std::nullopt : op.attr(AttrKey::kArena);
    const size_t index =
        arena ? arenas.try_emplace(*arena, units.size()).first->second : units.size();
    if (index == units.size()) units.emplace_back();
    Unit& unit = units[index];
    const int align = static_cast<int>(op.attr_or(AttrKey::kAlign, 16));
    const int64_t bytes = array_bytes(kernel, id);
    int64_t& end = unit.regions[op.attr_or(AttrKey::kRegion, 0)];
    unit.arrays.emplace_back(id, align_up(end, align));
    end = align_up(end, align) + bytes;
    unit.align = std::max(unit.align, align);
    unit.bytes = std::max(unit.bytes, end);
  });
  // The most aligned first, so that padding is at most the last one's.
  std::stable_sort(units.begin(), units.end(),
                   [](const Unit& a, const Unit& b) { return a.align > b.align; });
  SharedLayout layout;
  int64_t end = 0;
  for (const Unit& unit : units) {
    layout.align = std::max(layout.align, unit.align);
    end = align_up(end, unit.align);
    for (const auto& [id, offset] : unit.arrays) {
      layout.offset.at(id) = static_cast<int>(end + offset);
    }
    end += unit.bytes;
  }
  layout.bytes = end;
  return layout;
}

}  // namespace

int64_t array_bytes(const Kernel& kernel, OpId array) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const Op& op = kernel.op(array);
  int64_t bytes = bytes_of(kernel.type(op.result()).scalar);
  for (const int64_t extent : kernel.ints(*op.attr(AttrKey::kExtents))) {
    bytes = extent < 1 ? 0 : bytes > kMost / extent ? kMost : bytes * extent;
  }
  return bytes;
}

SharedLayout shared_layout(const Kernel& kernel) {
  return layout_of(kernel, Opcode::kShared, /*apart=*/false);
}
SharedLayout apart_layout(const Kernel& kernel) {
  return layout_of(kernel, Opcode::kShared, /*apart=*/true);
}
SharedLayout local_layout(const Kernel& kernel) {
  return layout_of(kernel, Opcode::kLocal, /*apart=*/true);
}

}  // namespace heddle::ir
