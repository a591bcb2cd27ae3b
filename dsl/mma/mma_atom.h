// Atoms of matrix products: what one instruction multiplies, and which thread has which element of it.
//
//   make_mma_atom(Wgmma<bfloat16, bfloat16, float>{128})             // m64n128k16, a warpgroup, sm_90a
//   make_mma_atom(Wgmma<half, half, float>{64, OperandSource::rmem}) // with a in registers
//   make_mma_atom(MmaSync<half, half, float>{16, 8, 16})             // a warp, sm_80 and up
//   make_mma_atom(UniversalFma<float>{})                             // a thread
//
// An atom adds to a matrix of m x n elements the product of a, m x k, and of the transpose of b, n x k.
// It has layouts from (thread, value) to the number of an element of each: row + rows * column, as CuTe's
// MMA_Traits have them. The rows of ir/mma_atoms.def are the atoms that there are. Repeated over the
// threads of a block it is a TiledMma (tiled_mma.h).
#pragma once

#include "heddle/dsl/layout/layout.h"
#include "heddle/dsl/scalar.h"

namespace heddle {

namespace ir {
struct MmaAtom;
}  // namespace ir

// Where an operand a of wgmma is: in shared memory, or in registers.
enum class OperandSource : uint8_t { smem, rmem };

// wgmma: 64 rows by n columns, a multiple of 8 up to 256, by the 128 threads of a warpgroup; b is a tile
// in shared memory, and so is a, or it is in registers. It is asynchronous.
template <class A, class B, class C>
struct Wgmma {
  int n;                                  // columns
  OperandSource a = OperandSource::smem;  // where a is
};
// mma.sync: by a warp, of operands in registers.
template <class A, class B, class C>
struct MmaSync {
  int m, n, k;  // the shape
};
// One fused multiply-add of a thread.
template <class T>
struct UniversalFma {};

// An atom: an operation with its element types, shape and layouts. make_mma_atom() makes one.
class MmaAtom {
 public:
  // The operations, in the order of ir/mma_atoms.def.
  enum class Kind : uint8_t { kFma, kMma, kWgmma };

  // For make_mma_atom(). Where k is 0, it is the kind's for these types.
  MmaAtom(Kind kind, ir::Scalar a, ir::Scalar b, ir::Scalar c, const int (&mnk)[3],
          OperandSource source, SourceLoc loc);
  // An atom that is not ok(), for the reason that a layout gives.
  explicit MmaAtom(const Layout& failure) : layout_a_(failure) {}

  Kind kind() const { return kind_; }
  // The shape.
  int m() const { return mnk_[0]; }
  int n() const { return mnk_[1]; }
  int k() const { return mnk_[2]; }
  IntTuple shape_mnk() const { return {m(), n(), k()}; }
  // Element types of the operands and of what is added to.
  ir::Scalar a() const { return a_; }
  ir::Scalar b() const { return b_; }
  ir::Scalar c() const { return c_; }
  // How many threads multiply together: 1, 32 or 128.
  int threads() const { return threads_; }
  // Whether the product is complete only after a wait; and whether an operand is a tile in shared
  // memory, of which all threads have all elements.
  bool is_async() const { return is_async_; }
  bool a_in_smem() const { return a_in_smem_; }
  bool b_in_smem() const { return b_in_smem_; }
  // Layouts from (thread, value) to the number of an element of a (m x k), b (n x k) and c (m x n).
  const Layout& layout_A() const { return layout_a_; }
  const Layout& layout_B() const { return layout_b_; }
  const Layout& layout_C() const { return layout_c_; }
  // "wgmma m64n128k16 bf16 x bf16 + f32"
  std::string to_string() const;
  // Its row of the table; nullptr where it is not ok().
  const ir::MmaAtom* row() const { return row_; }
  // Whether there is such an atom, else the reason, which was reported.
  bool ok() const { return layout_a_.ok(); }
  const std::string& error() const { return layout_a_.error(); }

 private:
  const ir::MmaAtom* row_ = nullptr;
  Kind kind_ = Kind::kFma;
  int mnk_[3] = {1, 1, 1};
  ir::Scalar a_{}, b_{}, c_{};
  int threads_ = 1;
  bool is_async_ = false, a_in_smem_ = false, b_in_smem_ = false;
  Layout layout_a_, layout_b_, layout_c_;
};

// Makes the atom of an operation. Types and shapes that no row of the table has are an error of the
// kernel.
template <class A, class B, class C>
MmaAtom make_mma_atom(const Wgmma<A, B, C>& op, SourceLoc loc = SourceLoc::current()) {
  return MmaAtom(MmaAtom::Kind::kWgmma, detail::scalar_of<A>(), detail::scalar_of<B>(),
                 detail::scalar_of<C>(), {64, op.n, 0}, op.a, loc);
}
template <class A, class B, class C>
MmaAtom make_mma_atom(const MmaSync<A, B, C>& op, SourceLoc loc = SourceLoc::current()) {
  return MmaAtom(MmaAtom::Kind::kMma, detail::scalar_of<A>(), detail::scalar_of<B>(),
                 detail::scalar_of<C>(), {op.m, op.n, op.k}, OperandSource::rmem, loc);
}
template <class T>
MmaAtom make_mma_atom(const UniversalFma<T>&, SourceLoc loc = SourceLoc::current()) {
  return MmaAtom(MmaAtom::Kind::kFma, detail::scalar_of<T>(), detail::scalar_of<T>(),
                 detail::scalar_of<T>(), {1, 1, 1}, OperandSource::rmem, loc);
}

}  // namespace heddle
