#include "heddle/runtime/launch_memo.h"

#include <memory>

namespace heddle::runtime {
namespace {

// The thread's memo: a plain pointer, which every launch reads, and its owner. Objects of the thread that end after the owner may
// still launch, so its destructor clears the pointer and no other memo is made.
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
