// order: put pure ops in the order in which they are needed.
//
// What: between two ops of a block that are not pure, the pure ones that later ops need first come
// first, each behind what it is computed from. The last operand comes first: sums in C++ lean to the
// left, so their short terms do not wait for the long ones. No op moves past one that is not pure, so
// what stands in front of a wait stays there. The halves of a product, mul and mulhi of the same numbers, stand side by side.
//
// Needs: nothing. Keeps: aliasing, ints, guarded-ints, movable-ints, sums, uniformity.
//
// Why: C++ does not say in which order operands are evaluated, so GCC and Clang trace one source in
// different orders. Assemblers answer with different registers: with Clang the largest tile of gemm
// spilled. And one element's arithmetic ends before the next one's begins. Of two halves that stand apart ptxas makes two
// multiplications, where one gives both.
//
//   %0 = neg %a : f32                %0 = mul %b, %b : f32
//   %1 = mul %b, %b : f32      →     %1 = neg %a : f32
//   %2 = add %0, %1 : f32            %2 = add %1, %0 : f32
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "heddle/ir/passes/passes.h"

namespace heddle::ir {
namespace {

class Order {
 public:
  explicit Order(Kernel& kernel) : kernel_(kernel) {}

  bool run() {
    kernel_.walk([&](OpId id) {
      if (is_half(id)) halves_[factors(id)].push_back(id);
    });
    kernel_.walk([&](OpId id) {
      if (!moves(id)) rank_operands(id);
    });
    // What nothing needs comes last, behind what it is computed from.
    kernel_.walk([&](OpId id) {
      if (!moves(id) || rank_[id] != 0) return;
      rank_operands(id);
      rank(id);
    });
    sort(kernel_.body());
    return changed_;
  }

 private:
  bool moves(OpId id) const {
    const Op& op = kernel_.op(id);
    return has(info(op), kPure) && op.regions.empty();
  }

  // mul or mulhi of a scalar integer.
  bool is_half(OpId id) const {
    const Op& op = kernel_.op(id);
    return (op.opcode == Opcode::kMul || op.opcode == Opcode::kMulHi) &&
           is_integer(kernel_.type(op.result()).scalar);
  }
  std::pair<ValueId, ValueId> factors(OpId id) const {
    const Op& op = kernel_.op(id);
    return std::minmax(op.a(), op.b());
  }

  // Numbers an op, and behind it the other half of a product that is needed too.
  void rank(OpId id) {
    rank_.at(id) = ++last_rank_;
    if (!is_half(id)) return;
    for (const OpId half : halves_[factors(id)]) {
      const Op &one = kernel_.op(id), &other = kernel_.op(half);
      if (rank_[half] == 0 && one.opcode != other.opcode && one.parent == other.parent) {
        rank_.at(half) = ++last_rank_;
      }
    }
  }

  // Numbers what an op is computed from, depth first, in the order in which it is needed.
  void rank_operands(OpId id) {
    pending_.assign(1, {id, kernel_.op(id).operands.size()});
    while (!pending_.empty()) {
      auto& [op, left] = pending_.back();
      if (left == 0) {
        if (op != id) rank(op);
        pending_.pop_back();
        continue;
      }
      const OpId def = kernel_.value(kernel_.op(op).operands[--left]).def;
      if (valid(def) && rank_[def] == 0 && moves(def)) {
        pending_.emplace_back(def, kernel_.op(def).operands.size());
      }
    }
  }

  // Sorts each run of ops that move.
  void sort(RegionId region) {
    std::vector<OpId> run;
    for (const OpId id : kernel_.ops(region)) {
      if (moves(id)) {
        run.push_back(id);
        continue;
      }
      put_in_order(run, id);
      run.clear();
      for (size_t i = 0; i < kernel_.op(id).regions.size(); ++i) sort(kernel_.op(id).regions[i]);
    }
  }

  void put_in_order(std::vector<OpId>& run, OpId end) {
    const auto earlier = [&](OpId a, OpId b) { return rank_[a] < rank_[b]; };
    if (std::is_sorted(run.begin(), run.end(), earlier)) return;
    std::stable_sort(run.begin(), run.end(), earlier);
    for (const OpId id : run) {
      kernel_.unlink(id);
      kernel_.insert_before(end, id);
    }
    changed_ = true;
  }

  Kernel& kernel_;
  absl::flat_hash_map<std::pair<ValueId, ValueId>, absl::InlinedVector<OpId, 2>>
      halves_;  // by factors
  IdMap<OpId, uint32_t> rank_;
  uint32_t last_rank_ = 0;
  std::vector<std::pair<OpId, size_t>> pending_;
  bool changed_ = false;
};

}  // namespace

bool order(Kernel& kernel) { return Order(kernel).run(); }

}  // namespace heddle::ir
