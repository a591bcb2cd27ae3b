// Products of tiles by any atom: the same lines multiply by wgmma, by mma.sync or by multiply-adds.
//
//   const TiledMma mma = make_tiled_mma(make_mma_atom(Wgmma<half, half, float>{128}), {2, 1, 1});
//   const ThrMma mine = mma.get_slice(thread);
//   const auto none = make_accumulator<float>(mma, {128, 128});
//   const auto sums = For(range(blocks), none, [&](Int k, AccumulatorTile<float> sums) {
//     …                                                   // tiles a(_, _, stage) and b(_, _, stage) are there
//     sums = gemm(mine, a(_, _, stage), b(_, _, stage), sums, k != 0);
//     wait(mma, 1);                                       // the product before is complete: free its stage
//     return sums;
//   });
//   const Tensor<float> c = settle(sums);                 // registers (values,m,n)
//   copy_if(within(mine.partition_C(where), {rows, columns}), c, mine.partition_C(d_tile));
//
// An AccumulatorTile holds a thread's part of the sums. Products of wgmma are *pending*: the tensor cores
// work on them while the threads go on, and each accumulator is used once, by the next product or by
// settle(), or is carried by a loop. Products of other atoms are complete at once; commit() and wait() then
// do nothing.
#pragma once

#include <vector>

#include "heddle/dsl/mma/tiled_mma.h"
#include "heddle/dsl/value.h"

namespace heddle {
namespace detail {

// The sums of a thread: a pending fragment for each atom of a wgmma, (m,n), or one fragment of all.
struct AnyAccumulator {
  std::vector<Node> nodes;
  IntTuple shape;  // (values,m,n)
  ir::Scalar scalar{};
  bool pending = false;
};

AnyAccumulator new_accumulator(const TiledMma& mma, ir::Scalar scalar, const IntTuple& mn,
                               const AnyTensor* registers, SourceLoc loc);
// a and b are partitioned: (values,m,k) and (values,n,k), registers or tiles.
AnyAccumulator multiply(const TiledMma& mma, const AnyTensor& a, const AnyTensor& b,
                        const AnyAccumulator& c, const Node& adds, SourceLoc loc);
// a and b are tiles (m,k) and (n,k) in memory; a may be a thread's registers.
AnyAccumulator multiply_tiles(const ThrMma& mine, const AnyTensor& a, const AnyTensor& b,
                              const AnyAccumulator& c, const Node& adds, SourceLoc loc);
AnyTensor settled(const AnyAccumulator& c, int groups, SourceLoc loc);
void multiply_in_place(const TiledMma& mma, const AnyTensor& a, const AnyTensor& b,
                       const AnyTensor& c, SourceLoc loc);

}  // namespace detail

// A thread's part of a tile of sums, which products add to. A value; loops carry it.
template <class T>
class AccumulatorTile {
 public:
  using element_type = T;

  // For the functions below.
  explicit AccumulatorTile(detail::AnyAccumulator any)
      : any_(static_cast<detail::AnyAccumulator&&>(any)) {}

  // (values,m,n): the values of an atom, and the atoms along both modes.
  const IntTuple& shape() const { return any_.shape; }

  const detail::AnyAccumulator& any() const { return any_; }
  // What loops carry.
  std::vector<detail::Node>& nodes() { return any_.nodes; }
  const std::vector<detail::Node>& nodes() const { return any_.nodes; }

 private:
  detail::AnyAccumulator any_;
};

// An accumulator for a tile of these extents (m,n) without a content, for a first product that adds to
// nothing; or with the content of registers (values,m,n), as partition_fragment_C() makes them.
template <class T>
AccumulatorTile<T> make_accumulator(const TiledMma& mma, const IntTuple& mn,
                                    SourceLoc loc = SourceLoc::current()) {
  return AccumulatorTile<T>(detail::new_accumulator(mma, detail::scalar_of<T>(), mn, nullptr, loc));
}
template <class T>
AccumulatorTile<T> make_accumulator(const TiledMma& mma, const Tensor<T>& registers,
                                    SourceLoc loc = SourceLoc::current()) {
  return AccumulatorTile<T>(
      detail::new_accumulator(mma, detail::scalar_of<T>(), 0, &registers.any(), loc));
}

// c + a * b^T, or a * b^T alone where `adds` is false, which is the same in all threads: of tiles (m,k) and
// (n,k) in memory. Operands that the atom takes from registers are loaded, from shared memory by ldmatrix
// where rows allow it. Of wgmma the products are one group, which is closed.
template <detail::TensorLike A, detail::TensorLike B, class T>
AccumulatorTile<T> gemm(const ThrMma& mine, const A& a, const B& b, const AccumulatorTile<T>& c,
                        const Bool& adds = true, SourceLoc loc = SourceLoc::current()) {
  return AccumulatorTile<T>(detail::multiply_tiles(mine, detail::as_tensor(a, loc).any(),
                                                   detail::as_tensor(b, loc).any(), c.any(),
                                                   adds.node(), loc));
}
// The same of partitioned operands, (values,m,k) and (values,n,k), in registers or, where the atom takes
// them from there, in shared memory. The mode k may be left out. Of wgmma the group stays open; but where
// its a is in registers, products are complete when it returns.
template <detail::TensorLike A, detail::TensorLike B, class T>
AccumulatorTile<T> gemm(const TiledMma& mma, const A& a, const B& b, const AccumulatorTile<T>& c,
                        const Bool& adds = true, SourceLoc loc = SourceLoc::current()) {
  return AccumulatorTile<T>(detail::multiply(mma, detail::as_tensor(a, loc).any(),
                                             detail::as_tensor(b, loc).any(), c.any(), adds.node(),
                                             loc));
}
// c += a * b^T in registers (values,m,n), complete when it returns.
template <detail::TensorLike A, detail::TensorLike B, class T>
void gemm(const TiledMma& mma, const A& a, const B& b, const Tensor<T>& c,
          SourceLoc loc = SourceLoc::current()) {
  detail::multiply_in_place(mma, detail::as_tensor(a, loc).any(), detail::as_tensor(b, loc).any(),
                            c.any(), loc);
}

// Closes the group of the asynchronous products since the last commit, and waits until at most `groups` of
// the latest groups, a host number, are under way.
void commit(const TiledMma& mma, SourceLoc loc = SourceLoc::current());
void wait(const TiledMma& mma, int groups, SourceLoc loc = SourceLoc::current());
// The sums, (values,m,n) in registers, when at most `groups` later groups are under way.
template <class T>
Tensor<T> settle(const AccumulatorTile<T>& c, int groups = 0,
                 SourceLoc loc = SourceLoc::current()) {
  return Tensor<T>(detail::settled(c.any(), groups, loc));
}

}  // namespace heddle
