// Runs a litmus test many times on a device.
//
// Every thread of a launch plays one thread of the test (its role) in many instances. An instance's
// roles are played by different warps of a block, blocks of a cluster or blocks of the grid; they
// meet before each round, so that they run at about the same time, and then differ by a few cycles
// (jitter). Each instance has locations of its own, which are zero before each launch. How far apart they
// lie, and how many cycles, changes from launch to launch.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "heddle/heddle.h"
#include "heddle/ir/status.h"
#include "heddle/tools/bench/litmus_tests.h"

namespace heddle::tools {

struct LitmusShape {
  int64_t blocks;  // about so many
  int32_t rounds;  // in a launch
};

struct LitmusCounts {
  int64_t runs = 0;
  std::map<std::string, int64_t> outcomes;
};

// What changes from launch to launch.
struct LitmusPlan {
  Int rounds;
  Int instances;
  Int instance_stride, location_stride;  // in elements
  Int multiplier;                        // odd: which lanes meet
  Int jitter;                            // cycles, a power of two less one
  Int spins;                             // how often a block looks whether the others are there
};

class LitmusRunner {
 public:
  using PlayKernel = Kernel<Tensor<int32_t, 1>, Tensor<int32_t, 1>, Tensor<int32_t, 1>, LitmusPlan>;
  using TallyKernel =
      Kernel<Tensor<int32_t, 1>, Tensor<int32_t, 1>, Tensor<uint64_t, 1>, LitmusPlan>;

  LitmusRunner(const LitmusTest& test, MemoryScope scope)
      : test_(test),
        scope_(scope),
        roles_(static_cast<int>(test.threads.size())),
        registers_(registers_of(test)),
        locations_(locations_of(test)),
        digits_(registers_ + static_cast<int>(std::string(test.finals).size())) {}

  // At least `runs` instances.
  StatusOr<LitmusCounts> run(const Device& device, const LitmusShape& shape, int64_t runs) {
    const int64_t blocks = (shape.blocks + roles_ - 1) / roles_ * roles_;
    const int64_t groups = in_block() ? blocks * groups_in_block() : blocks / roles_;
    const int64_t instances = groups * unit_threads() * shape.rounds;
    StatusOr<Stream> stream = device.create_stream();
    if (!stream.ok()) return stream.status();
    const int64_t words = locations_ * (instances * kStrides[2] + kPad);
    StatusOr<Buffer> memory = device.allocate(words * 4);
    StatusOr<Buffer> registers = device.allocate(std::max(registers_, 1) * instances * 4);
    StatusOr<Buffer> arrivals = device.allocate(groups * 4);
    StatusOr<Buffer> histogram = device.allocate((int64_t{8} << (2 * digits_)));
    for (const auto* buffer : {&memory, &registers, &arrivals, &histogram}) {
      if (!buffer->ok()) return buffer->status();
    }
    Status status = histogram->fill(*stream, 0);
    status.Update(registers->fill(*stream, 0));
    const auto play = play_kernel();
    const auto tally = tally_kernel();
    const LaunchShape grid{.grid = blocks,
                           .block = block_threads(),
                           .cluster = scope_ == MemoryScope::cluster ? roles_ : 1};
    LitmusCounts counts;
    const bool on_gpu = device.kind() == runtime::BackendKind::kCuda;
    for (int launch = 0; counts.runs < runs && status.ok(); ++launch) {
      const int32_t stride = kStrides[launch % 3];
      const int32_t location_stride = static_cast<int32_t>(instances) * stride + kPad;
      const LitmusPlan plan{.rounds = shape.rounds,
                            .instances = static_cast<int32_t>(instances),
                            .instance_stride = stride,
                            .location_stride = location_stride,
                            .multiplier = 2 * (launch * 7 % 61) + 1,
                            .jitter = on_gpu ? kJitters[launch / 3 % 4] : 0,
                            .spins = on_gpu ? 4096 : 0};
      status.Update(memory->fill32(*stream, 0, int64_t{location_stride} * locations_));
      status.Update(arrivals->fill(*stream, 0));
      const auto m = as_tensor<int32_t>(*memory, {words});
      const auto r = as_tensor<int32_t>(*registers, {std::max(registers_, 1) * instances});
      status.Update(
          play.launch(*stream, grid, m, r, as_tensor<int32_t>(*arrivals, {groups}), plan));
      status.Update(tally.launch(*stream, {.grid = std::min<int64_t>(blocks, 264), .block = 256}, m,
                                 r, as_tensor<uint64_t>(*histogram, {int64_t{1} << (2 * digits_)}),
                                 plan));
      counts.runs += instances;
    }
    if (!status.ok()) return status;
    StatusOr<std::vector<uint64_t>> bins = histogram->download<uint64_t>(*stream);
    if (!bins.ok()) return bins.status();
    for (size_t outcome = 0; outcome < bins->size(); ++outcome) {
      if ((*bins)[outcome] == 0) continue;
      std::string name;
      for (int i = 0; i < digits_; ++i) name += static_cast<char>('0' + (outcome >> (2 * i) & 3));
      counts.outcomes[name] = static_cast<int64_t>((*bins)[outcome]);
    }
    return counts;
  }

