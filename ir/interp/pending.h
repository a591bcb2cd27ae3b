// Asynchronous work that is not done yet, and when it is. Internal.
//
//   Pending pending(completion, warps);
//   const Ticket copy = pending.add([=] { std::memcpy(to, from, bytes); });   // early: done here
//   pending.tick();             // time passes
//   pending.finish(copy);       // a wait: it has to be done now
//   if (!pending.advance()) …   // nobody can go on, and nothing is left to be done
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "heddle/ir/interp/interpreter.h"

namespace heddle::ir::interp {

class Pending {
 public:
  using Ticket = uint64_t;
  static constexpr Ticket kDone = 0;

  // `pace`: how many warps run in turn, which is how often tick() is called in one round.
  Pending(const Completion& completion, uint64_t pace);

  // Work that may wait from here on.
  Ticket add(std::function<void()> work);
  // Does that work now, unless it is done.
  void finish(Ticket ticket);
  // Does what is due.
  void tick();
  // Does the next piece of work before its time; false where there is none.
  bool advance();

 private:
  struct Job {
    uint64_t due = 0;
    std::function<void()> work;
  };
  uint64_t random();

  const Completion completion_;
  const uint64_t pace_;
  uint64_t state_;
  uint64_t now_ = 0;
  Ticket last_ = kDone;
  std::map<Ticket, Job> jobs_;
  std::set<std::pair<uint64_t, Ticket>> by_time_;  // when each is due
};

}  // namespace heddle::ir::interp
