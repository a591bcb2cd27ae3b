#include "heddle/dsl/cuda/inline_ptx.h"

#include "absl/strings/match.h"
#include "heddle/dsl/trace/trace_internal.h"

namespace heddle::detail {

void emit_inline_ptx(const char* text, bool has_effects, ErasedRule rule, const Node* inputs,
                     int input_count, const NodeType* types, Node* outputs, int output_count,
                     SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) {
    for (int i = 0; i < output_count; ++i) outputs[i] = made_outside(types[i], "inline_ptx", loc);
    if (output_count == 0) report(loc, "inline PTX outside a kernel", "write it in the lambda");
    return;
  }
  trace->set_place(loc);
  absl::InlinedVector<ir::Attr, 2> attrs = {{ir::AttrKey::kMessage, text_attr(text)}};
  if (rule) {
    attrs.push_back({ir::AttrKey::kRule, trace->kernel().add_rule(
                                             [rule = std::move(rule)](absl::Span<const uint64_t> in,
                                                                      absl::Span<uint64_t> out) {
                                               rule(in.data(), out.data());
                                             })});
  }
  absl::InlinedVector<ir::Type, 2> results;
  for (int i = 0; i < output_count; ++i) results.push_back(to_type(types[i]));
  // A special register, %%laneid or %%clock, is another one in each thread and at each time.
  const bool is_pure = output_count == 1 && !has_effects && !absl::StrContains(text, "%%");
  const ir::OpId op = trace->builder().create_op(
      is_pure ? ir::Opcode::kInlinePtx : ir::Opcode::kInlinePtxVolatile,
      trace->use(absl::MakeConstSpan(inputs, static_cast<size_t>(input_count)), loc), results,
      attrs);
  for (size_t i = 0; i < results.size(); ++i) {
    outputs[i] = trace->node(trace->kernel().op(op).results[i]);
  }
}

}  // namespace heddle::detail
