// Tiled products: an atom over the threads of a block, as CuTe has them.
//
//   const TiledMma mma = make_tiled_mma(make_mma_atom(MmaSync<half, half, float>{16, 8, 16}), {2, 2, 1});
//   const ThrMma mine = mma.get_slice(thread_idx.x);        // 4 warps: a tile of 32 x 16
//   auto a = mine.partition_A(a_tile);                      // (values,m,k): this thread's part
//   auto sums = mine.partition_C(c_tile);                   // (values,m,n)
//   auto where = mine.partition_C(make_identity_tensor({128, 64}));    // the coordinates of its sums
//
// The tile is the atom, repeated as the layout of atoms says: (m,n,k) to the number of the atom's
// threads, one warp or warpgroup behind the other. A permutation, a tiler of the modes m, n and k, makes
// the tile larger or orders its rows, columns or depth otherwise. Larger tensors are covered by repeating
// the tile.
//
//   const auto a_tiles = make_smem_tensor<half>(make_smem_layout_A(mma, {128, 64, 4}));
//
// gemm.h multiplies such parts. make_tiled_copy_A() and its like make the copies that load and store the
// registers: with ldmatrix and stmatrix, or by any other copy atom.
#pragma once

#include "heddle/dsl/mma/mma_atom.h"
#include "heddle/dsl/mma/smem_layout.h"
#include "heddle/dsl/tensor/tiled_copy.h"

namespace heddle {

class ThrMma;

// A tiled product: an atom, laid over the threads of a block. make_tiled_mma() makes one.
class TiledMma {
 public:
  // For make_tiled_mma().
  TiledMma(const MmaAtom& atom, const Layout& atoms, const Tiler& permutation, SourceLoc loc);

  const MmaAtom& atom() const { return atom_; }
  // The layout of threads: (threads of an atom, m, n, k) to the thread's number.
  const Layout& thr_layout_vmnk() const { return threads_; }
  // The extents (m,n,k) of the tile.
  const IntTuple& tile_mnk() const { return tile_; }
  // How many threads take part.
  int64_t threads() const { return size(threads_).value(); }
  // Whether it was made without a mistake.
  bool ok() const { return atom_.ok() && threads_.ok() && tile_.ok(); }

  // The part of one thread, by its number. It is an error of the kernel where the block has fewer threads
  // than take part.
  ThrMma get_slice(const IntTuple& thread, SourceLoc loc = SourceLoc::current()) const;

  // A layout (m,k,…), (n,k,…) or (m,n,…) as ((threads),(values,(modes…))): the threads of an atom, and the
  // atoms along both modes; the values of an atom, and how often the tile is repeated.
  Layout thrfrg_A(const Layout& layout, SourceLoc loc = SourceLoc::current()) const;
  Layout thrfrg_B(const Layout& layout, SourceLoc loc = SourceLoc::current()) const;
  Layout thrfrg_C(const Layout& layout, SourceLoc loc = SourceLoc::current()) const;
  // The layouts from (thread, value) to the number of an element of the tile: what a picture shows.
  Layout layout_A_tv(SourceLoc loc = SourceLoc::current()) const;
  Layout layout_B_tv(SourceLoc loc = SourceLoc::current()) const;
  Layout layout_C_tv(SourceLoc loc = SourceLoc::current()) const;

 private:
  friend class ThrMma;
  // An operand: which of the modes m, n and k it has, the atom's layout of it, and whether the atom takes
  // it from shared memory.
  struct Operand {
    int modes[2];
    const Layout* atom;
    bool in_smem;
  };
  Operand operand_a() const { return {{0, 2}, &atom_.layout_A(), atom_.a_in_smem()}; }
  Operand operand_b() const { return {{1, 2}, &atom_.layout_B(), atom_.b_in_smem()}; }
  Operand operand_c() const { return {{0, 1}, &atom_.layout_C(), false}; }
  Layout thrfrg(const Layout& layout, const Operand& operand, SourceLoc loc) const;
  Layout layout_tv(const Operand& operand, SourceLoc loc) const;

  MmaAtom atom_;
  Layout atoms_, threads_;
  Tiler permutation_;
  IntTuple tile_;
};

// The part of one thread in a tiled product; get_slice() makes it.
class ThrMma {
 public:
  // For get_slice().
  ThrMma(const TiledMma& mma, const IntTuple& thread, SourceLoc loc);

  // The tiled product that it is a part of.
  const TiledMma& tiled_mma() const { return mma_; }
  // The thread's number.
  const IntTuple& thread() const { return thread_; }

  // The thread's elements of a tensor (m,k,…), (n,k,…) or (m,n,…): (values,m,k,…) and so on. Of an operand
  // that the atom takes from shared memory, the tiles of its instructions.
  template <detail::TensorLike X>
  auto partition_A(const X& x, SourceLoc loc = SourceLoc::current()) const {
    return part(x, mma_.operand_a(), loc);
  }
  template <detail::TensorLike X>
  auto partition_B(const X& x, SourceLoc loc = SourceLoc::current()) const {
    return part(x, mma_.operand_b(), loc);
  }
  template <detail::TensorLike X>
  auto partition_C(const X& x, SourceLoc loc = SourceLoc::current()) const {
    return part(x, mma_.operand_c(), loc);
  }

