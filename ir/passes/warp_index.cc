// warp-index: what the threads of a warp have in common is computed from the warp's number.
//
// What: in a kernel that asks for warp_id, a shift right by 5 or more of the thread's number, or of the number plus
// a multiple of 32, where the block is a row of threads.
//
// Needs: nothing. Keeps: aliasing, ints, guarded-ints.
//
// Why: the result is the same in all lanes either way, but ptxas sees it of warp_id alone, which comes from a shuffle,
// and keeps only then what follows from it in uniform registers. Tensor cores and the copy engine read their
// operands there: a descriptor that a warpgroup's number is part of is otherwise moved for each instruction.
//
//   %t = thread_idx {axis = x} : i32        %w = warp_id : i32
//   %i = add %t, %-128 : i32           →    %v = add %w, %-4 : i32
//   %g = shr %i, %7 : i32                   %g = shr %v, %2 : i32
#include <optional>

#include "heddle/ir/analysis/int_facts.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/passes/passes.h"

namespace heddle::ir {
namespace {

constexpr int kLaneBits = 5;
constexpr int64_t kLanes = int64_t{1} << kLaneBits;

class WarpIndex {
 public:
  explicit WarpIndex(PassContext& context)
      : kernel_(context.kernel()), ints_(context.analysis<Ints>()), builder_(kernel_) {}

  bool run() {
    if (kernel_.has_dynamic_block() || kernel_.block.y != 1 || kernel_.block.z != 1) return false;
    if (!has_op(kernel_, Opcode::kWarpId)) return false;
    bool changed = false;
    kernel_.walk([&](OpId id) { changed |= rewrite(id); });
    return changed;
  }

 private:
  bool rewrite(OpId id) {
    const Op& op = kernel_.op(id);
    if (op.opcode != Opcode::kShr || kernel_.type(op.result()) != kI32Type) return false;
    const std::optional<uint64_t> count = kernel_.constant_bits(op.count());
    if (!count || *count < kLaneBits || *count > 31) return false;
    const std::optional<int64_t> first = behind_thread(op.a());
    if (!first || *first % kLanes != 0) return false;
    const IntRange range = ints_.range(op.a());
    const bool is_promised = kernel_.def(op.a())->opcode == Opcode::kAssumeRange;

    builder_.set_loc(op.loc);
    // In front of loops, where the thread's number is: licm moves no promise out of a loop that may not run.
    builder_.set_insertion_before(kernel_.value(op.a()).def);
    ValueId warp = builder_.create(Opcode::kWarpId, {}, kI32Type);
    if (*first != 0) {
      warp =
          builder_.create(Opcode::kAdd, {warp, builder_.constant_int(kI32Type, *first / kLanes)});
    }
    // What a role promises of its threads' numbers.
    if (is_promised) {
      warp = builder_.create(
          Opcode::kAssumeRange, {warp}, Type::none(),
          {{AttrKey::kMin, range.min >> kLaneBits}, {AttrKey::kMax, range.max >> kLaneBits}});
    }
    builder_.set_insertion_before(id);
    const ValueId shift = builder_.constant(kU32Type, *count - kLaneBits);
    kernel_.op(id).operands = {warp, shift};
    return true;
  }

  // c, where the value is the thread's number plus c.
  std::optional<int64_t> behind_thread(ValueId value) const {
    int64_t sum = 0;
    for (const Op* def = kernel_.def(value); def != nullptr; def = kernel_.def(value)) {
      if (def->opcode == Opcode::kThreadIdx) {
        return def->attr_or(AttrKey::kAxis, 0) == 0 ? std::optional(sum) : std::nullopt;
      }
      if (def->opcode == Opcode::kAdd) {
        const std::optional<int64_t> b = kernel_.constant_int(def->b());
        // Of small numbers the sum is exact.
        if (!b || *b < -kMostThreads || *b > kMostThreads) return std::nullopt;
        sum += *b;
      } else if (def->opcode != Opcode::kAssumeRange) {
        return std::nullopt;
      }
      value = def->a();
    }
    return std::nullopt;
  }

  static constexpr int64_t kMostThreads = 1024;

  Kernel& kernel_;
  IntAnalysis& ints_;
  Builder builder_;
};

}  // namespace

bool warp_index(PassContext& context) { return WarpIndex(context).run(); }

}  // namespace heddle::ir
