// Control flow by masks, and what ends or suspends a warp.
#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/interpreter.h"
#include "heddle/ir/interp/report.h"
#include "heddle/ir/interp/scalar/elementwise.h"
#include "heddle/ir/interp/watch.h"

namespace heddle::ir::interp {
namespace {

const Instr* go_to(const Warp& warp, uint32_t target) { return warp.code + target; }

// --- if: frame.entry is who came, frame.otherwise who takes the else branch ---

const Instr* run_if(const Instr* instr, Warp& warp) {
  Frame& frame = warp.frames[instr->count];
  const Mask taken = warp.mask & mask_of(warp.reg<Bool>(instr->a));
  frame.entry = warp.mask;
  frame.otherwise = warp.mask & ~taken;
  if (taken == 0) {
    // The else branch starts with everybody; where there is none, its start is what follows.
    return go_to(warp, instr->aux);
  }
  warp.mask = taken;
  return instr + 1;
}

const Instr* run_else(const Instr* instr, Warp& warp) {
  const Frame& frame = warp.frames[instr->count];
  if (frame.otherwise == 0) return go_to(warp, instr->aux);
  warp.mask = frame.otherwise;
  return instr + 1;
}

const Instr* run_end_if(const Instr* instr, Warp& warp) {
  warp.mask = warp.frames[instr->count].entry;
  return instr + 1;
}

// --- for: each lane's trips are counted before the first one ---

template <class T>
uint64_t trips_of(T start, T stop, T step, int direction) {
  // Differences of two's-complement numbers are right modulo 2^n, and none here exceeds that.
  using U = Unsigned<T>;
  if (direction > 0) {
    if (start >= stop || step <= 0) return 0;
    return uint64_t{(static_cast<U>(stop) - static_cast<U>(start) - 1) / static_cast<U>(step)} + 1;
  }
  if (start <= stop || step >= 0) return 0;
  const U down = U{0} - static_cast<U>(step);
  return uint64_t{(static_cast<U>(start) - static_cast<U>(stop) - 1) / down} + 1;
}

// Sets the mask to the lanes that make trip `frame.trip` and finds when the next of them leaves.
void select_trip(Frame& frame, const uint64_t* trips, Warp& warp) {
  Mask stay = 0;
  uint64_t next = ~uint64_t{0};
  for_each_lane(warp.mask, [&](int lane) {
    if (trips[lane] <= frame.trip) return;
    stay |= Mask{1} << lane;
    next = std::min(next, trips[lane]);
  });
  warp.mask = stay;
  frame.next = next;
}

template <class T>
const Instr* run_for(const Instr* instr, Warp& warp) {
  const Machine& machine = *warp.block->machine;
  const Loop& loop = machine.code->loops[instr->aux];
  const T* start = warp.reg<T>(instr->a);
  const T* stop = warp.reg<T>(instr->b);
  const T* step = warp.reg<T>(instr->c);
  uint64_t* trips = warp.reg<uint64_t>(loop.trips);
  Mask bad = 0;
  for (int l = 0; l < kLanes; ++l) {
    // Most loops are the same in every lane; a division costs more than these comparisons.
    const bool repeated =
        l > 0 && start[l] == start[l - 1] && stop[l] == stop[l - 1] && step[l] == step[l - 1];
    trips[l] = repeated ? trips[l - 1] : trips_of(start[l], stop[l], step[l], loop.direction);
    const bool forward = loop.direction > 0 ? step[l] > 0 : step[l] < 0;
    bad |= forward ? 0 : Mask{1} << l;
  }
  bad &= warp.mask;
  if (bad != 0 && machine.code->checked &&
      machine.reporter->add(
          warp, instr, bad,
          absl::StrCat("this for loop's step is ", step[std::countr_zero(bad)],
                       ", but a step that is not a constant has to be positive"),
          "make the step positive; to count down, use a negative constant step")) {
    return warp.suspend(WarpState::kStopped, instr);
  }
  Frame& frame = warp.frames[instr->count];
  frame.entry = warp.mask;
  frame.trip = 0;
  select_trip(frame, trips, warp);
  if (warp.mask == 0) {
    warp.mask = frame.entry;
    return go_to(warp, loop.exit);
  }
  std::copy_n(start, kLanes, warp.reg<T>(instr->dst));
  return instr + 1;
}

// "1,048,576"
std::string with_commas(int64_t number) {
  std::string text = absl::StrCat(number);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<size_t>(at), ",");
  }
  return text;
}

