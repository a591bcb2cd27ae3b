// Division of u32 by a number that the launch knows: the host computes a multiplier for it, and a quotient is a
// multiplication, an addition and two shifts, where a division takes some twenty instructions.
#pragma once

#include "heddle/ir/builder.h"

namespace heddle::ir {

// Of a divisor d: n / d is (n * multiplier + addend) >> 32 >> shift for all n.
struct Divider {
  ValueId multiplier, addend, shift;  // at_launch: u32, u64, u32
};

// For a divisor, a u32 that is known at launch (launch_program.h). Of 0 the quotients are unspecified.
Divider make_divider(Builder& b, ValueId divisor);
// n / d, of u32.
ValueId quotient(Builder& b, ValueId n, const Divider& divider);

}  // namespace heddle::ir
