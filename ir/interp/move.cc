// Copies between registers, and the poison words that say which lanes hold values nobody wrote.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/report.h"
#include "heddle/ir/interp/scalar/elementwise.h"

namespace heddle::ir::interp {
namespace {

template <class T>
const Instr* run_copy(const Instr* instr, Warp& warp) {
  std::memcpy(warp.reg<T>(instr->dst), warp.reg<T>(instr->a), instr->count * sizeof(T) * kLanes);
  return instr + 1;
}

template <class T>
const Instr* run_blend(const Instr* instr, Warp& warp) {
  if (warp.mask == warp.exists) return run_copy<T>(instr, warp);
  T* d = warp.reg<T>(instr->dst);
  const T* a = warp.reg<T>(instr->a);
  for (uint32_t e = 0; e < instr->count; ++e) blend(d + e * kLanes, a + e * kLanes, warp.mask);
  return instr + 1;
}

template <class T>
const Instr* run_splat(const Instr* instr, Warp& warp) {
  T* __restrict d = warp.reg<T>(instr->dst);
  const T* a = warp.reg<T>(instr->a);
  for (uint32_t e = 0; e < instr->count; ++e, d += kLanes) std::memcpy(d, a, sizeof(T) * kLanes);
  return instr + 1;
}

// An operand's poison words by the legend in handlers.h.
class PoisonWords {
 public:
  PoisonWords(const Warp& warp, uint32_t reg, uint32_t size) {
    if (size == 0) return;
    words_ = warp.poison(reg);
    stride_ = (size & 0x80u) != 0 ? 0 : size;
  }
  Mask operator[](uint32_t element) const {
    return words_ == nullptr ? 0 : words_[element * stride_];
  }

 private:
  const uint32_t* words_ = nullptr;
  uint32_t stride_ = 0;
};

const Instr* run_poison_union(const Instr* instr, Warp& warp) {
  uint32_t* d = warp.poison(instr->dst);
  const uint32_t stride = instr->aux & 0xFFu;
  const PoisonWords a(warp, instr->a, instr->aux >> 8 & 0xFFu);
  const PoisonWords b(warp, instr->b, instr->aux >> 16 & 0xFFu);
  const PoisonWords c(warp, instr->c, instr->aux >> 24);
  for (uint32_t e = 0; e < instr->count; ++e) d[e * stride] = a[e] | b[e] | c[e];
  return instr + 1;
}

const Instr* run_poison_select(const Instr* instr, Warp& warp) {
  uint32_t* d = warp.poison(instr->dst);
  const uint32_t stride = instr->aux & 0xFFu;
  const PoisonWords a(warp, instr->a, instr->aux >> 8 & 0xFFu);
  const PoisonWords b(warp, instr->b, instr->aux >> 16 & 0xFFu);
  const PoisonWords c(warp, instr->c, instr->aux >> 24);
  const Mask condition = mask_of(warp.reg<Bool>(instr->a));
  for (uint32_t e = 0; e < instr->count; ++e) {
    d[e * stride] = a[0] | (condition & b[e]) | (~condition & c[e]);
  }
  return instr + 1;
}

const Instr* run_poison_blend(const Instr* instr, Warp& warp) {
  uint32_t* d = warp.poison(instr->dst);
  const uint32_t stride = instr->aux & 0xFFu;
  const PoisonWords a(warp, instr->a, instr->aux >> 8 & 0xFFu);
  for (uint32_t e = 0; e < instr->count; ++e) {
    d[e * stride] = (d[e * stride] & ~warp.mask) | (a[e] & warp.mask);
  }
  return instr + 1;
}

// By DefinedUse.
constexpr absl::string_view kUses[] = {
    "the condition of this if depends on a value that nobody has written",
    "the condition of this while loop depends on a value that nobody has written",
    "the range of this for loop depends on a value that nobody has written",
    "the address of this access depends on a value that nobody has written",
    "the bounds or coordinates of this access depend on a value that nobody has written",
    "this stores a value that nobody has written",
    "the condition of this assert depends on a value that nobody has written",
    "the lane of this shuffle depends on a value that nobody has written",
    "the lane mask of this warp collective depends on a value that nobody has written",
    "the predicate of this vote depends on a value that nobody has written",
    "the scale of this wgmma depends on a value that nobody has written",
    "this prints a value that nobody has written",
    "this inline PTX is given a value that nobody has written",
    "this op from outside is given a value that nobody has written",
    "this conversion of pairs reads a value that nobody has written",
    "this product of matrices reads a value that nobody has written",
};

const Instr* run_require_defined(const Instr* instr, Warp& warp) {
  const uint32_t* words = warp.poison(instr->a);
  const uint32_t stride = instr->aux >> 8;
  Mask bad = 0;
  for (uint32_t e = 0; e < instr->count; ++e) bad |= words[e * stride];
  bad &= warp.mask;
  if (bad != 0 &&
      warp.block->machine->reporter->add(
          warp, instr, bad, std::string(kUses[instr->aux & 0xFFu]),
          "give the variable an initial value, or write it on every path that leads here")) {
    return warp.suspend(WarpState::kStopped, instr);
  }
  return instr + 1;
}

// The instance for an element size, of 1, 2, 4 or 8 bytes.
constexpr Handler by_size(int bytes, std::array<Handler, 4> handlers) {
  return handlers[static_cast<size_t>(std::countr_zero(static_cast<unsigned>(bytes)))];
}

}  // namespace

Handler copy_handler(int bytes, bool blended) {
  if (blended) {
    return by_size(bytes, {&run_blend<uint8_t>, &run_blend<uint16_t>, &run_blend<uint32_t>,
                           &run_blend<uint64_t>});
  }
  return by_size(
      bytes, {&run_copy<uint8_t>, &run_copy<uint16_t>, &run_copy<uint32_t>, &run_copy<uint64_t>});
}

Handler splat_handler(int bytes) {
  return by_size(bytes, {&run_splat<uint8_t>, &run_splat<uint16_t>, &run_splat<uint32_t>,
                         &run_splat<uint64_t>});
}

Handler poison_union_handler() { return &run_poison_union; }
Handler poison_select_handler() { return &run_poison_select; }
Handler poison_blend_handler() { return &run_poison_blend; }
Handler require_defined_handler() { return &run_require_defined; }

}  // namespace heddle::ir::interp