// What a loop that does not end waits for, as far as its condition tells.
std::vector<Note> what_it_waits_for(const Loop& loop, const Machine& machine) {
  constexpr size_t kMostReads = 3;
  std::vector<Note> notes;
  if (loop.condition == kNone) return notes;
  const Code& code = *machine.code;
  const auto& reads = code.conditions[loop.condition].reads;
  for (size_t i = 0; i < std::min(reads.size(), kMostReads); ++i) {
    notes.push_back({machine.reporter->place(reads[i].place),
                     absl::StrCat("whether it goes on depends on what is read of '",
                                  code.texts[reads[i].view_name], "' here")});
  }
  return notes;
}

const Instr* out_of_fuel(const Instr* instr, Warp& warp) {
  const Machine& machine = *warp.block->machine;
  const Loop& loop = machine.code->loops[instr->aux];
  const bool is_while = loop.condition != kNone;
  const LoopCondition* const condition =
      is_while ? &machine.code->conditions[loop.condition] : nullptr;
  const bool is_stuck = is_while && !condition->changes;
  const bool waits_for_memory = is_while && !condition->reads.empty();
  const bool others_wait =
      machine.args->grid.count() > machine.code->cluster.count() && !machine.args->cooperative;
  const int more = std::popcount(warp.mask) - 1;
  machine.reporter->exhausted(
      warp, instr,
      absl::StrCat("this ", is_while ? "while" : "for", " loop has not ended after ",
                   with_commas(machine.max_instructions),
                   " instructions of its block: ", thread_name(warp, std::countr_zero(warp.mask)),
                   more > 0 ? absl::StrCat(" and ", more, " more of its warp are") : " is",
                   " still in it",
                   is_stuck ? ", and nothing that its condition depends on changes there" : ""),
      absl::StrCat(
          !is_while          ? "check its range"
          : is_stuck         ? "change in the loop what its condition depends on"
          : waits_for_memory ? "let another thread of the block write what it waits for"
                             : "check that its condition becomes false",
          waits_for_memory && others_wait
              ? ", or make the launch cooperative: other blocks start when this one has ended"
              : "",
          "; where it is only long, raise the limit by Device::set_max_instructions()"),
      what_it_waits_for(loop, machine));
  return warp.suspend(WarpState::kStopped, instr);
}

template <class T>
const Instr* run_for_next(const Instr* instr, Warp& warp) {
  Machine& machine = *warp.block->machine;
  const Loop& loop = machine.code->loops[instr->aux];
  machine.fuel -= loop.length;
  if (machine.fuel < 0) return out_of_fuel(instr, warp);
  Frame& frame = warp.frames[instr->count];
  if (++frame.trip == frame.next) {
    select_trip(frame, warp.reg<uint64_t>(loop.trips), warp);
    if (warp.mask == 0) {
      warp.mask = frame.entry;
      return go_to(warp, loop.exit);
    }
  }
  using U = Unsigned<T>;
  U* __restrict i = warp.reg<U>(instr->dst);
  const U* step = warp.reg<U>(instr->c);
  for (int l = 0; l < kLanes; ++l) i[l] += step[l];
  return go_to(warp, loop.body);
}

// --- while: lanes leave one by one ---

const Instr* run_while(const Instr* instr, Warp& warp) {
  warp.frames[instr->count].entry = warp.mask;
  return instr + 1;
}

const Instr* run_while_test(const Instr* instr, Warp& warp) {
  const Mask stay = warp.mask & mask_of(warp.reg<Bool>(instr->a));
  if (stay == 0) {
    warp.mask = warp.frames[instr->count].entry;
    return go_to(warp, warp.block->machine->code->loops[instr->aux].exit);
  }
  warp.mask = stay;
  return instr + 1;
}

const Instr* run_while_next(const Instr* instr, Warp& warp) {
  Machine& machine = *warp.block->machine;
  const Loop& loop = machine.code->loops[instr->aux];
  machine.fuel -= loop.length;
  if (machine.fuel < 0) return out_of_fuel(instr, warp);
  // The loop may wait for another warp to write: give way.
  const bool has_others = warp.block->warps.size() > 1 || warp.block->cluster->blocks.size() > 1 ||
                          machine.args->cooperative;
  if (has_others) return warp.suspend(WarpState::kReady, go_to(warp, loop.body));
  return go_to(warp, loop.body);
}

