// Bulk copies and reductions, lane by lane. In programs that are watched they are complete when the
// model says so, else at once.
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/byte_range.h"
#include "heddle/ir/interp/handlers.h"
#include "heddle/ir/interp/mbarrier.h"
#include "heddle/ir/interp/report.h"
#include "heddle/ir/interp/watch.h"

namespace heddle::ir::interp {
namespace {

constexpr char kCheckPlaces[] = "check the places and the size, which is in bytes";

// Where one block, or global memory, gets the bytes, and the barrier that is told.
struct Target {
  ByteRange to;
  Mbarrier* barrier = nullptr;
  absl::InlinedVector<uint32_t, 2> events = {};  // of the model: what it touches
};
using Targets = absl::InlinedVector<Target, 16>;

// One lane's copy or reduction.
template <bool kChecked>
class BulkCopy {
 public:
  BulkCopy(const Instr* instr, Warp& warp, int lane)
      : instr_(instr),
        warp_(warp),
        machine_(*warp.block->machine),
        access_(machine_.code->accesses[instr->aux]),
        lane_(lane),
        bytes_(warp.reg<uint32_t>(instr->c)[lane]),
        tells_(instr->dst != kNone) {}

  // Whether the run goes on.
  bool run() {
    ByteRange source;
    Targets targets;
    if (!find_source(&source) || !find_targets(&targets)) return !stop_;
    Watch* const watch = watch_of(warp_);
    for (Target& target : targets) {
      if (watch == nullptr) {
        deliver(source.data(), target);
      } else if (!put_off(*watch, source, target)) {
        return false;
      }
    }
    return !stop_;
  }

 private:
  // Reports a mistake.
  bool wrong(absl::string_view what, std::string fix = kCheckPlaces) {
    const absl::string_view kind = access_.step != nullptr ? "reduction" : "copy";
    stop_ |= machine_.reporter->add(warp_, instr_, Mask{1} << lane_,
                                    absl::StrCat("a bulk ", kind, " ", what), std::move(fix));
    return false;
  }

  bool find_range(uint64_t address, bool global, uint32_t array, ByteRange* range) {
    *range = {.address = address, .bytes = bytes_};
    if (!global) {
      range->block = block_of(warp_, address, bytes_);
      const std::string beyond = beyond_array(warp_, range->block, array, address, bytes_);
      if (!beyond.empty())
        return wrong(absl::StrCat("of ", bytes_, " bytes that touches ", beyond));
    } else if (kChecked) {
      range->allocation = machine_.cursors[instr_->aux].find(address, bytes_);
      if (range->allocation == nullptr) return wrong("that leaves the tensor's memory");
    }
    return true;
  }

  bool find_source(ByteRange* source) {
    const uint64_t from = warp_.reg<uint64_t>(instr_->a)[lane_];
    const uint64_t to = warp_.reg<uint64_t>(instr_->b)[lane_];
    if ((from | to | bytes_) % 16 != 0) {
      return wrong("whose addresses or size are no multiples of 16 bytes");
    }
    const bool global = access_.space == Space::kGlobal && !access_.store;
    if (!find_range(from, global, access_.from_array, source)) return false;
    return !kChecked || source->written() || wrong("of bytes that nobody has written");
  }

  bool find_targets(Targets* targets) {
    const uint64_t to = warp_.reg<uint64_t>(instr_->b)[lane_];
    const uint64_t barrier = tells_ ? warp_.reg<uint64_t>(instr_->dst)[lane_] : 0;
    if (access_.ranks == kNone) return add_target(to, barrier, targets);
    const auto& blocks = warp_.block->cluster->blocks;
    const uint32_t ranks = warp_.reg<uint32_t>(access_.ranks)[lane_];
    if (ranks == 0) return wrong("to none of the cluster's blocks", "name some of them");
    for (uint32_t left = ranks; left != 0; left &= left - 1) {
      const auto rank = static_cast<size_t>(std::countr_zero(left));
      if (rank >= blocks.size()) {
        return wrong(absl::StrCat("to block ", rank, " of a cluster of ", blocks.size()),
                     "ranks count from 0, and the launch says how many blocks a cluster has");
      }
      const uint64_t away = blocks[rank]->shared_address() - warp_.block->shared_address();
      if (!add_target(to + away, barrier + away, targets)) return false;
    }
    return true;
  }

