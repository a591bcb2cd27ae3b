#include "heddle/dsl/mma/smem_box.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/modes_internal.h"
#include "heddle/dsl/mma/swizzle_internal.h"
#include "heddle/ir/type.h"

namespace heddle::detail {

namespace {

constexpr int64_t kMostBox = 256;       // elements of a box along one mode
constexpr int64_t kBoxAlignment = 128;  // bytes

SmemBox no_box(const IntTuple& failure) { return {.extents = failure}; }

// How many elements of a mode lie side by side from the first on, `pitch` apart.
int64_t run_of(const Layout& mode, int64_t pitch) {
  const Modes parts = coalesced(mode);
  return parts[0].stride.value.is_constant(pitch) ? parts[0].shape.value() : 1;
}

// The greatest divisor of a run, up to the most elements of a box, whose boxes begin at multiples of `align`
// elements where they are `pitch` times so long; the greatest of all where none does.
int64_t cut(int64_t run, int64_t pitch, int64_t align) {
  int64_t greatest = 1;
  for (int64_t d = std::min(run, kMostBox); d > 1; --d) {
    if (run % d != 0) continue;
    if (d == run || d * pitch % align == 0) return d;
    greatest = std::max(greatest, d);
  }
  return greatest;
}

}  // namespace

SmemBox box_of(const Layout& tile, ir::Scalar scalar, SourceLoc loc) {
  if (!tile.ok()) return no_box(tile.shape());
  const auto wrong = [&](const std::string& what, const std::string& fix) {
    return no_box(fail(loc, absl::StrCat("box_of: ", tile.to_string(), what), fix));
  };
  const int modes = rank(tile);
  const int bytes = ir::bytes_of(scalar);
  const std::optional<int> swizzle = line_bytes_of(tile.swizzle(), 8 * bytes);
  if (modes > kMaxRank || !is_static(tile.outer())) {
    return wrong(" has not one to five modes of host numbers",
                 "slice it until the modes of a box are left");
  }
  if (!swizzle || tile.inner() != nullptr) {
    return wrong(" is swizzled as the copy engine cannot",
                 absl::StrCat("make_smem_layout() makes layouts for it: a swizzle counts elements, "
                              "so that one of 128 bytes "
                              "is S<3,",
                              std::countr_zero(static_cast<unsigned>(16 / bytes)), ",3>"));
  }
  const Layout outer = tile.outer();
  int contiguous = 0;
  while (contiguous < modes && run_of(get(outer, contiguous), 1) == 1) ++contiguous;
  if (contiguous == modes) {
    return wrong(" is contiguous along no mode", "make_smem_layout() makes layouts for it");
  }
  int64_t extents[kMaxRank] = {1, 1, 1, 1, 1}, pitch = 1;
  const int64_t align = std::max<int64_t>(kBoxAlignment, *swizzle * kSwizzleLines) / bytes;
  const auto extend = [&](int mode, int64_t run) {
    extents[mode] = cut(run, pitch, align);
    pitch *= extents[mode];
  };
  const int64_t run = run_of(get(outer, contiguous), 1);
  extend(contiguous, *swizzle == 0 ? run : std::gcd(run, *swizzle / bytes));
  const int64_t line = extents[contiguous] * bytes;
  if (line % kChunkBytes != 0 || (*swizzle != 0 && line != *swizzle)) {
    return wrong(absl::StrCat(" has lines of ", line, " bytes",
                              *swizzle == 0 ? "" : absl::StrCat(" under a swizzle of ", *swizzle)),
                 *swizzle == 0 ? "the copy engine moves multiples of 16 bytes"
                               : "the copy engine's lines are as long as the swizzle");
  }
  for (int mode = modes - 1; mode >= 0; --mode) {
    if (mode != contiguous) extend(mode, run_of(get(outer, mode), pitch));
  }
  IntTuple shape;
  for (int mode = 0; mode < modes; ++mode) shape = append(shape, extents[mode]);
  SmemBox box{.extents = shape, .swizzle = *swizzle, .contiguous = contiguous, .count = 1};
  const BoxGrid grid(tile, box);
  box.count = grid.count();
  if (!grid.are_aligned(tile, scalar)) {
    return wrong(" has boxes at places that are no multiples of 128 bytes",
                 "make_smem_layout() makes layouts for the copy engine");
  }
  return box;
}

BoxGrid::BoxGrid(const Layout& tile, const SmemBox& smem_box) : modes(rank(tile)) {
  for (int mode = 0; mode < modes; ++mode) {
    box[mode] = smem_box.extent(mode);
    counts[mode] = size(get(tile.shape(), mode)).value() / box[mode];
  }
}

int64_t BoxGrid::count() const {
  int64_t count = 1;
  for (int mode = 0; mode < modes; ++mode) count *= counts[mode];
  return count;
}

IntTuple BoxGrid::first(int64_t number, const SymInt& origin, int moved) const {
  IntTuple place;
  for (int mode = 0; mode < modes; ++mode) {
    const SymInt at(number % counts[mode] * box[mode]);
    number /= counts[mode];
    if (modes == 1) return IntTuple(at + origin);
    place = append(place, mode == moved ? at + origin : at);
  }
  return place;
}

bool BoxGrid::are_aligned(const Layout& tile, ir::Scalar scalar) const {
  const Layout outer = tile.outer();
  for (int64_t number = 0; number < count(); ++number) {
    const int64_t at = tile.swizzle()(outer(first(number)).value().value());
    if (at * ir::bytes_of(scalar) % kBoxAlignment != 0) return false;
  }
  return true;
}

}  // namespace heddle::detail
