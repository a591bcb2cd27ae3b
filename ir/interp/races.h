// Places that two threads of a block write without anything that orders the one before the other.
// Internal.
//
//   races.enter(blocks);                      // these run from here on
//   races.order(block);                       // a barrier: what came before is ordered
//   if (auto found = races.write(...)) ...    // before each store
//
// A race is reported where both threads belong to one block, they store different values, and no
// barrier of the block came between, nor a fence, a releasing or acquiring atomic or a wait:
// whatever the schedule, nothing orders such stores. Of equal values (a flag that all set) CUDA's
// memory model says no better, but on every GPU it is the value that stays, and compute-sanitizer
// lets them pass too. Atomics, volatile stores and a thread's own earlier stores don't count.
//
// What it remembers is bounded: the last writer of each 4-byte word (of each byte where elements
// are smaller) in a table that later stores of the same phase push out. It therefore misses races
// and never makes one up. Reads, other blocks, stores of two sizes to one place and what fences
// order for single threads are the business of a checker that follows happens-before; it needs the
// same calls, and accesses that load besides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "heddle/ir/interp/code.h"

namespace heddle::ir::interp {

struct Block;

class WriteRaces {
 public:
  // These blocks run from here on, and no others.
  void enter(const std::vector<Block*>& blocks);
  // Orders what the threads of a block, or the lanes of a warp, did before what they do after.
  void order(Block& block);
  void order(Warp& warp);

  // One lane's store meets another thread's.
  struct Race {
    Mask lanes = 0;      // that store where another thread has stored
    int thread = 0;      // of the block: who was there before the first of them
    uint32_t instr = 0;  // where that one stored: index in Code::instrs
  };
  // A store of `bytes` by each lane of the mask, to addresses that are multiples of that.
  struct Store {
    Mask mask = 0;
    const uint64_t* addresses = nullptr;
    bool contiguous = false;  // all lanes, neighbours in memory in their order
    uint32_t bytes = 0;
    // What is stored: a register of elements of that size; nullptr: it differs from all else.
    const std::byte* values = nullptr;
    uint32_t element_bytes = 1;
  };
  // Records a store that is about to happen.
  std::optional<Race> write(const Warp& warp, uint32_t instr, const Store& store);

 private:
  // A place in the table: where (the key's upper bits), who (epoch, phase, thread) and by which
  // instruction.
  static constexpr int kIndexBits = 15, kPhaseBits = 7, kThreadBits = 10;
  static constexpr uint32_t kPlaces = 1u << kIndexBits;
  static constexpr uint32_t kLastEpoch = (1u << (32 - kPhaseBits - kThreadBits)) - 1;
  struct FreeDeleter {
    void operator()(uint32_t* words) const;
  };
  struct Table {
    std::unique_ptr<uint32_t[], FreeDeleter> where, who, instr;
  };

  Table& table_for(uint32_t bytes);
  std::optional<Race> write_lanes(Table& table, const Warp& warp, uint32_t instr,
                                  const Store& store);

  Table words_, bytes_;
  // Of blocks; never used twice before all are given anew.
  uint32_t epoch_ = 0;
  std::vector<Block*> blocks_;
};

}  // namespace heddle::ir::interp
