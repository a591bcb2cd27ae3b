// What a program promises and the GPU takes for granted: here it is looked at.
#include <bit>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/report.h"
#include "heddle/ir/interp/scalar/elementwise.h"

namespace heddle::ir::interp {
namespace {

const Instr* report(const Instr* instr, Warp& warp, Mask bad, std::string what, std::string fix) {
  const bool stop =
      warp.block->machine->reporter->add(warp, instr, bad, std::move(what), std::move(fix));
  return stop ? warp.suspend(WarpState::kStopped, instr) : instr + 1;
}

template <class T>
const Instr* run_require_uniform(const Instr* instr, Warp& warp) {
  const T* a = warp.reg<T>(instr->a);
  const int first = std::countr_zero(warp.mask);
  Mask bad = 0;
  for_each_lane(warp.mask, [&](int l) { bad |= a[l] != a[first] ? Mask{1} << l : 0; });
  if (bad == 0) return instr + 1;
  return report(instr, warp, bad,
                absl::StrCat("a value that is promised to be uniform differs from that of ",
                             thread_name(warp, first)),
                "promise only what is the same in all threads of the block");
}

std::string broken(const Code::Promise& promise, int64_t value) {
  const IntFacts& facts = promise.facts;
  const std::string what =
      promise.name.empty() ? absl::StrCat(value) : absl::StrCat(promise.name, ", ", value, ",");
  if (value >= facts.min && value <= facts.max) {
    return absl::StrCat(what, " is promised to be a multiple of ", facts.divisor);
  }
  return facts.max == IntFacts().max
             ? absl::StrCat(what, " is promised to be at least ", facts.min)
             : absl::StrCat(what, " is promised to lie between ", facts.min, " and ", facts.max);
}

// Bounds are those of int_range.h, which reads a u64 as an i64; multiples are of the number itself.
template <class T>
bool is_multiple(T value, int64_t divisor) {
  if constexpr (std::is_same_v<T, uint64_t>) return value % static_cast<uint64_t>(divisor) == 0;
  return static_cast<int64_t>(value) % divisor == 0;
}

template <class T>
const Instr* run_require_range(const Instr* instr, Warp& warp) {
  const Code::Promise& promise = warp.block->machine->code->promises[instr->aux];
  const IntFacts& promised = promise.facts;
  const T* a = warp.reg<T>(instr->a);
  for (uint32_t e = 0; e < instr->count; ++e, a += kLanes) {
    Mask bad = 0;
    for_each_lane(warp.mask, [&](int l) {
      const auto value = static_cast<int64_t>(a[l]);
      const bool kept = promised.min <= value && value <= promised.max &&
                        (promised.divisor == 1 || is_multiple(a[l], promised.divisor));
      bad |= kept ? 0 : Mask{1} << l;
    });
    if (bad == 0) continue;
    return report(instr, warp, bad, broken(promise, static_cast<int64_t>(a[std::countr_zero(bad)])),
                  "promise only what holds in every thread that comes here");
  }
  return instr + 1;
}

const Instr* run_unreachable(const Instr* instr, Warp& warp) {
  warp.block->machine->reporter->add(
      warp, instr, warp.mask, "comes where the program promises that no thread does",
      "mend the condition, or the promise: unreachable() or assume()");
  return warp.suspend(WarpState::kStopped, instr);
}

}  // namespace

Handler require_uniform_handler(int bytes) {
  switch (bytes) {
    case 1:
      return &run_require_uniform<uint8_t>;
    case 2:
      return &run_require_uniform<uint16_t>;
    case 4:
      return &run_require_uniform<uint32_t>;
    default:
      return &run_require_uniform<uint64_t>;
  }
}

Handler require_range_handler(Scalar scalar) {
  switch (scalar) {
    case Scalar::kI32:
      return &run_require_range<int32_t>;
    case Scalar::kU32:
      return &run_require_range<uint32_t>;
    case Scalar::kU64:
      return &run_require_range<uint64_t>;
    default:
      return &run_require_range<int64_t>;
  }
}

Handler unreachable_handler() { return &run_unreachable; }

}  // namespace heddle::ir::interp
