// Products by Hopper's tensor cores (wgmma): the 128 threads of a warpgroup multiply tiles that lie in
// shared memory, and hold the result in registers. The tensor cores work while the threads go on.
//
//   const Layout rows = composition(Swizzle(3, 3, 3), make_layout({64, 64}, {64, 1}));
//   const auto a = make_smem_tensor<bfloat16>(rows), b = make_smem_tensor<bfloat16>(rows);
//   …                                               // a and b are written, see tensor_map.h
//   auto sum = wgmma_begin<float>(64);              // 64 x 64: 32 elements in each thread
//   sum = wgmma(sum, a, b, false);                  // a * b^T; with false nothing is added to
//   wgmma_commit();
//   const Fragment<float> d = wgmma_wait(sum);
//
// A is 64 x K and B is N x K, with K a multiple of 32 bytes and N one of 8, up to 256. Sums are of
// float; of half for half and 8-bit floats; of int32_t for 8-bit integers (ir/mma_atoms.def has all).
// Layouts are *canonical*, as make_smem_layout() makes them: K-major, and of 16-bit elements MN-major
// too, which the layout says (descriptor.h). Another layout is an error that says what is in the way.
//
// A may also be in registers, as ldmatrix or the sums of another product give it: for each 32 bytes of
// K the 16 bytes that a thread has of its warp's 16 rows.
//
//   const PendingOperand<half> p = wgmma_operand(fragment);
//   sum = wgmma(sum, p, b);
//   wgmma_commit();
//   wgmma_wait(p);                                  // the tensor cores have read it
//
// Element 4 j + 2 h + i of thread t is at row 16 (t / 32) + t % 32 / 4 + 8 h and column
// 8 j + 2 (t % 4) + i.
//
// An Accumulator belongs to the tensor cores from wgmma_begin() to wgmma_wait(): each is used
// once, in the next wgmma or the wait, or carried by a loop. Threads that wrote the tiles call
// fence_async() before the barrier that the warpgroup waits at; what copies brought needs none.
#pragma once

#include <utility>
#include <vector>

#include "heddle/dsl/tensor/tensor.h"
#include "heddle/dsl/vec.h"

namespace heddle {

// A register tile that the tensor cores may still write.
template <class T>
class Accumulator {
 public:
  using element_type = T;

  explicit Accumulator(detail::Node node) : node_(node) {}
  // How many elements a thread has.
  int size() const { return node_.type.count; }

  detail::Node& node() { return node_; }
  const detail::Node& node() const { return node_; }

 private:
  detail::Node node_;
};

// An operand a in registers, which the tensor cores may still read: it has to be waited for.
template <class T>
class PendingOperand {
 public:
  using element_type = T;

  explicit PendingOperand(std::vector<detail::Node> nodes) : nodes_(std::move(nodes)) {}

  // What loops carry: the registers of each instruction along the depth.
  std::vector<detail::Node>& nodes() { return nodes_; }
  const std::vector<detail::Node>& nodes() const { return nodes_; }

 private:
  std::vector<detail::Node> nodes_;
};

namespace detail {

Node emit_wgmma_begin(const Node& fragment, SourceLoc loc);
Node emit_wgmma_begin(ir::Scalar scalar, int columns, SourceLoc loc);
struct WgmmaModifiers;
Node emit_wgmma(const Node& accumulator, const AnyTensor& a, const AnyTensor& b,
                const WgmmaModifiers& modifiers, SourceLoc loc);
Node emit_wgmma(const Node& accumulator, const std::vector<Node>& a, const AnyTensor& b,
                const WgmmaModifiers& modifiers, SourceLoc loc);
std::vector<Node> emit_wgmma_operand(const Node& fragment, SourceLoc loc);
Node emit_wgmma_wait(const std::vector<Node>& operand, int groups, SourceLoc loc);
Node emit_wgmma_wait(const Node& accumulator, int groups, SourceLoc loc);

}  // namespace detail

// Hands a fragment to the tensor cores: what products are added to.
template <class T>
Accumulator<T> wgmma_begin(const Fragment<T>& fragment, SourceLoc loc = SourceLoc::current()) {
  return Accumulator<T>(detail::emit_wgmma_begin(fragment.node(), loc));
}
// An accumulator of 64 x `columns` without a content, for a first product that adds to nothing.
template <class T>
Accumulator<T> wgmma_begin(int columns, SourceLoc loc = SourceLoc::current()) {
  return Accumulator<T>(detail::emit_wgmma_begin(detail::scalar_of<T>(), columns, loc));
}
// Tiles of floats that count negated. Of a in registers it is an error: negate the fragment.
struct Negated {
  bool a = false;  // -a
  bool b = false;  // -b
};

namespace detail {

// Whether the first product adds to the accumulator, and what is negated.
struct WgmmaModifiers {
  const Node& adds;
  Negated negated;
};

}  // namespace detail

// Hands a fragment to the tensor cores as an operand a, which any number of products read.
template <class T>
PendingOperand<T> wgmma_operand(const Fragment<T>& fragment, SourceLoc loc = SourceLoc::current()) {
  return PendingOperand<T>(detail::emit_wgmma_operand(fragment.node(), loc));
}

// accumulator + a * b^T, or a * b^T alone where `adds` is false, which is the same in all threads of
// the warpgroup. Asynchronous: the tiles may change again once a wait has settled it.
template <class T, detail::TensorLike A, detail::TensorLike B>
Accumulator<T> wgmma(const Accumulator<T>& accumulator, const A& a, const B& b,
                     const Bool& adds = true, const Negated& negated = {},
                     SourceLoc loc = SourceLoc::current()) {
  return Accumulator<T>(detail::emit_wgmma(accumulator.node(), detail::as_tensor(a, loc).any(),
                                           detail::as_tensor(b, loc).any(), {adds.node(), negated},
                                           loc));
}
template <class T, class X, detail::TensorLike B>
Accumulator<T> wgmma(const Accumulator<T>& accumulator, const PendingOperand<X>& a, const B& b,
                     const Bool& adds = true, const Negated& negated = {},
                     SourceLoc loc = SourceLoc::current()) {
  return Accumulator<T>(detail::emit_wgmma(
      accumulator.node(), a.nodes(), detail::as_tensor(b, loc).any(), {adds.node(), negated}, loc));
}
// Closes the group of the products since the last commit.
inline void wgmma_commit(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kWgmmaCommit, loc);
}
// Waits until at most `groups` of the warpgroup's latest groups, a host number, are under way, the
// accumulator's, or those that read the operand, not among them: its elements. wgmma_wait_groups()
// waits without settling one.
template <class T>
Fragment<T> wgmma_wait(const Accumulator<T>& accumulator, int groups = 0,
                       SourceLoc loc = SourceLoc::current()) {
  return Fragment<T>(detail::emit_wgmma_wait(accumulator.node(), groups, loc));
}
template <class T>
Fragment<T> wgmma_wait(const PendingOperand<T>& operand, int groups = 0,
                       SourceLoc loc = SourceLoc::current()) {
  return Fragment<T>(detail::emit_wgmma_wait(operand.nodes(), groups, loc));
}
void wgmma_wait_groups(int groups, SourceLoc loc = SourceLoc::current());

}  // namespace heddle
