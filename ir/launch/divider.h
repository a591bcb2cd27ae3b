// Division of u32 by a number that is known before the kernel runs: of one that the launch knows, the host computes a
// multiplier. A quotient is a multiplication, an addition and two shifts, where a division takes some twenty instructions.
#pragma once

#include "heddle/ir/builder.h"

namespace heddle::ir {

// Of a divisor d: n / d is (n * multiplier + addend) >> 32 >> shift for all n.
struct Divider {
  ValueId multiplier, addend, shift;  // u32, u64, u32
};

// For a divisor, a u32 that is known at launch (launch_program.h). Of 0 the quotients are unspecified.
Divider make_divider(Builder& b, ValueId divisor);
// The same of a constant, which is not 0: constants.
Divider make_divider(Builder& b, uint32_t divisor);
// n / d, of u32.
ValueId quotient(Builder& b, ValueId n, const Divider& divider);

}  // namespace heddle::ir