  bool add_target(uint64_t to, uint64_t barrier, Targets* targets) {
    Target& target = targets->emplace_back();
    const bool global = access_.space == Space::kGlobal && access_.store;
    if (!find_range(to, global, access_.to_array, &target.to)) return false;
    if (access_.space == Space::kSharedCluster && target.to.block == warp_.block) {
      return wrong("from the block's own shared memory to its own",
                   "map the destination to another block, or load and store");
    }
    if (kChecked && access_.step != nullptr && !target.to.written()) {
      return wrong("into bytes that nobody has written", "write them first");
    }
    if (!tells_) return true;
    target.barrier = find_mbarrier(instr_, warp_, barrier, access_.mbarrier_array,
                                   /*initialised=*/true, lane_, /*copies=*/true);
    stop_ |= target.barrier == nullptr;
    if (stop_) return false;
    return block_of(warp_, barrier, sizeof(Mbarrier)) == target.to.block ||
           wrong("that tells another block's mbarrier than its destination's",
                 "map the mbarrier to the block that gets the bytes");
  }

  // Tells the model what it touches, and has it done in time.
  bool put_off(Watch& watch, const ByteRange& source, Target& target) {
    const auto touch = [&](const ByteRange& range, AccessKind kind) {
      if (range.block == nullptr) return true;
      target.events.push_back(watch.begin(instr_, warp_, lane_, kind));
      if (target.barrier != nullptr) {
        watch.counts_for(target.events.back(), reinterpret_cast<uint64_t>(target.barrier));
      }
      stop_ |= watch.touch(target.events.back(), *range.block, range.address, range.bytes);
      return !stop_;
    };
    const bool reduces = access_.step != nullptr;
    if (!touch(source, AccessKind::kBulkRead) ||
        !touch(target.to, reduces ? AccessKind::kBulkReduce : AccessKind::kBulkWrite)) {
      return false;
    }
    target.to.mark_written();
    if (target.barrier != nullptr) {
      watch.pending().add([=, *this] { deliver(source.data(), target); });
      return true;
    }
    // What has been read may be written elsewhere later.
    const auto held = std::make_shared<std::vector<std::byte>>();
    const Pending::Ticket read =
        watch.pending().add([=] { held->assign(source.data(), source.data() + source.bytes); });
    const Pending::Ticket write = watch.pending().add([=, *this, &watch] {
      watch.pending().finish(read);
      deliver(held->data(), target);
    });
    watch.add_store(warp_, lane_, target.events.front(), read, write);
    return true;
  }

  void deliver(const std::byte* from, const Target& target) const {
    auto* const to = reinterpret_cast<std::byte*>(target.to.address);
    const auto size = static_cast<size_t>(bytes_of(access_.scalar));
    if (access_.step == nullptr) std::memcpy(to, from, bytes_);
    for (size_t i = 0; access_.step != nullptr && i < bytes_; i += size) {
      uint64_t old = 0, value = 0;
      std::memcpy(&old, to + i, size);
      std::memcpy(&value, from + i, size);
      const uint64_t next = access_.step(old, value);
      std::memcpy(to + i, &next, size);
    }
    if (kChecked) target.to.mark_written();
    if (target.barrier == nullptr) return;
    if (Watch* const watch = watch_of(warp_)) {
      return watch->complete_tx(target.events, *target.barrier, static_cast<int64_t>(bytes_));
    }
    target.barrier->bytes -= static_cast<int64_t>(bytes_);
    target.barrier->complete();
  }

  const Instr* const instr_;
  Warp& warp_;
  Machine& machine_;
  const Access& access_;
  const int lane_;
  const uint32_t bytes_;
  const bool tells_;
  bool stop_ = false;
};

template <bool kChecked>
const Instr* run_bulk(const Instr* instr, Warp& warp) {
  bool goes_on = true;
  for_each_lane(warp.mask,
                [&](int l) { goes_on = goes_on && BulkCopy<kChecked>(instr, warp, l).run(); });
  return goes_on ? instr + 1 : warp.suspend(WarpState::kStopped, instr);
}

}  // namespace

Handler bulk_handler(bool checked) { return checked ? &run_bulk<true> : &run_bulk<false>; }

}  // namespace heddle::ir::interp
