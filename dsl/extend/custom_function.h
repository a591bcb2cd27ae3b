// An operation that Heddle lacks, as a function of kernels.
//
//   const CustomFunction<int32_t(uint32_t, uint32_t, int32_t)> dot4(
//       {.row = ir::op_row("acme.dot4", "a:u32 b:u32 c:i32 -> i32", ir::kPure),
//        .summary = "c and the products of four signed bytes of a and b, added up",
//        .ptx = {{"dp4a.s32.s32 %0, %1, %2, %3;"}}},
//       [](uint32_t a, uint32_t b, int32_t c) { return …; });
//   …
//   Int sum = dot4(x, y, 0);
//
// ir/custom_op.h says what there is to say of an op. Names are the process's: a second op of one name, of a plug-in too, is
// refused.
// This header is not part of heddle/heddle.h.
#pragma once

#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "heddle/dsl/cuda/inline_ptx.h"
#include "heddle/dsl/vec.h"
#include "heddle/ir/custom_op.h"

namespace heddle {
namespace detail {

// A rule of host types as one of bits.
template <class R, class... A>
ir::PtxRule meaning_of(std::function<R(A...)> meaning) {
  if (!meaning) return nullptr;
  return
      [rule = erase(std::move(meaning))](absl::Span<const uint64_t> in, absl::Span<uint64_t> out) {
        rule(in.data(), out.data());
      };
}

// Records the op, with results of these types. One that was refused is reported, and gives zeros.
void emit_custom(const ir::RegisteredOp& op, absl::Span<const Node> inputs,
                 absl::Span<const NodeType> types, absl::Span<Node> outputs, SourceLoc loc);

}  // namespace detail

template <class Signature>
class CustomFunction;

// Results R, a type, a std::tuple of two or void, from arguments A: by value, as in kernels. The verifier holds them
// against the row.
template <class R, class... A>
class CustomFunction<R(A...)> {
 public:
  // `meaning` is what a thread computes, a host function R(A...); without it, or with the op's own rule, kernels run as
  // that says.
  explicit CustomFunction(ir::CustomOp op, std::function<R(A...)> meaning = nullptr)
      : op_(with(std::move(op), std::move(meaning))) {}

  // Whether the op is there: why not, otherwise.
  const Status& status() const { return op_.status(); }
  const ir::RegisteredOp& op() const { return op_; }

  // Of scalars.
  auto operator()(const detail::Arg<A>&... arguments, SourceLoc loc = SourceLoc::current()) const {
    return call<Value>(loc, arguments.node...);
  }
  // Of vectors, element by element.
  template <int N>
  requires(sizeof...(A) > 0) auto operator()(const Vec<A, N>&... arguments,
                                             SourceLoc loc = SourceLoc::current()) const {
    return call<VecsOf<N>::template Of>(loc, arguments.node()...);
  }

 private:
  static ir::CustomOp with(ir::CustomOp op, std::function<R(A...)> meaning) {
    if (meaning) op.meaning = detail::meaning_of(std::move(meaning));
    return op;
  }

  template <int N>
  struct VecsOf {
    template <class T>
    using Of = Vec<T, N>;
  };

  // Held<T> is the type of a result whose element is a T.
  template <template <class> class Held, class... Nodes>
  auto call(SourceLoc loc, const Nodes&... nodes) const {
    const detail::Node inputs[] = {nodes..., detail::Node{}};
    const auto record = [&]<class... T>(std::type_identity<std::tuple<T...>>) {
      const detail::NodeType types[] = {Held<T>::blank().type..., detail::NodeType{}};
      detail::Node outputs[sizeof...(T) + 1];
      detail::emit_custom(op_, {inputs, sizeof...(A)}, {types, sizeof...(T)},
                          {outputs, sizeof...(T)}, loc);
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return std::tuple(Held<T>(outputs[I])...);
      }
      (std::index_sequence_for<T...>());
    };
    if constexpr (std::is_void_v<R>) {
      record(std::type_identity<std::tuple<>>());
    } else if constexpr (detail::is_scalar<R>) {
      return std::get<0>(record(std::type_identity<std::tuple<R>>()));
    } else {
      return record(std::type_identity<R>());
    }
  }

  ir::RegisteredOp op_;
};

}  // namespace heddle
