// Barriers in shared memory.
#include "heddle/ir/interp/mbarrier.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/handlers.h"
#include "heddle/ir/interp/report.h"
#include "heddle/ir/interp/watch.h"

namespace heddle::ir::interp {

Block* block_of(const Warp& warp, uint64_t address, uint64_t bytes) {
  for (Block* const block : warp.block->cluster->blocks) {
    const uint64_t offset = address - block->shared_address();
    if (offset <= block->shared_bytes && bytes <= block->shared_bytes - offset) return block;
  }
  return nullptr;
}

std::string beyond_array(const Warp& warp, const Block* block, uint32_t array, uint64_t address,
                         uint64_t bytes) {
  if (array == kNone) return block == nullptr ? "bytes outside shared memory" : "";
  const Code& code = *warp.block->machine->code;
  const SharedArray& known = code.shared_arrays[array];
  const std::string which = absl::StrCat("'", code.texts[known.name], "', which has ", known.bytes);
  if (block == nullptr) return absl::StrCat("bytes outside shared memory, beyond ", which);
  const auto start = static_cast<int64_t>(address - block->shared_address() - known.offset);
  const auto end = static_cast<int64_t>(known.bytes);
  if (start >= 0 && start <= end && static_cast<int64_t>(bytes) <= end - start) return {};
  return absl::StrCat("byte ", start < 0 || start > end ? start : end, " of ", which);
}

Mbarrier* find_mbarrier(const Instr* instr, const Warp& warp, uint64_t address, uint32_t array,
                        bool initialised, int lane, bool copies) {
  const auto wrong = [&](std::string what, const char* fix) {
    warp.block->machine->reporter->add(warp, instr, Mask{1} << lane, std::move(what), fix);
    return nullptr;
  };
  const Block* const block = block_of(warp, address, sizeof(Mbarrier));
  const std::string beyond = beyond_array(warp, block, array, address, sizeof(Mbarrier));
  if (!beyond.empty()) {
    return wrong(absl::StrCat("an mbarrier at ", beyond),
                 "check its index: each mbarrier has 8 bytes");
  }
  if (address % sizeof(Mbarrier) != 0) {
    return wrong("an mbarrier at an address that is no multiple of 8", "use an array of u64");
  }
  auto* const barrier = reinterpret_cast<Mbarrier*>(address);
  // A store over one leaves bytes that are written and hold none.
  const bool valid =
      block->machine->code->checked
          ? block->shared_written[address - block->shared_address()] == kHoldsMbarrier
          : barrier->valid;
  if (initialised && !valid) {
    return wrong("an mbarrier that nobody has initialised, or that a store has written over",
                 "initialise it in one thread, with a barrier behind it");
  }
  if (!initialised && valid && block->machine->code->checked) {
    return wrong("initialises an mbarrier that is initialised already",
                 "let one thread initialise it, once: a phase that ends begins the next");
  }
  Watch* const watch = watch_of(warp);
  if (watch != nullptr && initialised && watch->check_init(instr, warp, lane, address, copies)) {
    return nullptr;
  }
  return barrier;
}

namespace {

void mark_mbarrier(const Warp& warp, uint64_t address, uint8_t content) {
  if (!warp.block->machine->code->checked) return;
  const Block& block = *block_of(warp, address, sizeof(Mbarrier));
  std::memset(block.shared_written + (address - block.shared_address()), content, sizeof(Mbarrier));
}

// Of arrivals, and of bytes, in a phase.
constexpr int64_t kMost = (1 << 20) - 1;

struct Mistake {
  std::string what;
  const char* fix = nullptr;
};

// What an op other than a wait does to a barrier.
template <Opcode kOpcode>
Mistake change(Mbarrier& barrier, int64_t number) {
  constexpr bool kAnnounces =
      kOpcode == Opcode::kMbarrierExpectTx || kOpcode == Opcode::kMbarrierAnnounceTx;
  if (!kAnnounces && (number < 1 || number > kMost)) {
    return {absl::StrCat("an mbarrier that counts ", number, " arrivals"),
            "count from 1 to 1048575 of them"};
  }
  if constexpr (kOpcode == Opcode::kMbarrierInit) {
    barrier = {};
    barrier.pending = barrier.expected = static_cast<uint64_t>(number) & kMost;
    barrier.valid = 1;
    return {};
  }
  if constexpr (kAnnounces) {
    if (barrier.bytes + number > kMost) {
      return {absl::StrCat("announces ", number, " bytes to an mbarrier whose phase lacks ",
                           static_cast<int64_t>(barrier.bytes), ", which are too many together"),
              "let a phase have at most 1048575 bytes"};
    }
    if (barrier.pending == 0) {
      return {"announces bytes to an mbarrier's phase that lacks no arrival",
              "announce them before the last arrival, or the phase may end without them"};
    }
    barrier.bytes += number;
    if (kOpcode == Opcode::kMbarrierAnnounceTx) return {};
  }
  const uint64_t arrivals = kAnnounces ? 1 : static_cast<uint64_t>(number);
  if (barrier.pending < arrivals) {
    return {"arrives at an mbarrier more often than its init() says",
            "let as many threads arrive in each phase as init() was told"};
  }
  barrier.pending -= arrivals;
  barrier.complete();
  return {};
}

template <Opcode kOpcode>
const Instr* run_mbarrier(const Instr* instr, Warp& warp) {
  const uint64_t* addresses = warp.reg<uint64_t>(instr->a);
  const uint32_t* numbers = instr->b == kNone ? nullptr : warp.reg<uint32_t>(instr->b);
  constexpr bool kArrives =
      kOpcode == Opcode::kMbarrierArrive || kOpcode == Opcode::kMbarrierExpectTx;
  Watch* const watch = watch_of(warp);
  bool stop = false;
  for_each_lane(warp.mask, [&](int l) {
    Mbarrier* const barrier = stop ? nullptr
                                   : find_mbarrier(instr, warp, addresses[l], instr->aux,
                                                   kOpcode != Opcode::kMbarrierInit, l);
    if (barrier == nullptr) {
      stop = true;
    } else if (kOpcode == Opcode::kMbarrierInval) {
      *barrier = {};
      mark_mbarrier(warp, addresses[l], kUnwritten);
    } else {
      if (watch != nullptr && kArrives) watch->arrive(instr, warp, l, addresses[l], instr->count);
      const Mistake wrong = change<kOpcode>(*barrier, numbers == nullptr ? 1 : numbers[l]);
      if (wrong.fix != nullptr) {
        stop = warp.block->machine->reporter->add(warp, instr, Mask{1} << l, wrong.what, wrong.fix);
      } else if (kOpcode == Opcode::kMbarrierInit) {
        mark_mbarrier(warp, addresses[l], kHoldsMbarrier);
        if (watch != nullptr) watch->init(instr, warp, l, addresses[l]);
      } else if (watch != nullptr) {
        watch->settle(*barrier);
      }
    }
  });
  return stop ? warp.suspend(WarpState::kStopped, instr) : instr + 1;
}

// The lanes whose phase has ended.
Mask ended_phases(const Warp& warp, const Instr* instr) {
  const uint64_t* addresses = warp.reg<uint64_t>(instr->a);
  const uint32_t* parity = warp.reg<uint32_t>(instr->b);
  Mask ended = 0;
  for_each_lane(warp.mask, [&](int l) {
    const bool is_over = reinterpret_cast<const Mbarrier*>(addresses[l])->phase != (parity[l] & 1);
    ended |= static_cast<Mask>(is_over) << l;
  });
  return ended;
}

bool phase_ended(const Warp& warp) { return ended_phases(warp, warp.pc) == warp.mask; }

// "phase 2 (parity 0) of the mbarrier at byte 8 of 'full', which lacks 1 arrival and 512 bytes".
std::string what_a_phase_lacks(const Warp& warp) {
  const uint64_t* addresses = warp.reg<uint64_t>(warp.pc->a);
  const uint32_t* parity = warp.reg<uint32_t>(warp.pc->b);
  int lane = 0;
  for_each_lane(warp.mask, [&](int l) {
    if (reinterpret_cast<const Mbarrier*>(addresses[l])->phase == (parity[l] & 1)) lane = l;
  });
  const auto& barrier = *reinterpret_cast<const Mbarrier*>(addresses[lane]);
  const auto bytes = static_cast<int64_t>(barrier.bytes);
  const Watch* const watch = watch_of(warp);
  return absl::StrCat(
      watch == nullptr ? absl::StrCat("an mbarrier's phase of parity ", parity[lane] & 1)
                       : watch->describe_phase(addresses[lane], *warp.block),
      ", which ",
      bytes < 0 ? absl::StrCat("lacks ", barrier.pending, " arrivals and has got ", -bytes,
                               " bytes more than were announced")
                : absl::StrCat("lacks ", barrier.pending, " arrivals and ", bytes, " bytes"));
}

constexpr Wait kPhase = {
    &phase_ended, &what_a_phase_lacks,
    "let as many threads arrive as init() says, and copies bring the bytes that expect_tx() "
    "announces; the first phase has parity 0"};

template <Opcode kOpcode>
const Instr* run_mbarrier_wait(const Instr* instr, Warp& warp) {
  const uint64_t* addresses = warp.reg<uint64_t>(instr->a);
  bool stop = false;
  for_each_lane(warp.mask, [&](int l) {
    stop |= !stop && find_mbarrier(instr, warp, addresses[l], instr->aux,
                                   /*initialised=*/true, l) == nullptr;
  });
  if (stop) return warp.suspend(WarpState::kStopped, instr);
  const Mask ended = ended_phases(warp, instr);
  if (Watch* const watch = watch_of(warp)) {
    const bool passes = kOpcode == Opcode::kMbarrierTest || ended == warp.mask;
    for_each_lane(passes ? ended : 0,
                  [&](int l) { watch->observe(warp, addresses[l], instr->count); });
    if (kOpcode == Opcode::kMbarrierTest && ended != warp.mask) watch->polled();
  }
  if constexpr (kOpcode == Opcode::kMbarrierTest) {
    Bool* const results = warp.reg<Bool>(instr->dst);
    for_each_lane(warp.mask, [&](int l) { results[l] = Bool{(ended >> l & 1) != 0}; });
  } else if (ended != warp.mask) {
    return warp.wait_for(kPhase, instr);
  }
  return instr + 1;
}

}  // namespace

Handler mbarrier_handler(Opcode opcode) {
  switch (opcode) {
    case Opcode::kMbarrierInit:
      return &run_mbarrier<Opcode::kMbarrierInit>;
    case Opcode::kMbarrierInval:
      return &run_mbarrier<Opcode::kMbarrierInval>;
    case Opcode::kMbarrierExpectTx:
      return &run_mbarrier<Opcode::kMbarrierExpectTx>;
    case Opcode::kMbarrierAnnounceTx:
      return &run_mbarrier<Opcode::kMbarrierAnnounceTx>;
    case Opcode::kMbarrierWait:
      return &run_mbarrier_wait<Opcode::kMbarrierWait>;
    case Opcode::kMbarrierTest:
      return &run_mbarrier_wait<Opcode::kMbarrierTest>;
    // Copies are complete when they are issued.
    default:
      return &run_mbarrier<Opcode::kMbarrierArrive>;
  }
}

}  // namespace heddle::ir::interp