  // Of a tensor of any element type, for the functions of this room.
  detail::AnyTensor partition_A(const detail::AnyTensor& x, SourceLoc loc) const {
    return part_of(x, mma_.operand_a(), loc);
  }
  detail::AnyTensor partition_B(const detail::AnyTensor& x, SourceLoc loc) const {
    return part_of(x, mma_.operand_b(), loc);
  }

  // What a product takes for such a part: registers in its shape; of an operand that the atom takes from
  // shared memory, the part itself.
  template <class T>
  Tensor<T> make_fragment_A(const Tensor<T>& part, SourceLoc loc = SourceLoc::current()) const {
    return mma_.atom().a_in_smem() ? part : registers(part, loc);
  }
  template <class T>
  Tensor<T> make_fragment_B(const Tensor<T>& part, SourceLoc loc = SourceLoc::current()) const {
    return mma_.atom().b_in_smem() ? part : registers(part, loc);
  }
  template <class T>
  Tensor<T> make_fragment_C(const Tensor<T>& part, SourceLoc loc = SourceLoc::current()) const {
    return registers(part, loc);
  }
  // The same for a tensor that is not partitioned yet.
  template <detail::TensorLike X>
  auto partition_fragment_A(const X& x, SourceLoc loc = SourceLoc::current()) const {
    return make_fragment_A(partition_A(x, loc), loc);
  }
  template <detail::TensorLike X>
  auto partition_fragment_B(const X& x, SourceLoc loc = SourceLoc::current()) const {
    return make_fragment_B(partition_B(x, loc), loc);
  }
  template <detail::TensorLike X>
  auto partition_fragment_C(const X& x, SourceLoc loc = SourceLoc::current()) const {
    return make_fragment_C(partition_C(x, loc), loc);
  }

 private:
  template <detail::TensorLike X>
  auto part(const X& x, const TiledMma::Operand& operand, SourceLoc loc) const {
    const auto tensor = detail::as_tensor(x, loc);
    using Part = Tensor<typename detail::TensorElement<X>::type>;
    return Part(part_of(tensor.any(), operand, loc));
  }
  template <class T>
  Tensor<T> registers(const Tensor<T>& part, SourceLoc loc) const {
    return Tensor<T>(detail::new_registers(part.any().scalar, make_layout(part.shape()), loc));
  }
  detail::AnyTensor part_of(const detail::AnyTensor& tensor, const TiledMma::Operand& operand,
                            SourceLoc loc) const;

  TiledMma mma_;
  IntTuple thread_;    // its number
  IntTuple vmnk_ = 0;  // and its coordinate
};

// Makes a tiled product of atoms in the order of `atoms`, (m,n,k): {2, 2, 1} is two by two, m first.
// Several atoms along k would each have a part of the same sums: gemm() takes one.
TiledMma make_tiled_mma(const MmaAtom& atom, const Layout& atoms,
                        const Tiler& permutation = {_, _, _}, SourceLoc loc = SourceLoc::current());
inline TiledMma make_tiled_mma(const MmaAtom& atom, const IntTuple& atoms = {1, 1, 1},
                               const Tiler& permutation = {_, _, _},
                               SourceLoc loc = SourceLoc::current()) {
  return make_tiled_mma(atom, make_layout(atoms), permutation, loc);
}

// The shape (values,m,k), (values,n,k) or (values,m,n) of a thread's part of such extents.
IntTuple partition_shape_A(const TiledMma& mma, const IntTuple& mk,
                           SourceLoc loc = SourceLoc::current());
IntTuple partition_shape_B(const TiledMma& mma, const IntTuple& nk,
                           SourceLoc loc = SourceLoc::current());
IntTuple partition_shape_C(const TiledMma& mma, const IntTuple& mn,
                           SourceLoc loc = SourceLoc::current());

// The layout in shared memory of an operand's tiles, (m,k,stages…) or (n,k,stages…), for elements of the
// atom's types, as make_smem_layout() makes it: with the widest swizzle that the atom can read.
Layout make_smem_layout_A(const TiledMma& mma, const IntTuple& shape, Major major = Major::k,
                          SourceLoc loc = SourceLoc::current());
Layout make_smem_layout_B(const TiledMma& mma, const IntTuple& shape, Major major = Major::k,
                          SourceLoc loc = SourceLoc::current());

// Tiled copies that load (or store) the registers of an operand. partition_S() cuts the tile in memory,
// and retile() takes the product's fragment as the copy does:
//
//   const TiledCopy load = make_tiled_copy_A(make_copy_atom<half>(LdMatrix{4}), mma);
//   const ThrCopy loads = load.get_slice(thread_idx.x);
//   copy(load, loads.partition_S(a_tile), loads.retile(a_fragment));
TiledCopy make_tiled_copy_A(const CopyAtom& atom, const TiledMma& mma,
                            SourceLoc loc = SourceLoc::current());
TiledCopy make_tiled_copy_B(const CopyAtom& atom, const TiledMma& mma,
                            SourceLoc loc = SourceLoc::current());
TiledCopy make_tiled_copy_C(const CopyAtom& atom, const TiledMma& mma,
                            SourceLoc loc = SourceLoc::current());

}  // namespace heddle
