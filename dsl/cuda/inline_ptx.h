// Inline PTX, for instructions that the language has no function for.
//
//   UInt r = inline_ptx<uint32_t>("lop3.b32 %0, %1, %2, %3, 0x96;", a, b, c);
//   UInt s = inline_ptx<uint32_t>({"bfind.u32 %0, %1;", [](uint32_t x) { return top_bit(x); }}, a);
//   auto [lo, hi] = inline_ptx<uint32_t, uint32_t>("mov.b64 {%0, %1}, %2;", x);
//   inline_ptx(PtxText("griddepcontrol.wait;").has_effects());
//
// %0, %1, … are the outputs and then the inputs, by type: 32-bit values are .b32 registers, 64-bit
// ones .b64, 16-bit ones .b16, 8-bit ones the low byte of a .b32, a bool a predicate. %#4 is the
// number of an input that the host knows, for instructions that want one. %% is a percent sign, as in
// %%clock. The text has a scope of its own, so that it may declare registers. A wrong instruction is
// reported by ptxas at this line.
//
// An interpreter has no assembler: it runs the rule, a host function of the inputs that returns the
// output (a std::tuple of several), and stops at a line that has none.
#pragma once

#include <functional>

#include "heddle/dsl/value.h"

namespace heddle {
namespace detail {

using ErasedRule = std::function<void(const uint64_t* inputs, uint64_t* outputs)>;

template <class T>
T from_bits(uint64_t bits) {
  if constexpr (is_half_like<T> || is_stored_float<T>) {
    return T::from_bits(static_cast<decltype(T::bits)>(bits));
  } else if constexpr (std::is_same_v<T, float>) {
    return __builtin_bit_cast(float, static_cast<uint32_t>(bits));
  } else if constexpr (std::is_same_v<T, double>) {
    return __builtin_bit_cast(double, bits);
  } else {
    return static_cast<T>(bits);
  }
}

template <class R, class... A>
ErasedRule erase(std::function<R(A...)> rule) {
  return [rule = std::move(rule)](const uint64_t* inputs, uint64_t* outputs) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      const auto store = [&](auto value, std::size_t at) { outputs[at] = bits_of(value); };
      if constexpr (std::is_void_v<R>) {
        rule(from_bits<A>(inputs[I])...);
      } else if constexpr (is_scalar<R>) {
        store(rule(from_bits<A>(inputs[I])...), 0);
      } else {
        std::apply(
            [&](auto... values) {
              std::size_t at = 0;
              (store(values, at++), ...);
            },
            rule(from_bits<A>(inputs[I])...));
      }
    }
    (std::index_sequence_for<A...>());
  };
}

// One output and no effects give a value that passes may move and merge.
void emit_inline_ptx(const char* text, bool has_effects, ErasedRule rule, const Node* inputs,
                     int input_count, const NodeType* types, Node* outputs, int output_count,
                     SourceLoc loc);

}  // namespace detail

// A piece of PTX: the instructions, whether they have side effects, and a rule for the interpreter.
class PtxText {
 public:
  // The instructions alone; the interpreter stops at them.
  PtxText(const char* text, SourceLoc loc = SourceLoc::current()) : text_(text), loc_(loc) {}
  // With a rule for the interpreter: a host function of the inputs that returns the output, or a
  // std::tuple of several.
  template <class Rule>
  PtxText(const char* text, Rule rule, SourceLoc loc = SourceLoc::current())
      : text_(text), rule_(detail::erase(std::function(std::move(rule)))), loc_(loc) {}

  // With side effects: it reads or writes memory, or does something else besides computing its
  // output. It is then never removed, merged or moved past an access. Text with no output, or with
  // several, always counts as such.
  PtxText has_effects() const {
    PtxText text = *this;
    text.has_effects_ = true;
    return text;
  }

  // What it was made of.
  const char* text() const { return text_; }
  bool effects() const { return has_effects_; }
  const detail::ErasedRule& rule() const { return rule_; }
  SourceLoc loc() const { return loc_; }

 private:
  const char* text_;
  detail::ErasedRule rule_;
  bool has_effects_ = false;
  SourceLoc loc_;
};

// Inserts PTX instructions. `Out` are the output types; gives nothing, the output, or a std::tuple
// of several. The comment at the top of this file explains %0 and %1.
template <class... Out, detail::Readable... X>
auto inline_ptx(const PtxText& ptx, const X&... inputs) {
  const detail::Node in[] = {inputs.read_node(ptx.loc())..., detail::Node{}};
  const detail::NodeType types[] = {detail::scalar_type<Out>()..., detail::NodeType{}};
  detail::Node out[sizeof...(Out) + 1];
  detail::emit_inline_ptx(ptx.text(), ptx.effects(), ptx.rule(), in, sizeof...(X), types, out,
                          sizeof...(Out), ptx.loc());
  if constexpr (sizeof...(Out) == 1) {
    return (Value<Out>(out[0]), ...);
  } else if constexpr (sizeof...(Out) > 1) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple<Value<Out>...>(Value<Out>(out[I])...);
    }
    (std::index_sequence_for<Out...>());
  }
}

}  // namespace heddle
