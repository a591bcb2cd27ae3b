#include "heddle/ir/check.h"

#include <cstdio>
#include <cstdlib>

namespace heddle {

void check_failed(const char* file, int line, const char* condition, absl::string_view message) {
  std::fprintf(stderr,
               "%s:%d: heddle bug: %.*s (%s is false). Please report it with the kernel's IR "
               "(HEDDLE_DUMP=trace,ir).\n",
               file, line, static_cast<int>(message.size()), message.data(), condition);
  std::abort();
}

}  // namespace heddle
