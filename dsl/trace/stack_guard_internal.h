// Whether this thread is about to run out of stack. Not for users.
#pragma once

namespace heddle::detail {

// True from where less than a quarter of the thread's stack is left, or 512 KiB.
bool stack_is_low();

}  // namespace heddle::detail
