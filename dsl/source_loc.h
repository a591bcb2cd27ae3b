// A line of the user's source, captured by default arguments.
//
// std::source_location does not compile with clang 14 and libstdc++ 12; the builtins behind it do.
#pragma once

namespace heddle {

struct SourceLoc {
  const char* file = nullptr;  // nullptr: unknown
  int line = 0;

  static constexpr SourceLoc current(const char* file = __builtin_FILE(),
                                     int line = __builtin_LINE()) {
    return {file, line};
  }
};

}  // namespace heddle
