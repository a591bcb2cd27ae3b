// When a fuzzed program crashes or hangs: a line on stderr that says at which seed.
#pragma once

#include <cstdint>

namespace heddle::fuzz {

// Handles fatal signals from here on, in the name of the program.
void watch_for_signals(const char* program);
// Work on this seed begins; it may take so many seconds. 0: it has ended.
void begin_seed(uint64_t seed, unsigned seconds);

}  // namespace heddle::fuzz
