#include <pthread.h>

#include <algorithm>
#include <cstdint>

#include "heddle/dsl/trace/stack_guard_internal.h"

namespace heddle::detail {
namespace {

constexpr std::size_t kReserve = std::size_t{512} << 10;

// The address below which little is left; 0 where nobody knows.
std::uintptr_t find_limit() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* lowest = nullptr;
  std::size_t size = 0;
  const bool known = pthread_attr_getstack(&attributes, &lowest, &size) == 0;
  pthread_attr_destroy(&attributes);
  if (!known) return 0;
  return reinterpret_cast<std::uintptr_t>(lowest) + std::min(size / 4, kReserve);
}

}  // namespace

bool stack_is_low() {
  // Asking for it reads a file of the system's: once a thread.
  static thread_local const std::uintptr_t limit = find_limit();
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) < limit;
}

}  // namespace heddle::detail
