// Barriers in shared memory, and the copies that tell them of their bytes.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/elementwise.h"
#include "heddle/ir/interp/report.h"

namespace heddle::ir::interp {
namespace {

// An mbarrier's 64 bits, in a form of the interpreter's own.
struct Mbarrier {
  uint64_t pending : 20;   // arrivals that this phase still lacks
  uint64_t expected : 20;  // arrivals of each phase
  int64_t bytes : 22;      // announced and not yet come
  uint64_t phase : 1;      // parity of the current one
  uint64_t valid : 1;

  void complete() {
    if (pending != 0 || bytes != 0) return;
    phase ^= 1;
    pending = expected;
  }
};
static_assert(sizeof(Mbarrier) == 8);

// The block of the cluster whose shared memory has these bytes.
Block* block_of(const Warp& warp, uint64_t address, uint64_t bytes) {
  for (Block* const block : warp.block->cluster->blocks) {
    const uint64_t offset = address - block->shared_address();
    if (offset <= block->shared_bytes && bytes <= block->shared_bytes - offset) return block;
  }
  return nullptr;
}

// The barrier at an address; nullptr, and a report, where there is none.
Mbarrier* find(const Instr* instr, const Warp& warp, uint64_t address, bool initialised, int lane) {
  const char* what = nullptr;
  if (address % 8 != 0 || block_of(warp, address, 8) == nullptr) {
    what = "an mbarrier outside shared memory";
  } else if (initialised && !reinterpret_cast<Mbarrier*>(address)->valid) {
    what = "an mbarrier that nobody has initialised";
  }
  if (what == nullptr) return reinterpret_cast<Mbarrier*>(address);
  warp.block->machine->reporter->add(warp, instr, Mask{1} << lane, what,
                                     "initialise it in one thread, with a barrier behind it");
  return nullptr;
}

template <Opcode kOpcode>
const Instr* run_mbarrier(const Instr* instr, Warp& warp) {
  const uint64_t* addresses = warp.reg<uint64_t>(instr->a);
  const uint32_t* values = instr->b == kNone ? nullptr : warp.reg<uint32_t>(instr->b);
  bool stop = false;
  for_each_lane(warp.mask, [&](int l) {
    Mbarrier* const barrier =
        stop ? nullptr : find(instr, warp, addresses[l], kOpcode != Opcode::kMbarrierInit, l);
    if (barrier == nullptr) {
      stop = true;
      return;
    }
    if constexpr (kOpcode == Opcode::kMbarrierInit) {
      *barrier = {};
      barrier->pending = barrier->expected = values[l] & 0xFFFFF;
      barrier->valid = 1;
      return;
    }
    if constexpr (kOpcode == Opcode::kMbarrierExpectTx) {
      barrier->bytes += static_cast<int64_t>(values[l] & 0xFFFFF);
    }
    if (barrier->pending > 0) --barrier->pending;
    barrier->complete();
  });
  return stop ? warp.suspend(WarpState::kStopped, instr) : instr + 1;
}

bool phase_ended(const Warp& warp) {
  const uint64_t* addresses = warp.reg<uint64_t>(warp.pc->a);
  const uint32_t* parity = warp.reg<uint32_t>(warp.pc->b);
  bool ended = true;
  for_each_lane(warp.mask, [&](int l) {
    ended &= reinterpret_cast<const Mbarrier*>(addresses[l])->phase != (parity[l] & 1);
  });
  return ended;
}

const Instr* run_mbarrier_wait(const Instr* instr, Warp& warp) {
  const uint64_t* addresses = warp.reg<uint64_t>(instr->a);
  bool stop = false;
  for_each_lane(warp.mask, [&](int l) {
    stop |= !stop && find(instr, warp, addresses[l], /*initialised=*/true, l) == nullptr;
  });
  if (stop) return warp.suspend(WarpState::kStopped, instr);
  warp.pc = instr;
  if (!phase_ended(warp)) return warp.wait(&phase_ended, instr);
  return instr + 1;
}

// Each active lane copies, at once.
template <bool kChecked>
const Instr* run_bulk(const Instr* instr, Warp& warp) {
  Machine& machine = *warp.block->machine;
  const uint64_t* from = warp.reg<uint64_t>(instr->a);
  const uint64_t* to = warp.reg<uint64_t>(instr->b);
  const uint32_t* bytes = warp.reg<uint32_t>(instr->c);
  const bool loads = instr->dst != kNone;
  bool stop = false;
  for_each_lane(warp.mask, [&](int l) {
    if (stop) return;
    const uint64_t global = loads ? from[l] : to[l];
    const uint64_t shared = loads ? to[l] : from[l];
    Block* const block = block_of(warp, shared, bytes[l]);
    Allocation* memory = nullptr;
    if (kChecked) memory = machine.cursors[instr->aux].find(global, bytes[l]);
    const char* what = nullptr;
    if ((global | shared | bytes[l]) % 16 != 0) {
      what = "a bulk copy whose addresses or size are no multiples of 16 bytes";
    } else if (block == nullptr) {
      what = "a bulk copy that leaves shared memory";
    } else if (kChecked && memory == nullptr) {
      what = "a bulk copy that leaves the tensor's memory";
    } else if (kChecked && loads && !memory->initialized(global, bytes[l])) {
      what = "a bulk copy of bytes that nobody has written";
    }
    if (what != nullptr) {
      stop = machine.reporter->add(warp, instr, Mask{1} << l, what,
                                   "check the places and the size, which is in bytes");
      return;
    }
    std::memcpy(reinterpret_cast<void*>(to[l]), reinterpret_cast<const void*>(from[l]), bytes[l]);
    if (kChecked && loads) {
      std::memset(block->shared_written + (shared - block->shared_address()), 1, bytes[l]);
    } else if (kChecked) {
      memory->mark_initialized(global, bytes[l]);
    }
    if (!loads) return;
    Mbarrier* const barrier = find(instr, warp, warp.reg<uint64_t>(instr->dst)[l], true, l);
    stop = barrier == nullptr;
    if (stop) return;
    barrier->bytes -= static_cast<int64_t>(bytes[l]);
    barrier->complete();
  });
  return stop ? warp.suspend(WarpState::kStopped, instr) : instr + 1;
}

}  // namespace

Handler mbarrier_handler(Opcode opcode) {
  if (opcode == Opcode::kMbarrierInit) return &run_mbarrier<Opcode::kMbarrierInit>;
  if (opcode == Opcode::kMbarrierArrive) return &run_mbarrier<Opcode::kMbarrierArrive>;
  if (opcode == Opcode::kMbarrierExpectTx) return &run_mbarrier<Opcode::kMbarrierExpectTx>;
  return &run_mbarrier_wait;
}

Handler bulk_handler(bool checked) { return checked ? &run_bulk<true> : &run_bulk<false>; }

}  // namespace heddle::ir::interp
