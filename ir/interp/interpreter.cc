#include "heddle/ir/interp/interpreter.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/ir/check.h"
#include "heddle/ir/interp/deadlock.h"
#include "heddle/ir/interp/machine.h"
#include "heddle/ir/interp/report.h"
#include "heddle/ir/interp/watch.h"

namespace heddle::ir::interp {
namespace {

constexpr int64_t kMostThreads = 1024;
// Swizzle patterns of tensor-core tiles are anchored at multiples of this.
constexpr size_t kSharedAlign = 1024;
constexpr size_t kArenaAlign = 64;

struct FreeDeleter {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};
using AlignedBytes = std::unique_ptr<std::byte[], FreeDeleter>;

// Zeroed, so that lanes which never ran hold the same in every run.
AlignedBytes allocate_aligned(size_t bytes, size_t align) {
  const size_t rounded = std::max(align, (bytes + align - 1) / align * align);
  std::byte* memory = static_cast<std::byte*>(std::aligned_alloc(align, rounded));
  HEDDLE_CHECK(memory != nullptr, "the host is out of memory");
  std::memset(memory, 0, rounded);
  return AlignedBytes(memory);
}

Status check_launch(const Code& code, const LaunchArgs& args) {
  const auto error = [&code](auto... parts) {
    return InvalidArgumentError(
        absl::StrCat("kernel '", code.name, "' cannot be launched: ", parts...));
  };
  const auto text = [](Dim3 d) { return absl::StrCat("(", d.x, ", ", d.y, ", ", d.z, ")"); };
  if (std::min({args.block.x, args.block.y, args.block.z}) < 1 ||
      std::max({args.block.x, args.block.y, args.block.z}) > kMostThreads ||
      args.block.count() > kMostThreads) {
    return error("a block of ", text(args.block), " threads; it has to have 1 to ", kMostThreads);
  }
  if (code.block.x != 0 && !(code.block == args.block)) {
    return error("it was compiled for blocks of ", text(code.block), " threads, not ",
                 text(args.block));
  }
  if (std::min({args.grid.x, args.grid.y, args.grid.z}) < 1) {
    return error("a grid of ", text(args.grid), " blocks; each extent has to be at least 1");
  }
  if (args.grid.x % code.cluster.x != 0 || args.grid.y % code.cluster.y != 0 ||
      args.grid.z % code.cluster.z != 0) {
    return error("a grid of ", text(args.grid), " blocks is no whole number of clusters of ",
                 text(code.cluster));
  }
  if (static_cast<int64_t>(args.params.size()) != code.param_bytes) {
    return error("its parameters take ", code.param_bytes, " bytes, but ", args.params.size(),
                 " were passed");
  }
  if (args.dynamic_shared_bytes < 0) {
    return error(args.dynamic_shared_bytes, " bytes of dynamic shared memory");
  }
  for (const Init& init : code.inits) {
    if (init.kind != InitKind::kParamNarrowed) continue;
    int64_t value;
    std::memcpy(&value, args.params.data() + init.value, sizeof(value));
    if (value < std::numeric_limits<int32_t>::min() ||
        value > std::numeric_limits<int32_t>::max()) {
      return error(code.texts[init.name], " is ", value,
                   ", but the kernel was compiled for one that fits in 32 bits");
    }
  }
  return OkStatus();
}

int axis_of(Dim3 dim, uint64_t axis) { return axis == 0 ? dim.x : axis == 1 ? dim.y : dim.z; }

// The bits of a lane's element, before anything depends on the lane.
uint64_t initial_bits(const Init& init, const Block& block) {
  const LaunchArgs& args = *block.machine->args;
  uint64_t bits = 0;
  switch (init.kind) {
    case InitKind::kConst:
      return init.value;
    case InitKind::kParam:
      std::memcpy(&bits, args.params.data() + init.value,
                  static_cast<size_t>(bytes_of(init.scalar)));
      return init.scalar == Scalar::kBool ? (bits != 0 ? 1 : 0) : bits;
    case InitKind::kParamNarrowed:
      std::memcpy(&bits, args.params.data() + init.value, sizeof(bits));
      return bits;
    case InitKind::kParamClamped: {
      std::memcpy(&bits, args.params.data() + init.value, sizeof(bits));
      const int64_t value = static_cast<int64_t>(bits);
      return static_cast<uint64_t>(std::clamp<int64_t>(value, 0, ~uint32_t{0}));
    }
    case InitKind::kBlockIdx:
      return static_cast<uint64_t>(axis_of(block.index, init.value));
    case InitKind::kClusterRank:
      return static_cast<uint64_t>(block.rank);
    case InitKind::kBlockDim:
      return static_cast<uint64_t>(axis_of(args.block, init.value));
    case InitKind::kGridDim:
      return static_cast<uint64_t>(axis_of(args.grid, init.value));
    case InitKind::kShared:
      return block.shared_address() + init.value;
    case InitKind::kTable:
      return reinterpret_cast<uint64_t>(block.machine->code->tables[init.value].data());
    case InitKind::kLocal:
      return init.value;  // and where the lane's memory starts
    case InitKind::kDynamicShared:
      return block.shared_address() +
             static_cast<uint64_t>(block.machine->code->dynamic_shared_offset);
    case InitKind::kUndef:
    case InitKind::kThreadIdx:
    case InitKind::kLaneId:
    case InitKind::kWarpId:
      return 0;
  }
  return 0;
}

template <class T>
void fill(Warp& warp, const Init& init, uint64_t bits) {
  std::fill_n(warp.reg<T>(init.reg), init.count * kLanes, static_cast<T>(bits));
}

void initialize(Warp& warp, const Init& init) {
  const uint64_t bits = initial_bits(init, *warp.block);
  switch (bytes_of(init.scalar)) {
    case 1:
      fill<uint8_t>(warp, init, bits);
      break;
    case 2:
      fill<uint16_t>(warp, init, bits);
      break;
    case 4:
      fill<uint32_t>(warp, init, bits);
      break;
    case 8:
      fill<uint64_t>(warp, init, bits);
      break;
  }
  if (init.kind == InitKind::kUndef && warp.block->machine->code->checked) {
    const uint32_t stride = static_cast<uint32_t>(bytes_of(init.scalar));
    for (uint32_t e = 0; e < init.count; ++e) warp.poison(init.reg)[e * stride] = kAllLanes;
  }
  const Dim3 block = warp.block->machine->args->block;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int t = warp.index * kLanes + lane;
    int32_t* out = warp.reg<int32_t>(init.reg) + lane;
    if (init.kind == InitKind::kLocal) {
      warp.reg<uint64_t>(init.reg)[lane] +=
          reinterpret_cast<uint64_t>(warp.local) +
          static_cast<uint64_t>(lane * warp.block->machine->code->local_bytes);
    }
    if (init.kind == InitKind::kLaneId) *out = lane;
    if (init.kind == InitKind::kWarpId) *out = warp.index;
    if (init.kind == InitKind::kThreadIdx) {
      *out = init.value == 0   ? t % block.x
             : init.value == 1 ? t / block.x % block.y
                               : t / (block.x * block.y);
    }
  }
}

// The storage of a block, used by one block after another.
class Residence {
 public:
  Residence(Machine& machine, const LaunchArgs& args);

