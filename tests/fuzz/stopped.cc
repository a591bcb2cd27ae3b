#include "fuzz/stopped.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>

namespace heddle::fuzz {
namespace {

const char* program_name = "";
std::atomic<uint64_t> current{0};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

void say(const char* text, size_t size) {
  if (write(STDERR_FILENO, text, size) < 0) _exit(4);
}

// Only what a handler may call.
void on_signal(int signal) {
  char digits[20];
  size_t first = sizeof(digits);
  uint64_t seed = current;
  do {
    digits[--first] = static_cast<char>('0' + seed % 10);
    seed /= 10;
  } while (seed != 0);
  constexpr char kSlow[] = ": too slow at --seed ";
  constexpr char kFatal[] = ": stopped by a signal at --seed ";
  say(program_name, std::strlen(program_name));
  if (signal == SIGALRM) {
    say(kSlow, sizeof(kSlow) - 1);
  } else {
    say(kFatal, sizeof(kFatal) - 1);
  }
  say(digits + first, sizeof(digits) - first);
  say("\n", 1);
  _exit(3);
}

}  // namespace

void watch_for_signals(const char* program) {
  program_name = program;
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL, SIGALRM}) {
    std::signal(signal, on_signal);
  }
}

void begin_seed(uint64_t seed, unsigned seconds) {
  current = seed;
  alarm(seconds);
}

}  // namespace heddle::fuzz
