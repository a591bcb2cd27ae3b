#include "heddle/runtime/launch_memo.h"

#include <memory>

namespace heddle::runtime {
namespace {

// What other threads' memos must not be asked for, and what ends with its thread: a plain pointer, which launches read, and its owner,
// whose destructor makes the pointer null for launches of other objects that end after it.
thread_local LaunchMemo* of_this_thread = nullptr;
thread_local bool ended = false;

struct Owner {
  std::unique_ptr<LaunchMemo> memo = std::make_unique<LaunchMemo>();
  ~Owner() {
    of_this_thread = nullptr;
    ended = true;
  }
};

}  // namespace

LaunchMemo* LaunchMemo::of_thread() {
  if (of_this_thread == nullptr && !ended) {
    thread_local const Owner owner;
    of_this_thread = owner.memo.get();
  }
  return of_this_thread;
}

}  // namespace heddle::runtime
