// Time between steps, in microseconds.
#pragma once

#include <chrono>

namespace heddle::runtime {

class Stopwatch {
 public:
  // Since the last call, or since it was made.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double us = std::chrono::duration<double, std::micro>(now - last_).count();
    last_ = now;
    return us;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace heddle::runtime
