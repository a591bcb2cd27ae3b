#include "fuzz/generator_exits.h"

#include <algorithm>
#include <utility>

namespace heddle::fuzz {

using ir::OpId;

ValueId ExitGenerator::new_flag() {
  return b_.create(Opcode::kVar, {b_.constant(ir::kBoolType, 0)});
}

void ExitGenerator::set(ValueId flag) {
  b_.create(Opcode::kVarStore, {flag, b_.constant(ir::kBoolType, 1)});
  note_set(flag);
}

void ExitGenerator::note_set(ValueId flag) {
  if (std::find(may_be_set_.begin(), may_be_set_.end(), flag) == may_be_set_.end()) {
    may_be_set_.push_back(flag);
  }
}

ValueId ExitGenerator::none_of(const std::vector<ValueId>& flags) {
  ValueId any = ValueId::kNone;
  for (const ValueId flag : flags) {
    const ValueId is_set = b_.create(Opcode::kVarLoad, {flag});
    any = valid(any) ? b_.create(Opcode::kOr, {any, is_set}) : is_set;
  }
  return b_.create(Opcode::kNot, {any});
}

template <class Body>
void ExitGenerator::when(ValueId condition, Body body) {
  b_.begin_if(condition);
  inside(Scope::kThread, [&] {
    body();
    b_.yield({});
  });
  b_.next_region();
  b_.yield({});
  b_.end_region();
}

void ExitGenerator::statements(size_t count) {
  const std::vector<ValueId> earlier = std::exchange(may_be_set_, {});
  for (; count > 0 && may_be_set_.empty(); --count) statement();
  if (count > 0) when(none_of(may_be_set_), [&] { statements(count); });
  for (const ValueId flag : earlier) note_set(flag);
}

void ExitGenerator::program(size_t count, bool returns) {
  if (returns) flags_ = {new_flag()};
  statements(count);
  flags_.clear();
}

void ExitGenerator::leave() {
  const ValueId flag = flags_[below(flags_.size())];
  if (chance(10)) return set(flag);
  const ValueId asked = chance(70) ? condition() : any(ir::kBoolType);
  when(asked, [&] {
    for (size_t i = below(3); i > 0; --i) chance(50) ? memory() : arithmetic();
    set(flag);
  });
}

void ExitGenerator::exit_loop() {
  constexpr int64_t kTrips = 6;
  if (trips_ * kTrips > kMaxTrips) return;
  const ValueId broken = new_flag();
  std::vector<ValueId> leaving = flags_;
  leaving.push_back(broken);
  std::vector<ValueId> init = carried();
  init.push_back(number(ir::kI32Type, 0));
  const OpId loop = b_.begin_while(init);
  trips_ *= kTrips;
  inside(Scope::kThread, [&] {
    const ValueId count = kernel_.region(b_.region()).args.back();
    const ValueId most = number(ir::kI32Type, static_cast<int64_t>(below(kTrips) + 1));
    if (chance(60)) {
      const ValueId more = b_.create(Opcode::kLt, {count, most});
      return b_.yield({b_.create(Opcode::kAnd, {more, none_of(leaving)})});
    }
    // A condition that is not even computed once the loop is left.
    const OpId asked = b_.begin_if(none_of(leaving), {ir::kBoolType});
    inside(Scope::kThread, [&] {
      const ValueId more = b_.create(Opcode::kLt, {count, most});
      b_.yield({chance(50) ? more : b_.create(Opcode::kAnd, {more, condition()})});
    });
    b_.next_region();
    b_.yield({b_.constant(ir::kBoolType, 0)});
    b_.end_region();
    b_.yield({kernel_.op(asked).results[0]});
  });
  b_.next_region();
  const std::vector<ValueId> outer = flags_;
  inside(Scope::kThread, [&] {
    const ValueId count = kernel_.region(b_.region()).args.back();
    const ValueId skipped = new_flag();
    flags_.push_back(broken);
    flags_.push_back(skipped);
    statements(2 + below(6));
    std::vector<ValueId> next = like(init);
    next.back() = b_.create(Opcode::kAdd, {count, number(ir::kI32Type, 1)});
    b_.yield(next);
    std::erase(may_be_set_, broken);
    std::erase(may_be_set_, skipped);
  });
  flags_ = outer;
  trips_ /= kTrips;
  b_.end_region();
  keep_results(loop);
}

}  // namespace heddle::fuzz
