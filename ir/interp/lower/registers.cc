#include "heddle/ir/interp/lower/registers.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "heddle/ir/check.h"

namespace heddle::ir::interp {
namespace {

constexpr uint32_t kSmallest = 32;  // so that every element has room for a poison word
constexpr uint32_t kAlign = 64;

}  // namespace

uint32_t RegisterPlan::add(uint32_t bytes) {
  regs_.push_back({.bytes = std::max(bytes, kSmallest)});
  return static_cast<uint32_t>(regs_.size() - 1);
}

uint32_t RegisterPlan::add_permanent(uint32_t bytes) {
  const uint32_t reg = add(bytes);
  regs_[reg].permanent = true;
  return reg;
}

void RegisterPlan::touch(uint32_t id, uint32_t position) {
  Reg& reg = regs_[id];
  if (reg.permanent) return;
  if (reg.begin == kUntouched) reg.begin = position;
  reg.end = std::max(reg.end, position);
  // The outermost loop that the register was made before has to keep it.
  for (OpenLoop& loop : loops_) {
    if (reg.begin >= loop.begin) continue;
    if (loop.carried.empty() || loop.carried.back() != id) loop.carried.push_back(id);
    break;
  }
}

void RegisterPlan::begin_loop(uint32_t position) { loops_.push_back({position, {}}); }

void RegisterPlan::end_loop(uint32_t position) {
  for (const uint32_t id : loops_.back().carried) {
    regs_[id].end = std::max(regs_[id].end, position);
  }
  loops_.pop_back();
}

uint64_t RegisterPlan::allocate() {
  HEDDLE_CHECK(loops_.empty(), "a loop was not closed");
  uint64_t top = 0;
  const auto extend = [&top](uint32_t bytes) {
    const uint32_t align = std::min(kAlign, bytes & (0u - bytes));
    const uint64_t offset = (top + align - 1) / align * align;
    top = offset + bytes;
    return static_cast<uint32_t>(offset);
  };
  std::vector<uint32_t> order;
  for (uint32_t id = 0; id < regs_.size(); ++id) {
    Reg& reg = regs_[id];
    if (reg.permanent) {
      reg.offset = extend(reg.bytes);
    } else if (reg.begin != kUntouched) {
      order.push_back(id);
    }
  }
  std::sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
    return std::pair(regs_[a].begin, a) < std::pair(regs_[b].begin, b);
  });

  // Linear scan. A register ends strictly before another may take its bytes, so that an
  // instruction's result never overlaps its operands.
  using Ending = std::pair<uint32_t, uint32_t>;
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> alive;
  absl::flat_hash_map<uint32_t, std::vector<uint32_t>> free;  // offsets, by size
  for (const uint32_t id : order) {
    Reg& reg = regs_[id];
    while (!alive.empty() && alive.top().first < reg.begin) {
      const Reg& dead = regs_[alive.top().second];
      free[dead.bytes].push_back(dead.offset);
      alive.pop();
    }
    std::vector<uint32_t>& candidates = free[reg.bytes];
    if (candidates.empty()) {
      reg.offset = extend(reg.bytes);
    } else {
      reg.offset = candidates.back();
      candidates.pop_back();
    }
    alive.emplace(reg.end, id);
  }
  return (top + kAlign - 1) / kAlign * kAlign;
}

}  // namespace heddle::ir::interp