  // The kernel that plays the test; its accesses are those of the roles, in turn.
  PlayKernel play_kernel() const {
    return local_kernel("litmus", [this](Tensor<int32_t, 1> memory, Tensor<int32_t, 1> registers,
                                         Tensor<int32_t, 1> arrivals, LitmusPlan plan) {
      const Int unit = in_block() ? warp_id() : Int(block_idx.x);
      const Int role = unit % roles_;
      const Int group =
          in_block() ? block_idx.x * groups_in_block() + unit / roles_ : unit / roles_;
      const Int groups = in_block() ? grid_dim.x * groups_in_block() : Int(grid_dim.x) / roles_;
      const Int thread = in_block() ? lane_id() : Int(thread_idx.x);
      const Int meeting = (thread * (plan.multiplier + 2 * role) + role * 5) & (unit_threads() - 1);
      for (Int round : range(plan.rounds)) {
        meet(arrivals, group, round, plan.spins);
        wait((round * 40503 + unit * 30011) & plan.jitter);
        const Int instance = (round * groups + group) * unit_threads() + meeting;
        const auto at = [&](int location) {
          return plan.location_stride * location + instance * plan.instance_stride;
        };
        int first = 0;
        for (int r = 0; r < roles_; ++r) {
          If(role == r, [&] {
            const std::vector<Int> read = record_thread(test_.threads[r], scope_, memory, at);
            for (size_t i = 0; i < read.size(); ++i) {
              registers(plan.instances * (first + static_cast<int>(i)) + instance) = read[i];
            }
          });
          first += registers_of(test_.threads[r]);
        }
      }
    });
  }

  int64_t block_threads() const {
    return in_block() ? kWarpSize * roles_ * groups_in_block() : 256;
  }

 private:
  static constexpr int32_t kStrides[] = {1, 8, 32};          // words, sectors and lines
  static constexpr int32_t kJitters[] = {0, 63, 511, 2047};  // cycles
  static constexpr int32_t kPad = 32;

  bool in_block() const { return scope_ == MemoryScope::block; }
  int groups_in_block() const { return 8 / roles_; }
  int unit_threads() const { return in_block() ? kWarpSize : 256; }

  // The units of a group arrive. Blocks of a grid may not all run at the same time, so that they
  // wait only for a while.
  void meet(const Tensor<int32_t, 1>& arrivals, const Int& group, const Int& round,
            const Int& spins) const {
    if (scope_ == MemoryScope::cluster) return sync_cluster();
    if (!in_block()) {
      If(thread_idx.x == 0, [&] {
        atomic_add(arrivals(group), 1);
        const Int all = (round + 1) * roles_;
        While(
            Int(0), [&](Int tries) { return tries < spins && atomic_load(arrivals(group)) < all; },
            [&](Int tries) { return tries + 1; });
      });
    }
    sync_threads();
  }

  static void wait(const Int& cycles) {
    const Int64 start = clock64();
    const Int64 end = start + cast<int64_t>(cycles);
    While(
        start, [&](Int64 now) { return now < end; }, [&](Int64) { return clock64(); });
  }

  // Counts the outcomes, two bits a digit.
  TallyKernel tally_kernel() const {
    return local_kernel("tally", [this](Tensor<int32_t, 1> memory, Tensor<int32_t, 1> registers,
                                        Tensor<uint64_t, 1> histogram, LitmusPlan plan) {
      const int bins = 1 << (2 * digits_);
      Shared<int32_t> counts(bins);
      for (Int bin : range(thread_idx.x, bins, block_dim.x)) counts(bin) = 0;
      sync_threads();
      const Int first = block_idx.x * block_dim.x + thread_idx.x;
      for (Int i : range(first, plan.instances, grid_dim.x * block_dim.x)) {
        Var<int32_t> outcome(0);
        for (int r = 0; r < registers_; ++r) {
          outcome |= (registers(plan.instances * r + i) & 3) << (2 * r);
        }
        for (int f = registers_; f < digits_; ++f) {
          const Int last = memory(plan.location_stride * (test_.finals[f - registers_] - 'x') +
                                  i * plan.instance_stride);
          outcome |= (last & 3) << (2 * f);
        }
        atomic_add(counts(outcome), 1, MemoryOrder::relaxed, MemoryScope::block);
      }
      sync_threads();
      for (Int bin : range(thread_idx.x, bins, block_dim.x)) {
        atomic_add(histogram(bin), cast<uint64_t>(counts(bin)));
      }
    });
  }

  const LitmusTest& test_;
  MemoryScope scope_;
  int roles_, registers_, locations_, digits_;
};

}  // namespace heddle::tools
