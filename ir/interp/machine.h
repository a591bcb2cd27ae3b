// The state of a running kernel: warps, the block that they form, and what they share. Internal.
//
// A warp is a program counter, a mask of active lanes, one frame for each level of control flow and
// its registers. A handler that must wait stores where to go on and returns nullptr; nothing lives
// on the host's stack in between.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "heddle/ir/interp/code.h"
#include "heddle/ir/interp/memory.h"
#include "heddle/ir/interp/races.h"
#include "heddle/ir/interp/scalar/lane.h"

namespace heddle::ir::interp {

class Reporter;
class Watch;
struct LaunchArgs;

enum class WarpState : uint8_t {
  kReady,
  kAtBarrier,    // pc is the barrier
  kAtWarpGroup,  // pc is an op that the four warps of a warp-group execute together
  kWaiting,      // pc is an op that runs again once `wait` is over
  kDone,
  kStopped,  // a mistake was reported and the run ends
};

// One level of control flow that a warp is in.
struct Frame {
  Mask entry = 0;      // lanes that entered, active again behind it
  Mask otherwise = 0;  // if: lanes that take the else branch
  uint64_t trip = 0;   // for: trips done
  uint64_t next = 0;   // for: the trip at which the next lane leaves
};

struct Block;

// What is known of a byte of shared memory.
inline constexpr uint8_t kUnwritten = 0;
inline constexpr uint8_t kWritten = 1;
inline constexpr uint8_t kHoldsMbarrier = 2;

// What a warp waits for that is no barrier of the whole block.
struct Wait {
  bool (*is_over)(const Warp& warp);
  // For a wait that never ends: what it lacks, and what the program should see to.
  std::string (*lacks)(const Warp& warp);
  const char* fix;
};

struct Warp {
  std::byte* registers = nullptr;
  Mask mask = 0;    // active lanes
  Mask exists = 0;  // lanes that are threads of the block: all but for a partial last warp
  WarpState state = WarpState::kReady;
  int index = 0;  // in the block
  const Instr* code = nullptr;
  const Instr* pc = nullptr;  // where to go on
  Frame* frames = nullptr;
  Block* block = nullptr;
  std::byte* local = nullptr;        // Code::local_bytes for each lane
  uint8_t* local_written = nullptr;  // a byte for each byte of it: 1 once written
  const Wait* wait = nullptr;
  uint32_t generation = 0;  // of the named barrier that it waits at
  uint32_t phase = 0;       // how often its lanes were ordered (races.h)
  uint32_t arrivals = 0;    // at the cluster's barrier, and waits there
  uint32_t waits = 0;
  bool arrived_relaxed = false;  // the last time

  template <class T>
  T* reg(uint32_t offset) const {
    return reinterpret_cast<T*>(registers + offset);
  }
  uint32_t* poison(uint32_t offset) const;

  // Leaves the dispatch loop; the warp goes on at `at`.
  const Instr* suspend(WarpState why, const Instr* at) {
    state = why;
    pc = at;
    return nullptr;
  }
  // The same until the wait is over; then the instruction at `at` runs again.
  const Instr* wait_for(const Wait& what, const Instr* at) {
    wait = &what;
    return suspend(WarpState::kWaiting, at);
  }
};

// What all blocks of a launch share.
struct Machine {
  const Code* code = nullptr;
  const LaunchArgs* args = nullptr;
  Reporter* reporter = nullptr;
  Memory* memory = nullptr;
  std::vector<MemoryCursor> cursors;  // one for each access of the code
  // Instructions that the blocks which run together may still execute, of max_instructions.
  int64_t fuel = 0;
  int64_t max_instructions = 0;
  WriteRaces races;
};

// Blocks that reach each other's shared memory.
struct Cluster {
  Cluster();
  ~Cluster();

  std::vector<Block*> blocks;
  std::unique_ptr<Watch> watch;  // of programs that work asynchronously (watch.h)
};

// One of a block's barriers 1 to 15.
struct NamedBarrier {
  uint32_t arrived = 0;     // threads
  uint32_t generation = 0;  // how often it has let all go
};
inline constexpr int kNamedBarriers = 16;

// A resident block.
struct Block {
  Machine* machine = nullptr;
  Cluster* cluster = nullptr;
  int rank = 0;        // in the cluster
  uint32_t epoch = 0;  // how often its threads were ordered (races.h)
  Dim3 index{0, 0, 0};
  std::array<NamedBarrier, kNamedBarriers> barriers{};
  std::vector<Warp> warps;
  std::byte* shared = nullptr;
  uint8_t* shared_written = nullptr;  // of each byte of shared memory: 0, or what it holds
  uint64_t shared_bytes = 0;

  uint64_t shared_address() const { return reinterpret_cast<uint64_t>(shared); }
};

inline uint32_t* Warp::poison(uint32_t offset) const {
  return reg<uint32_t>(block->machine->code->poison_offset + poison_of(offset));
}

// --- Lanes ----------------------------------------------------------------------------------

// The lanes whose bool is set.
inline Mask mask_of(const Bool* lanes) {
  Mask mask = 0;
  for (int group = 0; group < 4; ++group) {
    uint64_t eight;
    std::memcpy(&eight, lanes + 8 * group, 8);
    eight &= 0x0101010101010101u;  // A lane that was never active may hold anything.
    // Byte i's low bit lands in bit 56 + i; no two terms of the product meet.
    mask |= static_cast<Mask>((eight * 0x0102040810204080u) >> 56) << (8 * group);
  }
  return mask;
}

template <class T>
constexpr std::array<T, sizeof(T) == 8 ? 32 : sizeof(T) * 8> lane_bits() {
  std::array<T, sizeof(T) == 8 ? 32 : sizeof(T) * 8> bits{};
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<T>(T{1} << i);
  return bits;
}
template <class T>
inline constexpr auto kLaneBits = lane_bits<T>();

// Copies the lanes of the mask, without a branch for each lane. T is an unsigned integer.
template <class T>
void blend(T* __restrict to, const T* __restrict from, Mask mask) {
  constexpr int kGroup = static_cast<int>(kLaneBits<T>.size());
  for (int base = 0; base < kLanes; base += kGroup) {
    const T group = static_cast<T>(mask >> base);
    for (int i = 0; i < kGroup; ++i) {
      const T take = (group & kLaneBits<T>[i]) != 0 ? static_cast<T>(~T{0}) : T{0};
      to[base + i] = static_cast<T>((from[base + i] & take) | (to[base + i] & ~take));
    }
  }
}

// Calls visit(lane) for each lane of the mask, in order.
template <class Visit>
void for_each_lane(Mask mask, Visit&& visit) {
  for (; mask != 0; mask &= mask - 1) visit(std::countr_zero(mask));
}

inline int64_t index_at(const Warp& warp, IndexReg index, int lane) {
  return index.wide ? warp.reg<int64_t>(index.reg)[lane] : warp.reg<int32_t>(index.reg)[lane];
}

}  // namespace heddle::ir::interp
