// Ops of the threads of a block, or of a warp, together. All that take part are there: threads go
// through the program side by side.
#include <algorithm>
#include <optional>

#include "fuzz/oracle_state.h"

namespace heddle::fuzz::oracle {
namespace {

using ir::AttrKey;
using ir::Op;
using ir::Opcode;
using ir::Scalar;

bool barrier(State& state, const Op&, const Threads& threads) {
  return threads.size() == state.threads() || state.fail("a thread does not come to a barrier");
}

// The lanes of a warp that run an op: the thread of its first lane, and their mask.
struct Warp {
  uint32_t first = 0;
  uint32_t mask = 0;
  template <class Visit>
  void each(Visit visit) const {
    for (uint32_t lane = 0; lane < kWarp; ++lane) {
      if ((mask >> lane & 1) != 0) visit(lane, first + lane);
    }
  }
};

// Calls run(warp) for each warp; false where a lane of the mask is missing, or one too many there.
template <class Run>
bool for_warps(State& state, const Op& op, const Threads& threads, Run run) {
  for (size_t i = 0; i < threads.size();) {
    Warp warp{.first = threads[i] / kWarp * kWarp};
    size_t end = i;
    for (; end < threads.size() && threads[end] / kWarp * kWarp == warp.first; ++end) {
      warp.mask |= uint32_t{1} << (threads[end] % kWarp);
    }
    const uint32_t lanes = std::min(kWarp, state.threads() - warp.first);
    const uint32_t whole = lanes == kWarp ? ~uint32_t{0} : (uint32_t{1} << lanes) - 1;
    for (; i < end; ++i) {
      const uint64_t asked = valid(op.mask()) ? state.at(op.mask(), threads[i]) : whole;
      if (asked != warp.mask) return state.fail("the lanes of a mask are not those that come");
    }
    if (!run(warp)) return false;
  }
  return true;
}

// What each lane gets of the lanes' values.
template <auto kFunction>
bool gather(State& state, const Op& op, const Threads& threads) {
  return for_warps(state, op, threads, [&](const Warp& warp) {
    const uint64_t* const values = state.row(op.value());
    warp.each([&](uint32_t, uint32_t thread) {
      uint32_t equal = 0;  // those that have this lane's value
      uint32_t set = 0;
      warp.each([&](uint32_t lane, uint32_t other) {
        equal |= (values[other] == values[thread] ? uint32_t{1} : 0) << lane;
        set |= (values[other] != 0 ? uint32_t{1} : 0) << lane;
      });
      state.at(op.result(), thread) = kFunction(warp.mask, set, equal);
    });
    return true;
  });
}

bool reduce(State& state, const Op& op, const Threads& threads) {
  const Scalar scalar = state.kernel().type(op.value()).scalar;
  return for_warps(state, op, threads, [&](const Warp& warp) {
    std::optional<uint64_t> total;
    bool known = true;
    warp.each([&](uint32_t, uint32_t thread) {
      const uint64_t value = state.at(op.value(), thread);
      total = total ? reduced(op.attr_or(AttrKey::kOp, 0), scalar, *total, value) : value;
      known &= total.has_value();
    });
    if (!known) return state.fail("the oracle does not know the reduction");
    warp.each([&](uint32_t, uint32_t thread) { state.at(op.result(), thread) = *total; });
    return true;
  });
}

// kLane(lane, operand) is the lane whose value is wanted.
template <auto kLane>
bool shuffle(State& state, const Op& op, const Threads& threads) {
  const int64_t width = op.attr_or(AttrKey::kWidth, kWarp);
  return for_warps(state, op, threads, [&](const Warp& warp) {
    bool right = true;
    std::vector<uint64_t> values;
    warp.each([&](uint32_t lane, uint32_t thread) {
      const int64_t start = lane / width * width;
      const int64_t asked = kLane(lane, state.number_at(op.lane(), thread), start);
      const int64_t source = asked < start || asked >= start + width ? lane : asked;
      right &= (warp.mask >> source & 1) != 0;
      for (int e = 0; e < state.count_of(op.result()); ++e) {
        values.push_back(state.at(op.value(), warp.first + static_cast<uint32_t>(source), e));
      }
    });
    size_t next = 0;
    warp.each([&](uint32_t, uint32_t thread) {
      for (int e = 0; e < state.count_of(op.result()); ++e) {
        state.at(op.result(), thread, e) = values[next++];
      }
    });
    return right || state.fail("a shuffle reads a lane that is not there");
  });
}

constexpr std::pair<Opcode, Handler> kHandlers[] = {
    {Opcode::kBarrier, barrier},
    {Opcode::kVoteAny, gather<[](uint32_t, uint32_t set, uint32_t) { return set != 0 ? 1 : 0; }>},
    {Opcode::kVoteAll,
     gather<[](uint32_t mask, uint32_t set, uint32_t) { return set == mask ? 1 : 0; }>},
    {Opcode::kVoteUni,
     gather<[](uint32_t mask, uint32_t, uint32_t equal) { return equal == mask ? 1 : 0; }>},
    {Opcode::kBallot, gather<[](uint32_t, uint32_t set, uint32_t) { return set; }>},
    {Opcode::kMatchAny, gather<[](uint32_t, uint32_t, uint32_t equal) { return equal; }>},
    {Opcode::kMatchAll,
     gather<[](uint32_t mask, uint32_t, uint32_t equal) { return equal == mask ? mask : 0; }>},
    {Opcode::kRedux, reduce},
    {Opcode::kShflIdx, shuffle<[](int64_t, int64_t i, int64_t start) { return start + i; }>},
    {Opcode::kShflUp, shuffle<[](int64_t lane, int64_t i, int64_t) { return lane - i; }>},
    {Opcode::kShflDown, shuffle<[](int64_t lane, int64_t i, int64_t) { return lane + i; }>},
    {Opcode::kShflXor, shuffle<[](int64_t lane, int64_t i, int64_t) { return lane ^ i; }>},
};

}  // namespace

Handler warp_handler(Opcode opcode) { return find_in<Handler>(kHandlers, opcode); }

}  // namespace heddle::fuzz::oracle
