// Passes that are written in the language: an op becomes what a function of kernels computes from its operands.
//
//   StatusOr<bool> run(ir::PassContext& context) {
//     return replace_ops(context, sum.opcode(), [](const Float& partial) -> Float {
//       return block_reduce(partial, plus{});
//     });
//   }
//
// Such a pass stands in front of promote-vars (Pass::before), which turns the function's variables into values. This
// header is not part of heddle/heddle.h.
#pragma once

#include <functional>
#include <type_traits>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "heddle/dsl/traced.h"
#include "heddle/ir/passes/pass.h"

namespace heddle {
namespace detail {

// Records `body` in front of each op, and puts its outcome in the place of the op's result.
StatusOr<bool> replace_ops(ir::PassContext& context, ir::Opcode opcode,
                           absl::Span<const NodeType> inputs, NodeType output,
                           absl::FunctionRef<Node(const Node* inputs)> body);

template <class R, class... A>
StatusOr<bool> replace_ops(ir::PassContext& context, ir::Opcode opcode,
                           const std::function<R(A...)>& function) {
  const NodeType inputs[] = {std::decay_t<A>::blank().type..., NodeType{}};
  return replace_ops(context, opcode, {inputs, sizeof...(A)}, R::blank().type,
                     [&](const Node* nodes) {
                       return [&]<std::size_t... I>(std::index_sequence<I...>) {
                         return R(function(std::decay_t<A>(nodes[I])...)).node();
                       }
                       (std::index_sequence_for<A...>());
                     });
}

}  // namespace detail

// Replaces the ops of that opcode whose operands and result have the function's types, and says whether there were any:
// R(A...), of Values or Vecs. InvalidArgument: what is wrong with what the function records.
template <class Function>
StatusOr<bool> replace_ops(ir::PassContext& context, ir::Opcode opcode, Function function) {
  return detail::replace_ops(context, opcode, std::function(std::move(function)));
}

}  // namespace heddle