  Block& block() { return block_; }
  // Makes the block ready to run from the start as another one of the grid, in that cluster.
  void enter(Dim3 index, Cluster& cluster);

 private:
  Block block_;
  std::vector<Frame> frames_;
  AlignedBytes registers_;
  AlignedBytes shared_;
  std::vector<uint8_t> shared_written_;
  AlignedBytes local_;
  std::vector<uint8_t> local_written_;
};

Residence::Residence(Machine& machine, const LaunchArgs& args) {
  const Code& code = *machine.code;
  const int64_t threads = args.block.count();
  const size_t warps = static_cast<size_t>((threads + kLanes - 1) / kLanes);
  const size_t register_bytes = (code.register_bytes + kArenaAlign - 1) / kArenaAlign * kArenaAlign;
  registers_ = allocate_aligned(warps * register_bytes, kArenaAlign);
  frames_.resize(warps * code.frame_count);

  block_.machine = &machine;
  block_.shared_bytes = static_cast<uint64_t>(code.static_shared_bytes);
  if (args.dynamic_shared_bytes > 0) {
    block_.shared_bytes = static_cast<uint64_t>(code.dynamic_shared_offset) +
                          static_cast<uint64_t>(args.dynamic_shared_bytes);
  }
  shared_ = allocate_aligned(block_.shared_bytes, kSharedAlign);
  block_.shared = shared_.get();
  if (code.checked) shared_written_.resize(block_.shared_bytes);
  block_.shared_written = shared_written_.data();

  const size_t local_bytes = static_cast<size_t>(code.local_bytes) * kLanes;
  local_ = allocate_aligned(warps * local_bytes, kSharedAlign);
  if (code.checked) local_written_.resize(warps * local_bytes);

  block_.warps.resize(warps);
  for (size_t i = 0; i < warps; ++i) {
    Warp& warp = block_.warps[i];
    warp.local = local_.get() + i * local_bytes;
    warp.local_written = local_written_.data() + i * local_bytes;
    warp.registers = registers_.get() + i * register_bytes;
    const int64_t left = threads - static_cast<int64_t>(i) * kLanes;
    warp.exists = left >= kLanes ? kAllLanes : (Mask{1} << left) - 1;
    warp.index = static_cast<int>(i);
    warp.code = code.instrs.data();
    warp.frames = frames_.data() + i * code.frame_count;
    warp.block = &block_;
    for (const Init& init : code.inits) initialize(warp, init);
  }
}

void Residence::enter(Dim3 index, Cluster& cluster) {
  block_.index = index;
  block_.cluster = &cluster;
  block_.rank = static_cast<int>(cluster.blocks.size());
  cluster.blocks.push_back(&block_);
  block_.barriers.fill({});
  std::fill(shared_written_.begin(), shared_written_.end(), uint8_t{0});
  std::fill(local_written_.begin(), local_written_.end(), uint8_t{0});
  for (Warp& warp : block_.warps) {
    warp.mask = warp.exists;
    warp.state = WarpState::kReady;
    warp.pc = warp.code;
    warp.wait = nullptr;
    warp.arrivals = warp.waits = 0;
    for (const Init& init : block_.machine->code->inits) {
      const bool differs = init.kind == InitKind::kBlockIdx || init.kind == InitKind::kClusterRank;
      if (differs) initialize(warp, init);
    }
  }
}

void resume(Warp& warp) {
  const Instr* pc = warp.pc;
  do {
    pc = pc->run(pc, warp);
  } while (pc != nullptr);
}

void resume_counting(Warp& warp, Counters& counters) {
  const Code& code = *warp.block->machine->code;
  const Instr* pc = warp.pc;
  do {
    const Work& work = code.work[static_cast<size_t>(pc - warp.code)];
    const int64_t lanes = std::popcount(warp.mask);
    ++counters.instructions;
    counters.lane_ops += lanes * work.ops;
    if (work.load) {
      counters.loads += lanes;
      counters.bytes_loaded += lanes * work.bytes;
    } else if (work.store) {
      counters.stores += lanes;
      counters.bytes_stored += lanes * work.bytes;
    }
    pc = pc->run(pc, warp);
  } while (pc != nullptr);
}

// Lets the block's warps go on if all are at the same barrier.
bool release_barrier(Block& block) {
  const Warp& first = block.warps.front();
  const auto at_same_barrier = [&](const Warp& warp) {
    return warp.state == WarpState::kAtBarrier && warp.pc == first.pc;
  };
  if (!std::all_of(block.warps.begin(), block.warps.end(), at_same_barrier)) return false;
  block.machine->races.order(block);
  if (Watch* const watch = block.cluster->watch.get()) watch->block_barrier(block);
  for (Warp& warp : block.warps) {
    warp.state = WarpState::kReady;
    ++warp.pc;
  }
  return true;
}

// Of the index-th, x running fastest.
Dim3 coordinates_of(int64_t index, Dim3 extents) {
  const int64_t plane = int64_t{extents.x} * extents.y;
  return {static_cast<int>(index % extents.x), static_cast<int>(index % plane / extents.x),
          static_cast<int>(index / plane)};
}

// Runs blocks at the same time, warp by warp in turn, to their end; false when a mistake ends the
// run.
bool run_together(const std::vector<Block*>& blocks, Counters* counters) {
  // Work that was put off is done now; whether there was any.
  const auto advance = [&] {
    return std::any_of(blocks.begin(), blocks.end(), [](const Block* block) {
      Watch* const watch = block->cluster->watch.get();
      return watch != nullptr && watch->pending().advance();
    });
  };
  for (;;) {
    bool progress = false;
    bool unfinished = false;
    for (Block* const block : blocks) {
      bool block_runs = false;
      for (Warp& warp : block->warps) {
        if (warp.state == WarpState::kWaiting && warp.wait->is_over(warp)) {
          warp.state = WarpState::kReady;
        }
        if (warp.state != WarpState::kReady) continue;
        block_runs = true;
        Watch* const watch = block->cluster->watch.get();
        if (watch != nullptr) watch->pending().tick();
        if (counters != nullptr) {
          resume_counting(warp, *counters);
        } else {
          resume(warp);
        }
        if (warp.state == WarpState::kStopped) return false;
        if (watch != nullptr && watch->stopped()) return false;
      }
      progress |= block_runs;
      if (is_done(*block)) continue;
      unfinished = true;
      progress |= release_barrier(*block);
    }
    if (!unfinished) return true;
    if (!progress && !advance()) {
      report_deadlock(blocks);
      return false;
    }
  }
}

}  // namespace

