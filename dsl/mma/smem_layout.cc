#include "heddle/dsl/mma/smem_layout.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/modes_internal.h"
#include "heddle/dsl/mma/swizzle_internal.h"
#include "heddle/ir/type.h"

namespace heddle::detail {

namespace {

int bits_of(ir::Scalar scalar) { return 8 * ir::bytes_of(scalar); }

const char* name_of(Major major) { return major == Major::k ? "K-major" : "MN-major"; }

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
  if (line <= 0 || line % wanted != 0) {
    return wrong(absl::StrCat(" has ", line, " contiguous bytes in ", lines, " lines"),
                 absl::StrCat("take a multiple of ", wanted, " bytes",
                              bytes == 0 ? "" : ", or a narrower swizzle"));
  }
  if (lines <= 0 || lines % kSwizzleLines != 0) {
    return wrong(absl::StrCat(" has ", lines, " lines"),
                 absl::StrCat("take a multiple of ", kSwizzleLines,
                              " lines, and guard what is beyond the data"));
  }
  // The lines' mode first, then the contiguous one, then the stages.
  IntTuple order = major == Major::k ? IntTuple{0, 1} : IntTuple{1, 0};
  for (int mode = 2; mode < modes; ++mode) order = append(order, mode);
  return tile_to_shape(atom, shape, order, loc);
}

}  // namespace heddle::detail
