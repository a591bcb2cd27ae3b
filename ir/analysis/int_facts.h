// What is known of integers before the kernel runs: bounds and divisors. Layouts ask while tracing,
// passes ask later; both get the same answers.
//
//   IntAnalysis ints(kernel);
//   IntFacts f = ints.of(offset);            // {0, 1023, 4}
//   if (f.divisible_by(4)) ...               // a 16-byte access of f32 is aligned
//
// Answers are remembered. A value's facts hold for every thread that computes it, every trip of a
// loop and every element of a vector, and go on holding while passes rewrite the kernel, for a value
// keeps its meaning. The kernel may still be under construction: then the carried values of an unfinished
// loop are unknown, its induction variable is not.
//
// Arithmetic that may wrap loses its bounds, and its divisor but for the power of two in it.
// Results that ops.def calls unspecified (x / 0) are taken not to happen.
//
// Facts about arguments: a divisor that comes from an argument's extent or stride reads its fact,
// which makes the fact a guard of the compiled code, so ask for a divisor only where the answer
// changes what you do. Ranges never read a fact that has not been read before.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "heddle/ir/analysis/int_range.h"
#include "heddle/ir/kernel.h"

namespace heddle::ir {

struct IntFacts {
  // Inclusive. u64 as int_range.h says: read as i64. Values that are no integers: everything.
  int64_t min = IntRange().min;
  int64_t max = IntRange().max;
  // The greatest known divisor of every value it can have; at least 1, but 0 for a value that is
  // always zero, which everything divides.
  int64_t divisor = 1;
  bool operator==(const IntFacts&) const = default;

  bool divisible_by(int64_t d) const { return divisor % d == 0; }
  bool is_constant() const { return min == max; }
};

// What an assume_range promises.
IntFacts promised_facts(const Op& assume_range);

// The largest power of two in a divisor; 0 for 0.
constexpr int64_t power_of_two_in(int64_t divisor) { return divisor & -divisor; }

// Whether divisors may read facts about arguments.
enum class FactUse : uint8_t { kAsk, kIgnore };

// Whether a value's range counts on the conditions of the ifs around its op. It then holds only where
// the op stands, so passes that move ops out of ifs must ignore them.
enum class BranchUse : uint8_t { kHeed, kIgnore };

class IntAnalysis {
 public:
  // `kernel` must outlive the analysis.
  explicit IntAnalysis(const Kernel& kernel, FactUse facts = FactUse::kAsk,
                       BranchUse branches = BranchUse::kHeed);
  ~IntAnalysis();
  IntAnalysis(const IntAnalysis&) = delete;
  IntAnalysis& operator=(const IntAnalysis&) = delete;

  IntFacts of(ValueId value);
  IntRange range(ValueId value);
  // The range of an op's operand where the op stands, by the conditions of the ifs around it too.
  IntRange range_at(const Op& op, ValueId operand);
  int64_t divisor(ValueId value);
  // divisor(value) is a multiple of d. Asks cheap questions first, so that a fact is read only
  // where the answer hangs on it.
  bool divisible(ValueId value, int64_t d);

  // What is known of the number of trips of a `for`, from the ranges of its operands: it runs at
  // least once; it runs exactly once; it never runs.
  struct Trips {
    bool at_least_one = false;
    bool exactly_one = false;
    bool none = false;
  };
  Trips trips(OpId for_op);

  // A value of the kernel's body for which the ranges of this and another analysis do not overlap, in words; empty
  // where there is none.
  std::string disagreement(IntAnalysis& other);

 private:
  class Ranges;
  class Divisors;
  const Kernel& kernel_;
  std::unique_ptr<Ranges> ranges_;
  std::unique_ptr<Divisors> divisors_;
};

}  // namespace heddle::ir
