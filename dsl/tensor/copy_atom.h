// Copy atoms: what one copy instruction moves, and which thread has which element of it.
//
//   make_copy_atom<float>(CopyUniversal{128})     // a thread's 16 bytes, by any load and store
//   make_copy_atom<half>(CopyAsync{128})          // cp.async, from global to shared memory
//   make_copy_atom<half>(LdMatrix{4})             // four 8x8 matrices, from shared memory, a warp
//   make_copy_atom<half>(StMatrix{2, true})       // and back, transposed (sm_90)
//
// An atom has layouts from (thread, value) to an element of what it moves: the source's, the
// destination's and the one that tilings are made by, as CuTe's Copy_Traits have them. Tiled over
// threads and values it is a TiledCopy (tiled_copy.h).
#pragma once

#include "heddle/dsl/layout/layout.h"
#include "heddle/dsl/scalar.h"

namespace heddle {

// Copy by a load and a store of `bits` each, between any kinds of memory.
struct CopyUniversal {
  int bits;  // 8 to 128, at least an element
};
// Asynchronous copy (cp.async) from global to shared memory. Where a predicate does not hold, it
// fills with zeros.
struct CopyAsync {
  int bits = 128;  // 32, 64 or 128
};
// ldmatrix: matrices of 8 rows of 16 bytes from shared memory, by a warp.
struct LdMatrix {
  int matrices = 4;        // 1, 2 or 4
  bool transpose = false;  // for elements of two bytes
};
// stmatrix: the same to shared memory (sm_90).
struct StMatrix {
  int matrices = 4;        // 1, 2 or 4
  bool transpose = false;  // for elements of two bytes
};

// A copy atom: an operation for an element type, with its layouts. make_copy_atom() makes one.
class CopyAtom {
 public:
  // The operations.
  enum class Kind : uint8_t { kUniversal, kAsync, kLdMatrix, kStMatrix };

  // For make_copy_atom().
  CopyAtom(ir::Scalar scalar, const CopyUniversal& op, SourceLoc loc);
  CopyAtom(ir::Scalar scalar, const CopyAsync& op, SourceLoc loc);
  CopyAtom(ir::Scalar scalar, const LdMatrix& op, SourceLoc loc);
  CopyAtom(ir::Scalar scalar, const StMatrix& op, SourceLoc loc);

  Kind kind() const { return kind_; }
  ir::Scalar scalar() const { return scalar_; }
  int matrices() const { return matrices_; }
  bool transpose() const { return transpose_; }
  // Layouts from (thread, value) to the element: of the source, of the destination, and the one
  // that tilings are made by.
  const Layout& source() const { return source_; }
  const Layout& destination() const { return destination_; }
  const Layout& reference() const { return reference_; }
  // An atom that is not ok(), for the reason that a layout gives.
  explicit CopyAtom(const Layout& failure) : kind_(Kind::kUniversal), scalar_{}, source_(failure) {}
  // Why it is not ok().
  const std::string& error() const { return source_.error(); }
  // False where the operation does not exist for the element type, which was reported.
  bool ok() const { return source_.ok() && destination_.ok() && reference_.ok(); }

 private:
  // Layouts in bits.
  void set(const Layout& source, const Layout& destination, const Layout& reference, SourceLoc loc);
  bool set_matrices(int matrices, bool transpose, Layout* rows, Layout* registers, SourceLoc loc);

  Kind kind_;
  ir::Scalar scalar_;
  int matrices_ = 0;
  bool transpose_ = false;
  Layout source_, destination_, reference_;
};

// Makes a copy atom of an operation, for elements of T. Widths or types that it does not have are
// an error of the kernel.
template <class T, class Op>
CopyAtom make_copy_atom(const Op& op, SourceLoc loc = SourceLoc::current()) {
  return CopyAtom(detail::scalar_of<T>(), op, loc);
}

}  // namespace heddle