const Instr* run_end(const Instr* instr, Warp& warp) {
  return warp.suspend(WarpState::kDone, instr);
}

// --- Barriers and asserts ---

const Instr* run_order(const Instr* instr, Warp& warp) {
  warp.block->machine->races.order(*warp.block);
  return instr + 1;
}

const Instr* run_barrier(const Instr* instr, Warp& warp) {
  if (const Mask missing = warp.exists & ~warp.mask; missing != 0) {
    const Machine& machine = *warp.block->machine;
    const int lane = std::countr_zero(missing);
    machine.reporter->add_fatal(
        *warp.block, instr,
        absl::StrCat("barrier reached by only some threads of a warp: ",
                     thread_name(warp, std::countr_zero(warp.mask)), " waits here for ",
                     thread_name(warp, lane), ", which cannot arrive"),
        "move the barrier out of the branch or loop, or make its condition the same for the block",
        {where_lane_is(warp, instr, lane)});
    return warp.suspend(WarpState::kStopped, instr);
  }
  // One warp has nobody to wait for, and its lanes are in step.
  if (warp.block->warps.size() == 1) {
    if (Watch* const watch = watch_of(warp)) watch->warp_sync(warp);
    return run_order(instr, warp);
  }
  return warp.suspend(WarpState::kAtBarrier, instr);
}

const Instr* run_assert(const Instr* instr, Warp& warp) {
  const Mask bad = warp.mask & ~mask_of(warp.reg<Bool>(instr->a));
  if (bad == 0) return instr + 1;
  const Machine& machine = *warp.block->machine;
  if (machine.reporter->add(warp, instr, bad,
                            absl::StrCat("assertion failed: ", machine.code->texts[instr->aux]),
                            "")) {
    return warp.suspend(WarpState::kStopped, instr);
  }
  return instr + 1;
}

const Instr* run_trap(const Instr* instr, Warp& warp) {
  warp.block->machine->reporter->add(warp, instr, warp.mask, "the kernel ends itself with a trap",
                                     "");
  return warp.suspend(WarpState::kStopped, instr);
}

struct RequireNonzero {
  template <class T>
  static const Instr* run(const Instr* instr, Warp& warp) {
    const T* divisor = warp.reg<T>(instr->a);
    Mask bad = 0;
    for (uint32_t e = 0; e < instr->count; ++e, divisor += kLanes) {
      bool any = false;
      for (int l = 0; l < kLanes; ++l) any |= divisor[l] == 0;
      if (!any) continue;
      for (int l = 0; l < kLanes; ++l) bad |= divisor[l] == 0 ? Mask{1} << l : 0;
    }
    bad &= warp.mask;
    if (bad != 0 && warp.block->machine->reporter->add(
                        warp, instr, bad, "integer division by zero, whose result no GPU defines",
                        "guard the division with an If, or make sure that the divisor is not 0")) {
      return warp.suspend(WarpState::kStopped, instr);
    }
    return instr + 1;
  }
};

}  // namespace

Handler if_handler() { return &run_if; }
Handler else_handler() { return &run_else; }
Handler end_if_handler() { return &run_end_if; }
Handler for_handler(bool wide) { return wide ? &run_for<int64_t> : &run_for<int32_t>; }
Handler for_next_handler(bool wide) {
  return wide ? &run_for_next<int64_t> : &run_for_next<int32_t>;
}
Handler while_handler() { return &run_while; }
Handler while_test_handler() { return &run_while_test; }
Handler while_next_handler() { return &run_while_next; }
Handler end_handler() { return &run_end; }
Handler barrier_handler() { return &run_barrier; }
Handler order_handler() { return &run_order; }
Handler assert_handler() { return &run_assert; }
Handler trap_handler() { return &run_trap; }
Handler require_nonzero_handler(int bytes) {
  return bytes == 8 ? &RequireNonzero::run<uint64_t> : &RequireNonzero::run<uint32_t>;
}

}  // namespace heddle::ir::interp
