#include "heddle/dsl/tensor/copy_atom.h"

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/modes_internal.h"
#include "heddle/ir/type.h"

namespace heddle {

namespace {

int bits_of(ir::Scalar scalar) { return 8 * ir::bytes_of(scalar); }

// An access of one thread, which has a power of two of bits: `least` to 128, and an element's.
Layout access(const char* what, int bits, int least, ir::Scalar scalar, const char* fix,
              SourceLoc loc) {
  const bool power = bits > 0 && (bits & (bits - 1)) == 0;
  if (power && bits >= least && bits >= bits_of(scalar) && bits <= 128) {
    return make_layout({1, bits}, {0, 1});
  }
  return detail::fail_layout(
      loc, absl::StrCat(what, " of ", bits, " bits for elements of ", ir::info(scalar).name), fix);
}

}  // namespace

CopyAtom::CopyAtom(ir::Scalar scalar, const CopyUniversal& op, SourceLoc loc)
    : kind_(Kind::kUniversal), scalar_(scalar) {
  const Layout all = access("CopyUniversal", op.bits, 8, scalar,
                            "a power of two, from an element's width to 128", loc);
  set(all, all, all, loc);
}

CopyAtom::CopyAtom(ir::Scalar scalar, const CopyAsync& op, SourceLoc loc)
    : kind_(Kind::kAsync), scalar_(scalar) {
  const Layout all = access("CopyAsync", op.bits, 32, scalar,
                            "cp.async takes 32, 64 or 128, and an element at least", loc);
  set(all, all, all, loc);
}

CopyAtom::CopyAtom(ir::Scalar scalar, const LdMatrix& op, SourceLoc loc)
    : kind_(Kind::kLdMatrix), scalar_(scalar) {
  Layout rows, registers;
  if (set_matrices(op.matrices, op.transpose, &rows, &registers, loc)) {
    set(rows, registers, registers, loc);
  }
}

CopyAtom::CopyAtom(ir::Scalar scalar, const StMatrix& op, SourceLoc loc)
    : kind_(Kind::kStMatrix), scalar_(scalar) {
  Layout rows, registers;
  if (set_matrices(op.matrices, op.transpose, &rows, &registers, loc)) {
    set(registers, rows, registers, loc);
  }
}

// A matrix is 8 rows of 128 bits, one behind the other; the rows' addresses come from eight lanes a
// matrix, and the others of the warp repeat them. A lane has 32 bits of each matrix: a quarter of a
// row, or where it is transposed, 16 bits of two rows.
bool CopyAtom::set_matrices(int matrices, bool transpose, Layout* rows, Layout* registers,
                            SourceLoc loc) {
  const char* const name = kind_ == Kind::kLdMatrix ? "LdMatrix" : "StMatrix";
  if (matrices != 1 && matrices != 2 && matrices != 4) {
    source_ = detail::fail_layout(loc, absl::StrCat(name, " of ", matrices, " matrices"),
                                  "it moves 1, 2 or 4 matrices");
    return false;
  }
  if (bits_of(scalar_) > 32 || (transpose && bits_of(scalar_) != 16)) {
    source_ = detail::fail_layout(
        loc, absl::StrCat(name, transpose ? ", transposed, of " : " of ", ir::info(scalar_).name),
        "elements have 1, 2 or 4 bytes, and 2 to be transposed");
    return false;
  }
  matrices_ = matrices;
  transpose_ = transpose;
  *rows = matrices == 4 ? make_layout({32, 128}, {128, 1})
                        : make_layout({{8 * matrices, 4 / matrices}, 128}, {{128, 0}, 1});
  *registers = transpose ? make_layout({{4, 8}, {16, 2, matrices}}, {{256, 16}, {1, 128, 1024}})
                         : make_layout({32, {32, matrices}}, {32, {1, 1024}});
  return true;
}

void CopyAtom::set(const Layout& source, const Layout& destination, const Layout& reference,
                   SourceLoc loc) {
  source_ = recast_layout(source, 1, bits_of(scalar_), loc);
  destination_ = recast_layout(destination, 1, bits_of(scalar_), loc);
  reference_ = recast_layout(reference, 1, bits_of(scalar_), loc);
}

}  // namespace heddle
