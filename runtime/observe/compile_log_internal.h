// What the log (log.h) says of compilations.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/compile.h"

namespace heddle::runtime {

// Of one that has succeeded: a line with its times and what the code takes; warnings; where the code came from.
void log_compilation(const Compilation& compilation);
// Of one that has not. `kernel` is "kernel 'row_sum' (row_sum.cc:14)".
void log_failed_compilation(absl::string_view kernel, const Status& why);

// A launch that had to wait until there was a variant of its kernel for it.
struct VariantWait {
  std::string kernel;      // "kernel 'row_sum' (row_sum.cc:14)"
  std::string device;      // "cuda:0"
  int variant = 1;         // its number, from 1 on
  std::string reason;      // "it is the kernel's first"
  double compile_us = -1;  // negative: one that another device has was taken
  double load_us = 0;
  double wait_us = 0;  // all of it
};
void log_wait(const VariantWait& wait);
// And one that waited while another thread made it.
void log_wait_for_thread(absl::string_view kernel, absl::string_view device, double wait_us);

}  // namespace heddle::runtime
