// A line of the user's source, captured by default arguments.
//
// std::source_location does not compile with clang 14 and libstdc++ 12; the builtins behind it do.
#pragma once

namespace heddle {

// A line of the user's source: file and line.
struct SourceLoc {
  const char* file = nullptr;  // nullptr: unknown
  int line = 0;                // from 1

  // The line of the call, as a default argument: that of the function's caller.
  static constexpr SourceLoc current(const char* file = __builtin_FILE(),
                                     int line = __builtin_LINE()) {
    return {file, line};
  }
};

// For functions made of traced code that kernels call: while it lives, lines of the function's file
// stand for the line that called it, in dumps, in messages and for debuggers.
//
//   Float gelu(const Float& x, SourceLoc loc = SourceLoc::current()) {
//     CallerLines lines(loc);
//     ...
//   }
class CallerLines {
 public:
  // From the caller's line.
  explicit CallerLines(SourceLoc caller, const char* file = __builtin_FILE());
  ~CallerLines();
  CallerLines(const CallerLines&) = delete;
  CallerLines& operator=(const CallerLines&) = delete;

  // The line that `loc` stands for.
  static SourceLoc resolve(SourceLoc loc);

 private:
  const char* file_;
  SourceLoc caller_;
  CallerLines* outer_;
};

}  // namespace heddle
