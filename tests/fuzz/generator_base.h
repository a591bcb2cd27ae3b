// What the parts of the generator share: the kernel under construction, what is in scope, and
// values of any type.
#pragma once

#include <random>
#include <vector>

#include "absl/types/span.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/kernel.h"

namespace heddle::fuzz {

using ir::AttrKey;
using ir::Opcode;
using ir::Scalar;
using ir::Scope;
using ir::Type;
using ir::ValueId;

inline constexpr Scalar kIntegers[] = {Scalar::kI32, Scalar::kU32, Scalar::kI64, Scalar::kU64};
inline constexpr Scalar kFloats[] = {Scalar::kF32, Scalar::kF64, Scalar::kF16, Scalar::kBF16};
inline constexpr Scalar kStorage[] = {Scalar::kI8,  Scalar::kU8,   Scalar::kI16,
                                      Scalar::kU16, Scalar::kE4M3, Scalar::kE5M2};

class GeneratorBase {
 protected:
  explicit GeneratorBase(uint64_t seed) : random_(seed), kernel_("fuzz"), b_(kernel_) {}

  // --- Chance ---
  // A seed means the same program whatever compiler built this. The order in which a call's arguments are
  // computed is the compiler's, so at most one of them may draw a number or make an op; a list in braces has
  // an order.
  size_t below(size_t n) { return static_cast<size_t>(random_() % n); }
  bool chance(int percent) { return static_cast<int>(below(100)) < percent; }
  template <class T, size_t kCount>
  T one_of(const T (&list)[kCount]) {
    return list[below(kCount)];
  }

  // --- Ops ---
  // As Builder::create; the result is in scope from here on. It agrees among as many threads as its
  // operands do.
  ValueId make(Opcode opcode, absl::Span<const ValueId> operands, Type type = Type::none(),
               absl::Span<const ir::Attr> attrs = {});
  ValueId make(Opcode opcode, std::initializer_list<ValueId> operands, Type type = Type::none(),
               std::initializer_list<ir::Attr> attrs = {}) {
    return make(opcode, absl::Span<const ValueId>(operands.begin(), operands.size()), type,
                absl::Span<const ir::Attr>(attrs.begin(), attrs.size()));
  }
  // A value that is in scope from here on and the same for the threads of `level`.
  ValueId keep(ValueId value, Scope level = Scope::kThread);

  // --- Values ---
  Scalar any_scalar();  // one that is computed with
  Type any_type();      // of data that is computed with
  Type shaped(Scalar scalar);
  ValueId constant(Type type);
  ValueId number(Type type, int64_t value) { return b_.constant_int(type, value); }
  // Mostly one that is in scope, else a constant, or made from one that is.
  ValueId any(Type type);
  // One that is the same for all threads of that level.
  ValueId agreed(Scalar scalar, Scope level);
  // Between 0 and `mask`, which is a power of two less one.
  ValueId masked(Scalar scalar, int64_t mask);
  // In range for an index of a power of two of elements.
  ValueId index_below(int64_t elements) {
    return masked(chance(70) ? Scalar::kI32 : Scalar::kI64, elements - 1);
  }
  bool is_agreed(ValueId value, Scope level) const { return level_[value] >= level; }

  // What is made inside a region ends with it.
  template <class Body>
  void scope(Body body) {
    const std::vector<ValueId> values = values_;
    const std::vector<ValueId> slots = slots_;
    body();
    values_ = values;
    slots_ = slots;
  }

  std::mt19937_64 random_;
  ir::Kernel kernel_;
  ir::Builder b_;
  std::vector<ValueId> values_;  // data in scope
  std::vector<ValueId> slots_;   // variables in scope
  ir::IdMap<ValueId, Scope> level_{Scope::kThread};
  bool floats_ = true;
};

}  // namespace heddle::fuzz
