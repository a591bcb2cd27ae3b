// Integers as sums of multiples: which accesses of a thread are neighbours.
//
//   %1 = mul %row, %pitch       1 × %1 + 1 × %col + 3
//   %2 = add %1, %col      →
//   %3 = add %2, 3
//
// A sum is exact modulo 2^n, where n is the width of the value's type. An i32 that is extended to 64
// bits is taken apart only where no addition in it can wrap.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "heddle/ir/analysis/int_facts.h"
#include "heddle/ir/kernel.h"

namespace heddle::ir {

// factor₀ × value₀ + factor₁ × value₁ + … + constant.
struct LinearSum {
  struct Term {
    ValueId value;
    int64_t factor;
    friend bool operator==(const Term&, const Term&) = default;
  };
  absl::InlinedVector<Term, 3> terms;  // by value, each once, no factor of 0
  int64_t constant = 0;
  int bits = 0;  // it is exact modulo 2^bits: the width of the value's type

  // Whether they differ by a constant: never of sums of different widths, one of which may wrap.
  bool is_beside(const LinearSum& other) const {
    return bits == other.bits && terms == other.terms;
  }
  // How often a value is in it.
  int64_t factor_of(ValueId value) const;
};

// Remembers sums. They stay true as long as the values in them are part of the kernel.
class LinearSums {
 public:
  // Both must outlive it.
  LinearSums(const Kernel& kernel, IntAnalysis& ints) : kernel_(kernel), ints_(ints) {}

  // Of an integer. Long sums are cut short: parts of them count as values of their own.
  LinearSum of(ValueId value) { return sum_of(value, 0); }

  // A sum that names a value which the kernel has no longer, in words; empty where there is none.
  std::string disagreement(const LinearSums& fresh) const;

 private:
  LinearSum sum_of(ValueId value, int depth);
  LinearSum take_apart(ValueId value, int depth);
  // Of an i32 that is extended by its sign: taken apart as far as no addition wraps.
  LinearSum extended(ValueId value, int depth);
  // factor_a * a + factor_b * b, of a value of that width.
  LinearSum combined(const LinearSum& a, int64_t factor_a, const LinearSum& b, int64_t factor_b,
                     ValueId value) const;

  const Kernel& kernel_;
  IntAnalysis& ints_;
  IdMap<ValueId, int32_t> at_{-1};  // in sums_
  std::vector<LinearSum> sums_;
};

}  // namespace heddle::ir
