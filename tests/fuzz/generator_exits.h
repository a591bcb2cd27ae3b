// The part of the generator that leaves loops and the program early, as the language records Break, Continue and
// Return: each sets a flag, and what would still run behind it stands under the condition that none is set.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "fuzz/generator_rows.h"

namespace heddle::fuzz {

class ExitGenerator : public RowGenerator {
 protected:
  using RowGenerator::RowGenerator;
  ~ExitGenerator() = default;

  virtual void statement() = 0;

  // So many statements; those behind one that may have left under the condition that it has not.
  void statements(size_t count);
  // The whole program, which threads may leave.
  void program(size_t count, bool returns);
  // Runs `body`, whose statements may not leave.
  template <class Body>
  void without_exits(Body body) {
    const std::vector<ValueId> flags = std::exchange(flags_, {});
    body();
    flags_ = flags;
  }

  bool may_leave() const { return !flags_.empty(); }
  // Leaves by one of the flags, mostly under a condition.
  void leave();
  // A loop with Break and Continue, which the exits of what is around it end too.
  void exit_loop();

 private:
  ValueId new_flag();
  void set(ValueId flag);
  void note_set(ValueId flag);
  ValueId none_of(const std::vector<ValueId>& flags);
  // Opens an `if` without an else.
  template <class Body>
  void when(ValueId condition, Body body);

  std::vector<ValueId> flags_;       // by which a statement may leave
  std::vector<ValueId> may_be_set_;  // by the statements of the region so far
};

}  // namespace heddle::fuzz
