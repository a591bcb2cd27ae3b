// What the lanes of a warp do together: shuffles, votes and warp.sync.
//
// A warp's lanes run in step, so lanes that must arrive together are all active or will never be.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "heddle/ir/interp/report.h"
#include "heddle/ir/interp/scalar/arithmetic.h"
#include "heddle/ir/interp/scalar/elementwise.h"
#include "heddle/ir/interp/watch.h"

namespace heddle::ir::interp {
namespace {

// The lanes that a lane's mask operand names; without one, all threads of the warp. Lanes behind
// the block's last thread have exited and count for nothing.
Mask named_by(const Warp& warp, uint32_t mask_reg, int lane) {
  return mask_reg == kNone ? warp.exists : warp.reg<Mask>(mask_reg)[lane] & warp.exists;
}

// True when the run has to stop: a lane does not name itself, or names one that is not here or that
// names others. Only the first such lane is described.
bool report_participants(const Instr* instr, const Warp& warp, uint32_t mask_reg) {
  Mask bad = 0;
  for_each_lane(warp.mask, [&](int lane) {
    const Mask named = named_by(warp, mask_reg, lane);
    bool good = (named >> lane & 1u) != 0 && (named & ~warp.mask) == 0;
    if (good && mask_reg != kNone) {
      for_each_lane(named, [&](int other) { good &= named_by(warp, mask_reg, other) == named; });
    }
    bad |= good ? 0 : Mask{1} << lane;
  });
  if (bad == 0) return false;
  Reporter& reporter = *warp.block->machine->reporter;
  const int lane = std::countr_zero(bad);
  const Mask named = named_by(warp, mask_reg, lane);
  if ((named >> lane & 1u) == 0) {
    return reporter.add(
        warp, instr, bad,
        absl::StrFormat("this warp collective is run by lane %d, which its mask 0x%08x leaves out",
                        lane, warp.reg<Mask>(mask_reg)[lane]),
        "name exactly the lanes that run it, for instance with the ballot of the condition");
  }
  if (const Mask missing = named & ~warp.mask; missing != 0) {
    const int other = std::countr_zero(missing);
    return reporter.add(
        warp, instr, bad,
        mask_reg == kNone
            ? absl::StrFormat("this warp collective needs all threads of the warp, and lane %d is "
                              "not active here",
                              other)
            : absl::StrFormat("the mask 0x%08x of this warp collective names lane %d, which is not "
                              "active here",
                              warp.reg<Mask>(mask_reg)[lane], other),
        "move it out of the branch or loop, or give it the mask of the lanes that are there",
        {where_lane_is(warp, instr, other)});
  }
  return reporter.add(warp, instr, bad,
                      absl::StrFormat("lanes that run this warp collective together name different "
                                      "masks: lane %d has 0x%08x",
                                      lane, warp.reg<Mask>(mask_reg)[lane]),
                      "compute the mask once, before the lanes part");
}

// All lanes are there and name the same ones, which is how nearly every collective runs.
bool everybody_is_here(const Warp& warp, uint32_t mask_reg) {
  if (mask_reg == kNone) return warp.mask == warp.exists;
  const Mask* masks = warp.reg<Mask>(mask_reg);
  Mask common = kAllLanes;
  Mask any = 0;
  for_each_lane(warp.mask, [&](int lane) {
    common &= masks[lane];
    any |= masks[lane];
  });
  return (common & warp.exists) == warp.mask && (any & warp.exists) == warp.mask;
}

bool participants_stop(const Instr* instr, const Warp& warp, uint32_t mask_reg) {
  return !everybody_is_here(warp, mask_reg) && report_participants(instr, warp, mask_reg);
}

// The lane that `lane` reads; itself where that lies outside its segment. A negative index or
// distance names no lane.
template <Opcode kOpcode>
int source_lane(int lane, int32_t index, int width) {
  const int begin = lane & ~(width - 1);
  const int64_t i = static_cast<uint32_t>(index);
  int64_t source = 0;
  if constexpr (kOpcode == Opcode::kShflIdx) {
    source = begin + i;
  } else if constexpr (kOpcode == Opcode::kShflUp) {
    source = lane - i;
  } else if constexpr (kOpcode == Opcode::kShflDown) {
    source = lane + i;
  } else {
    source = lane ^ i;
  }
  return source >= begin && source < begin + width ? static_cast<int>(source) : lane;
}

template <Opcode kOpcode, class T>
const Instr* run_shuffle(const Instr* instr, Warp& warp) {
  const int32_t* index = warp.reg<int32_t>(instr->b);
  const int width = static_cast<int>(instr->aux);
  int from[kLanes];
  for (int l = 0; l < kLanes; ++l) from[l] = source_lane<kOpcode>(l, index[l], width);
  T* __restrict d = warp.reg<T>(instr->dst);
  const T* a = warp.reg<T>(instr->a);
  for (uint32_t e = 0; e < instr->count; ++e, d += kLanes, a += kLanes) {
    for (int l = 0; l < kLanes; ++l) d[l] = a[from[l]];
  }
  return instr + 1;
}

template <Opcode kOpcode, class T>
const Instr* run_checked_shuffle(const Instr* instr, Warp& warp) {
  if (participants_stop(instr, warp, instr->c)) return warp.suspend(WarpState::kStopped, instr);
  const int32_t* index = warp.reg<int32_t>(instr->b);
  const int width = static_cast<int>(instr->aux);
  Mask bad = 0;
  for_each_lane(warp.mask, [&](int lane) {
    const int source = source_lane<kOpcode>(lane, index[lane], width);
    const bool good = (named_by(warp, instr->c, lane) & warp.mask) >> source & 1u;
    bad |= good ? 0 : Mask{1} << lane;
  });
  if (bad != 0) {
    const int lane = std::countr_zero(bad);
    const int source = source_lane<kOpcode>(lane, index[lane], width);
    const bool exists = (warp.exists >> source & 1u) != 0;
    std::vector<Note> notes;
    if (exists && (warp.mask >> source & 1u) == 0) {
      notes.push_back(where_lane_is(warp, instr, source));
    }
    if (warp.block->machine->reporter->add(
            warp, instr, bad,
            absl::StrCat("lane ", lane, " reads lane ", source, ", ",
                         exists ? "which does not take part in this shuffle"
                                : "which is no thread: the block ends before it"),
            "read only lanes that run the shuffle, or let all lanes run it", std::move(notes))) {
      return warp.suspend(WarpState::kStopped, instr);
    }
  }
  return run_shuffle<kOpcode, T>(instr, warp);
}

// Poison travels like the value; a lane that was not written where it is read stays poisoned.
template <Opcode kOpcode>
const Instr* run_poison_shuffle(const Instr* instr, Warp& warp) {
  const int32_t* index = warp.reg<int32_t>(instr->b);
  const int width = static_cast<int>(instr->aux & 0xFFu);
  const uint32_t stride = instr->aux >> 8;
  const uint32_t* a = warp.poison(instr->a);
  uint32_t* d = warp.poison(instr->dst);
  for (uint32_t e = 0; e < instr->count; ++e) {
    Mask poison = 0;
    for (int l = 0; l < kLanes; ++l) {
      poison |= (a[e * stride] >> source_lane<kOpcode>(l, index[l], width) & 1u) << l;
    }
    d[e * stride] = poison;
  }
  return instr + 1;
}

template <Opcode kOpcode, bool kChecked>
const Instr* run_vote(const Instr* instr, Warp& warp) {
  if (kChecked && participants_stop(instr, warp, instr->b)) {
    return warp.suspend(WarpState::kStopped, instr);
  }
  const Mask holds = mask_of(warp.reg<Bool>(instr->a)) & warp.mask;
  for (int l = 0; l < kLanes; ++l) {
    const Mask named = named_by(warp, instr->b, l);
    const Mask yes = holds & named;
    if constexpr (kOpcode == Opcode::kBallot) {
      warp.reg<uint32_t>(instr->dst)[l] = yes;
    } else {
      bool result = yes != 0;
      if constexpr (kOpcode == Opcode::kVoteAll) result = yes == named;
      if constexpr (kOpcode == Opcode::kVoteUni) result = yes == 0 || yes == named;
      warp.reg<Bool>(instr->dst)[l] = result ? 1 : 0;
    }
  }
  return instr + 1;
}

template <Opcode kOpcode, class T, bool kChecked>
const Instr* run_match(const Instr* instr, Warp& warp) {
  if (kChecked && participants_stop(instr, warp, instr->b)) {
    return warp.suspend(WarpState::kStopped, instr);
  }
  const T* a = warp.reg<T>(instr->a);
  Mask result[kLanes] = {};
  for_each_lane(warp.mask, [&](int lane) {
    const Mask named = named_by(warp, instr->b, lane) & warp.mask;
    for_each_lane(named, [&](int other) {
      if (a[other] == a[lane]) result[lane] |= Mask{1} << other;
    });
    if (kOpcode == Opcode::kMatchAll && result[lane] != named) result[lane] = 0;
  });
  std::copy_n(result, kLanes, warp.reg<uint32_t>(instr->dst));
  return instr + 1;
}

template <class Function, class T, bool kChecked>
const Instr* run_redux(const Instr* instr, Warp& warp) {
  if (kChecked && participants_stop(instr, warp, instr->b)) {
    return warp.suspend(WarpState::kStopped, instr);
  }
  const T* a = warp.reg<T>(instr->a);
  T result[kLanes] = {};
  for_each_lane(warp.mask, [&](int lane) {
    bool first = true;
    for_each_lane(named_by(warp, instr->b, lane) & warp.mask, [&](int other) {
      result[lane] = first ? a[other] : Function::apply(result[lane], a[other]);
      first = false;
    });
  });
  std::copy_n(result, kLanes, warp.reg<T>(instr->dst));
  return instr + 1;
}

template <bool kChecked>
const Instr* run_elect(const Instr* instr, Warp& warp) {
  if (kChecked && participants_stop(instr, warp, instr->b)) {
    return warp.suspend(WarpState::kStopped, instr);
  }
  for_each_lane(warp.mask, [&](int lane) {
    const Mask named = named_by(warp, instr->b, lane) & warp.mask;
    warp.reg<Bool>(instr->dst)[lane] = std::countr_zero(named) == lane ? 1 : 0;
  });
  return instr + 1;
}

const Instr* run_active_mask(const Instr* instr, Warp& warp) {
  std::fill_n(warp.reg<uint32_t>(instr->dst), kLanes, warp.mask);
  return instr + 1;
}

const Instr* run_warp_sync(const Instr* instr, Warp& warp) {
  if (participants_stop(instr, warp, instr->a)) return warp.suspend(WarpState::kStopped, instr);
  warp.block->machine->races.order(warp);
  Watch* const watch = watch_of(warp);
  if (watch != nullptr && warp.mask == warp.exists) watch->warp_sync(warp);
  return instr + 1;
}

template <Opcode kOpcode>
Handler shuffle_of(int bytes, bool checked) {
  switch (bytes) {
    case 1:
      return checked ? &run_checked_shuffle<kOpcode, uint8_t> : &run_shuffle<kOpcode, uint8_t>;
    case 2:
      return checked ? &run_checked_shuffle<kOpcode, uint16_t> : &run_shuffle<kOpcode, uint16_t>;
    case 4:
      return checked ? &run_checked_shuffle<kOpcode, uint32_t> : &run_shuffle<kOpcode, uint32_t>;
    case 8:
      return checked ? &run_checked_shuffle<kOpcode, uint64_t> : &run_shuffle<kOpcode, uint64_t>;
  }
  return nullptr;
}

struct ShuffleRow {
  Opcode opcode;
  Handler (*handler)(int bytes, bool checked);
  Handler poison;
};
constexpr ShuffleRow kShuffles[] = {
    {Opcode::kShflIdx, &shuffle_of<Opcode::kShflIdx>, &run_poison_shuffle<Opcode::kShflIdx>},
    {Opcode::kShflUp, &shuffle_of<Opcode::kShflUp>, &run_poison_shuffle<Opcode::kShflUp>},
    {Opcode::kShflDown, &shuffle_of<Opcode::kShflDown>, &run_poison_shuffle<Opcode::kShflDown>},
    {Opcode::kShflXor, &shuffle_of<Opcode::kShflXor>, &run_poison_shuffle<Opcode::kShflXor>},
};

template <Opcode kOpcode>
Handler match_of(int bytes, bool checked) {
  if (bytes == 8) {
    return checked ? &run_match<kOpcode, uint64_t, true> : &run_match<kOpcode, uint64_t, false>;
  }
  return checked ? &run_match<kOpcode, uint32_t, true> : &run_match<kOpcode, uint32_t, false>;
}

// In the order of AtomicOp.
template <class T, bool kChecked>
constexpr Handler kReductions[] = {&run_redux<Add, Unsigned<T>, kChecked>,
                                   &run_redux<Min, T, kChecked>,
                                   &run_redux<Max, T, kChecked>,
                                   &run_redux<And, T, kChecked>,
                                   &run_redux<Or, T, kChecked>,
                                   &run_redux<Xor, T, kChecked>};

struct VoteRow {
  Opcode opcode;
  Handler plain;
  Handler checked;
};
constexpr VoteRow kVotes[] = {
    {Opcode::kVoteAny, &run_vote<Opcode::kVoteAny, false>, &run_vote<Opcode::kVoteAny, true>},
    {Opcode::kVoteAll, &run_vote<Opcode::kVoteAll, false>, &run_vote<Opcode::kVoteAll, true>},
    {Opcode::kVoteUni, &run_vote<Opcode::kVoteUni, false>, &run_vote<Opcode::kVoteUni, true>},
    {Opcode::kBallot, &run_vote<Opcode::kBallot, false>, &run_vote<Opcode::kBallot, true>},
};

}  // namespace

Handler shuffle_handler(Opcode opcode, int bytes, bool checked) {
  for (const ShuffleRow& row : kShuffles) {
    if (row.opcode == opcode) return row.handler(bytes, checked);
  }
  return nullptr;
}

Handler poison_shuffle_handler(Opcode opcode) {
  for (const ShuffleRow& row : kShuffles) {
    if (row.opcode == opcode) return row.poison;
  }
  return nullptr;
}

Handler vote_handler(Opcode opcode, bool checked) {
  for (const VoteRow& row : kVotes) {
    if (row.opcode == opcode) return checked ? row.checked : row.plain;
  }
  return nullptr;
}

Handler match_handler(Opcode opcode, int bytes, bool checked) {
  if (opcode == Opcode::kMatchAny) return match_of<Opcode::kMatchAny>(bytes, checked);
  if (opcode == Opcode::kMatchAll) return match_of<Opcode::kMatchAll>(bytes, checked);
  return nullptr;
}

Handler redux_handler(AtomicOp op, Scalar scalar, bool checked) {
  const auto i = static_cast<size_t>(op);
  if (scalar == Scalar::kI32) {
    return checked ? kReductions<int32_t, true>[i] : kReductions<int32_t, false>[i];
  }
  return checked ? kReductions<uint32_t, true>[i] : kReductions<uint32_t, false>[i];
}

Handler elect_handler(bool checked) { return checked ? &run_elect<true> : &run_elect<false>; }
Handler active_mask_handler() { return &run_active_mask; }

Handler warp_sync_handler() { return &run_warp_sync; }

}  // namespace heddle::ir::interp
