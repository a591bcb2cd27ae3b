// Atomic operations: what they compute, and which elements they exist for.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "heddle/ir/target.h"
#include "heddle/ir/type.h"

namespace heddle::ir {

// What `atomic` puts in place of the old value x, given v. The attribute `op`.
enum class AtomicOp : uint8_t {
  kAdd,   // x + v
  kMin,   // the smaller
  kMax,   // the larger
  kAnd,   // x & v
  kOr,    // x | v
  kXor,   // x ^ v
  kInc,   // x >= v ? 0 : x + 1
  kDec,   // x == 0 || x > v ? v : x - 1
  kExch,  // v
};
inline constexpr int kAtomicOpCount = 9;
inline constexpr absl::string_view kAtomicOpNames[] = {"add", "min", "max", "and", "or",
                                                       "xor", "inc", "dec", "exch"};

// What else the threads that see an atomic's or a fence's effect are sure to see. The attribute
// `order`; relaxed where it is not given.
enum class MemoryOrder : uint8_t { kRelaxed, kAcquire, kRelease, kAcqRel, kSeqCst };
// Whether an op that may have another order says that its is relaxed.
struct Op;
bool is_relaxed(const Op& op);
inline constexpr absl::string_view kMemoryOrderNames[] = {"relaxed", "acquire", "release",
                                                          "acq_rel", "seq_cst"};

// Among which threads it is atomic, or ordered. The attribute `scope`; gpu where it is not given.
enum class MemoryScope : uint8_t { kBlock, kCluster, kGpu, kSystem };
inline constexpr absl::string_view kMemoryScopeNames[] = {"block", "cluster", "gpu", "system"};

// Which memory a fence between the proxies is about. The attribute `space`; shared where it is not given.
enum class FenceSpace : uint8_t { kShared, kGlobal, kAll };
inline constexpr absl::string_view kFenceSpaceNames[] = {"shared", "global", "all"};

// Whether a target has the atomic for elements of a type; and compare-and-swap.
bool has_atomic(AtomicOp op, Scalar scalar, const Target& target);
bool has_compare_and_swap(Scalar scalar);
// Whether bulk.reduce has it, for elements in global or in another block's shared memory.
bool has_bulk_reduction(AtomicOp op, Scalar scalar, Space space);
// Sums of neighbouring elements in one instruction: what they need, and where.
struct VectorSum {
  Scalar scalar;
  int count;
  Feature feature;
  bool global_only;
};
// nullptr where no architecture has it.
const VectorSum* find_vector_sum(Type vector);
// "i32, u32, f32 (bf16 from sm_90 on)": the types that it exists for, for messages.
std::string atomic_types(AtomicOp op);
// Likewise; "nothing" where there are none.
std::string bulk_reduction_types(AtomicOp op, Space space);

}  // namespace heddle::ir
