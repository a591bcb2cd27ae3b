#include "heddle/dsl/mma/smem_layout.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/modes_internal.h"
#include "heddle/dsl/mma/swizzle_internal.h"
#include "heddle/ir/type.h"

namespace heddle::detail {

namespace {

constexpr int64_t kMostBox = 256;  // elements of a box along one mode

int bits_of(ir::Scalar scalar) { return 8 * ir::bytes_of(scalar); }

const char* name_of(Major major) { return major == Major::k ? "K-major" : "MN-major"; }

SmemBox no_box(const IntTuple& failure) { return {.extents = failure}; }

// How many elements of a mode lie side by side from the first on, `pitch` apart.
int64_t run_of(const Layout& mode, int64_t pitch) {
  const Modes parts = coalesced(mode);
  return parts[0].stride.value.is_constant(pitch) ? parts[0].shape.value() : 1;
}

// The greatest divisor of a number up to a limit.
int64_t divisor_below(int64_t number, int64_t limit) {
  for (int64_t d = std::min(number, limit); d > 1; --d) {
    if (number % d == 0) return d;
  }
  return 1;
}

}  // namespace

Swizzle swizzle_of_lines(int line_bytes, int element_bits) {
  int bits = 0;
  while (kChunkBytes << bits < line_bytes) ++bits;
  return recast(Swizzle(bits, 4, 3), 8, element_bits);
}

std::optional<int> line_bytes_of(const Swizzle& swizzle, int element_bits) {
  if (swizzle.bits() == 0) return 0;
  for (int bytes = 2 * kChunkBytes; bytes <= kMostSwizzleBytes; bytes *= 2) {
    if (swizzle == swizzle_of_lines(bytes, element_bits)) return bytes;
  }
  return std::nullopt;
}

Layout smem_layout_atom(ir::Scalar scalar, Major major, int swizzle_bytes, SourceLoc loc) {
  if (swizzle_bytes != 0 && swizzle_bytes != 32 && swizzle_bytes != 64 && swizzle_bytes != 128) {
    return fail_layout(loc,
                       absl::StrCat("smem_layout_atom: a swizzle of ", swizzle_bytes, " bytes"),
                       "there are those of 32, 64 and 128, and 0 for none");
  }
  const int width = std::max(swizzle_bytes, kChunkBytes) * 8 / bits_of(scalar);
  const Layout lines = major == Major::k ? make_layout({kSwizzleLines, width}, {width, 1})
                                         : make_layout({width, kSwizzleLines}, {1, width});
  if (swizzle_bytes == 0) return lines;
  return composition(swizzle_of_lines(swizzle_bytes, bits_of(scalar)), lines, loc);
}

Layout make_smem_layout(ir::Scalar scalar, const IntTuple& shape, Major major,
                        const SwizzleChoice& choice, SourceLoc loc) {
  if (!shape.ok()) return failed_layout(shape);
  const auto wrong = [&](const std::string& what, const std::string& fix) {
    return fail_layout(
        loc,
        absl::StrCat("make_smem_layout: a ", name_of(major), " tile of ", shape.to_string(),
                     " elements of ", ir::info(scalar).name, what),
        fix);
  };
  const int modes = rank(shape);
  if (!shape.is_tuple() || modes < 2 || !is_static(shape)) {
    return wrong(
        ", which is not (rows, depth) of host numbers",
        "shared memory is laid out for host numbers: (rows, depth) or (rows, depth, stages)");
  }
  const int contiguous = major == Major::k ? 1 : 0;
  const int64_t line = size(get(shape, contiguous)).value() * ir::bytes_of(scalar);
  const int64_t lines = size(get(shape, 1 - contiguous)).value();
  int widest = kMostSwizzleBytes;
  const int64_t part = choice.part * ir::bytes_of(scalar);
  while (widest > kChunkBytes && (line % widest != 0 || part % widest != 0)) widest /= 2;
  const int bytes = choice.bytes >= 0 ? choice.bytes : widest == kChunkBytes ? 0 : widest;
  const Layout atom = detail::smem_layout_atom(scalar, major, bytes, loc);
  if (!atom.ok()) return atom;
  const int wanted = std::max(bytes, kChunkBytes);
  if (line <= 0 || lines <= 0 || line % wanted != 0 || lines % kSwizzleLines != 0) {
    return wrong(absl::StrCat(" has ", line, " contiguous bytes in ", lines, " lines"),
                 absl::StrCat("take a multiple of ", wanted, " bytes",
                              bytes == 0 ? "" : ", or a narrower swizzle,", " and one of ",
                              kSwizzleLines, " lines"));
  }
  // The lines' mode first, then the contiguous one, then the stages.
  IntTuple order = major == Major::k ? IntTuple{0, 1} : IntTuple{1, 0};
  for (int mode = 2; mode < modes; ++mode) order = append(order, mode);
  return tile_to_shape(atom, shape, order, loc);
}

SmemBox box_of(const Layout& tile, ir::Scalar scalar, SourceLoc loc) {
  if (!tile.ok()) return no_box(tile.shape());
  const auto wrong = [&](const char* what, const char* fix) {
    return no_box(fail(loc, absl::StrCat("box_of: ", tile.to_string(), what), fix));
  };
  const int modes = rank(tile);
  const std::optional<int> swizzle = line_bytes_of(tile.swizzle(), bits_of(scalar));
  if (!tile.shape().is_tuple() || modes > kMaxRank || !is_static(tile.outer())) {
    return wrong(" has not one to five modes of host numbers",
                 "slice it until the modes of a box are left");
  }
  if (!swizzle || tile.inner() != nullptr) {
    return wrong(" is swizzled as the copy engine cannot",
                 "make_smem_layout() makes layouts for it");
  }
  const Layout outer = tile.outer();
  int contiguous = 0;
  while (contiguous < modes && run_of(get(outer, contiguous), 1) == 1) ++contiguous;
  if (contiguous == modes) {
    return wrong(" is contiguous along no mode", "make_smem_layout() makes layouts for it");
  }
  int64_t extents[kMaxRank] = {1, 1, 1, 1, 1}, pitch = 1, count = size(outer).value();
  const auto extend = [&](int mode, int64_t most) {
    extents[mode] = divisor_below(run_of(get(outer, mode), pitch), most);
    pitch *= extents[mode];
    count /= extents[mode];
  };
  const int64_t width = *swizzle == 0 ? kMostBox : *swizzle / ir::bytes_of(scalar);
  extend(contiguous, std::min(kMostBox, width));
  for (int mode = modes - 1; mode >= 0; --mode) {
    if (mode != contiguous) extend(mode, kMostBox);
  }
  IntTuple box;
  for (int mode = 0; mode < modes; ++mode) box = append(box, extents[mode]);
  return {.extents = box, .swizzle = *swizzle, .contiguous = contiguous, .count = count};
}

}  // namespace heddle::detail
