// Debugging a running kernel: printing, clocks, and a trap.
//
//   device_printf("row %d: %f\\n", row, total);     // on the host's standard output
//   Int64 begin = clock64();
//   If(found < 0, [&] { device_trap(); });
//   device_assert(n > 0, "there is something to do");
#pragma once

#include "heddle/dsl/value.h"

namespace heddle {
namespace detail {

// The format and the place of a device_printf.
struct Format {
  const char* text;
  SourceLoc loc;
  Format(const char* format, SourceLoc where = SourceLoc::current()) : text(format), loc(where) {}
};

void emit_assert(Node condition, const char* message, SourceLoc loc);
void emit_printf(const Format& format, const Node* values, int count);

// A value as printf takes it: floats as doubles, small integers and bools as an int32_t.
template <class X>
Node printed(const X& x, SourceLoc loc) {
  using T = typename X::value_type;
  if constexpr (is_floating<T> || is_stored_float<T>) {
    if constexpr (std::is_same_v<T, double>) return x.read_node(loc);
    return emit_as(scalar_type<double>(), op::kConvert, x.read_node(loc), loc);
  } else if constexpr (is_word<T>) {
    return x.read_node(loc);
  } else {
    return emit_as(scalar_type<int32_t>(), op::kConvert, x.read_node(loc), loc);
  }
}

}  // namespace detail

// An assertion: where the condition does not hold, the kernel stops with an error that has
// `message` and the thread's coordinates.
inline void device_assert(detail::Arg<bool> condition, const char* message = "assertion failed") {
  detail::emit_assert(condition.node, message, condition.loc);
}

// Prints from the kernel, by C's format: d i u x X o c for integers, with l or ll for those of 64
// bits, f e g a for floats. A thread's text stays together; nothing orders that of different
// threads. On a GPU it appears when the stream is synchronised.
template <detail::Readable... X>
void device_printf(const detail::Format& format, const X&... values) {
  const detail::Node nodes[] = {detail::printed(values, format.loc)..., detail::Node{}};
  detail::emit_printf(format, nodes, sizeof...(X));
}

// Ends the kernel with an error.
inline void device_trap(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kTrap, loc);
}

// Clocks, for differences: cycles of the multiprocessor (clock64), and nanoseconds of a clock that
// the whole GPU shares (global_timer).
inline Int64 clock64(SourceLoc loc = SourceLoc::current()) {
  return Int64(detail::emit(detail::op::kClock, loc));
}
inline Int64 global_timer(SourceLoc loc = SourceLoc::current()) {
  return Int64(detail::emit(detail::op::kGlobalTimer, loc));
}

// Suspends the thread for about `nanoseconds`, at most twice that, for loops that wait.
inline void nanosleep(detail::Arg<uint32_t> nanoseconds) {
  detail::emit(detail::op::kNanoSleep, nanoseconds.node, nanoseconds.loc);
}

}  // namespace heddle
