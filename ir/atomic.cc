#include "heddle/ir/atomic.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "heddle/ir/check.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/op_info.h"

namespace heddle::ir {
namespace {

bool is_word(Scalar scalar) { return admits(DataClass::kInteger, scalar); }

bool exists(AtomicOp op, Scalar scalar) {
  switch (op) {
    case AtomicOp::kAdd:
      return admits(DataClass::kNumber, scalar);
    case AtomicOp::kMin:
    case AtomicOp::kMax:
    case AtomicOp::kAnd:
    case AtomicOp::kOr:
    case AtomicOp::kXor:
      return is_word(scalar);
    case AtomicOp::kInc:
    case AtomicOp::kDec:
      return scalar == Scalar::kU32;
    case AtomicOp::kExch:
      return is_word(scalar) || scalar == Scalar::kF32 || scalar == Scalar::kF64;
  }
  check_failed(__FILE__, __LINE__, "op", "unknown atomic");
}

}  // namespace

bool has_atomic(AtomicOp op, Scalar scalar, const Target& target) {
  return exists(op, scalar) && (scalar != Scalar::kBF16 || has(target, Feature::kBf16Atomics));
}

const VectorSum* find_vector_sum(Type vector) {
  static constexpr VectorSum kSums[] = {
      {Scalar::kF16, 2, Feature::kBase, false},
      {Scalar::kBF16, 2, Feature::kBf16Atomics, false},
      {Scalar::kF16, 4, Feature::kVectorAtomics, true},
      {Scalar::kF16, 8, Feature::kVectorAtomics, true},
      {Scalar::kBF16, 4, Feature::kVectorAtomics, true},
      {Scalar::kBF16, 8, Feature::kVectorAtomics, true},
      {Scalar::kF32, 2, Feature::kVectorAtomics, true},
      {Scalar::kF32, 4, Feature::kVectorAtomics, true},
  };
  for (const VectorSum& sum : kSums) {
    if (sum.scalar == vector.scalar && sum.count == vector.count) return &sum;
  }
  return nullptr;
}

bool has_compare_and_swap(Scalar scalar) { return info(scalar).bits >= 16; }

bool has_bulk_reduction(AtomicOp op, Scalar scalar, Space space) {
  const bool global = space == Space::kGlobal;
  const bool is_half = is_float(scalar) && info(scalar).bits == 16;
  switch (op) {
    case AtomicOp::kAdd:
      return is_word(scalar) || (global && admits(DataClass::kFloat, scalar));
    case AtomicOp::kMin:
    case AtomicOp::kMax:
      return is_word(scalar) ? global || info(scalar).bits == 32 : global && is_half;
    case AtomicOp::kAnd:
    case AtomicOp::kOr:
    case AtomicOp::kXor:
      return is_word(scalar) && (global || info(scalar).bits == 32);
    case AtomicOp::kInc:
    case AtomicOp::kDec:
      return scalar == Scalar::kU32;
    case AtomicOp::kExch:
      return false;
  }
  check_failed(__FILE__, __LINE__, "op", "unknown atomic");
}

std::string atomic_types(AtomicOp op) {
  std::string text;
  for (int i = 1; i < kScalarCount; ++i) {
    const auto scalar = static_cast<Scalar>(i);
    if (!exists(op, scalar)) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", info(scalar).name,
                    scalar == Scalar::kBF16 ? " (from sm_90 on)" : "");
  }
  return text;
}

bool is_relaxed(const Op& op) {
  return op.attr(AttrKey::kOrder) == static_cast<int64_t>(MemoryOrder::kRelaxed);
}

std::string bulk_reduction_types(AtomicOp op, Space space) {
  std::string text;
  for (int i = 1; i < kScalarCount; ++i) {
    const auto scalar = static_cast<Scalar>(i);
    if (!has_bulk_reduction(op, scalar, space)) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", info(scalar).name);
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace heddle::ir