Status run(const Program& program, const LaunchArgs& args, Memory& memory,
           const RunOptions& options, Counters* counters) {
  const Code& code = program.code();
  if (Status status = check_launch(code, args); !status.ok()) return status;
  Reporter reporter(code, std::max(options.max_reports, 1));
  Machine machine;
  machine.code = &code;
  machine.args = &args;
  machine.reporter = &reporter;
  machine.memory = &memory;
  if (code.checked) machine.cursors.assign(code.accesses.size(), MemoryCursor(memory));
  machine.max_instructions =
      options.max_instructions > 0 ? options.max_instructions : std::numeric_limits<int64_t>::max();
  const Dim3 shape = code.cluster;
  const Dim3 clusters{args.grid.x / shape.x, args.grid.y / shape.y, args.grid.z / shape.z};
  // The rest follows when these have ended.
  const int64_t together = args.cooperative ? clusters.count() : 1;
  std::vector<std::unique_ptr<Residence>> residences(static_cast<size_t>(together * shape.count()));
  for (auto& residence : residences) residence = std::make_unique<Residence>(machine, args);
  for (int64_t first = 0; first < clusters.count(); first += together) {
    std::vector<Cluster> running(static_cast<size_t>(together));
    std::vector<Block*> blocks;
    for (int64_t i = 0; i < together; ++i) {
      const Dim3 at = coordinates_of(first + i, clusters);
      for (int64_t rank = 0; rank < shape.count(); ++rank) {
        const Dim3 in = coordinates_of(rank, shape);
        Residence& residence = *residences[blocks.size()];
        residence.enter({at.x * shape.x + in.x, at.y * shape.y + in.y, at.z * shape.z + in.z},
                        running[static_cast<size_t>(i)]);
        blocks.push_back(&residence.block());
      }
    }
    machine.fuel = machine.max_instructions;
    machine.races.enter(blocks);
    if (code.watched) {
      for (Cluster& cluster : running) {
        cluster.watch = std::make_unique<Watch>(options.completion);
        cluster.watch->enter(cluster);
      }
    }
    if (!run_together(blocks, counters)) return reporter.status();
    for (Cluster& cluster : running) {
      if (cluster.watch != nullptr && cluster.watch->leave()) return reporter.status();
    }
  }
  return reporter.status();
}

}  // namespace heddle::ir::interp
