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
  absl::InlinedVector<ir::Attr, 2> attrs = {{ir::AttrKey::kMessage, text_attr(text)}};
  if (rule) {
    attrs.push_back({ir::AttrKey::kRule, trace->kernel().add_rule(
                                             [rule = std::move(rule)](absl::Span<const uint64_t> in,
                                                                      absl::Span<uint64_t> out) {
                                               rule(in.data(), out.data());
                                             })});
  }
  // A special register, %%laneid or %%clock, is another one in each thread and at each time.
  const bool is_pure = output_count == 1 && !has_effects && !absl::StrContains(text, "%%");
  trace->record(is_pure ? ir::Opcode::kInlinePtx : ir::Opcode::kInlinePtxVolatile,
                absl::MakeConstSpan(inputs, static_cast<size_t>(input_count)),
                absl::MakeConstSpan(types, static_cast<size_t>(output_count)), attrs, outputs, loc);
}

}  // namespace heddle::detail
