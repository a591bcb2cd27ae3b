// Kernels as text: one op a line, the same text for the same kernel in every run, and parser.h
// reads it back.
//
//   kernel @scale(%x: view<f32, global, 1> [?] strides [1], %n: i32) block(256, 1, 1)
//       cluster(1, 1, 1) target(sm_90a) facts(%x align 16) {
//     %i = thread_idx {axis = x} : i32
//     %ok = bounds %x, %i : check
//     %0 = load %x, %i, %ok : f32
//     %two = const 2.0 : f32
//     %1 = mul %0, %two : f32
//     store %x, %1, %i, %ok
//   }
//
// A value is called by its hint, `%acc`, then `%acc.1` for the next of that name; those without a
// hint are numbered in the order in which they appear. Types follow ` : ` where an op has results,
// and stand nowhere else. `;` starts a comment.
//
// Structured ops bind the arguments of their regions where their first values stand:
//
//   %sum = for %i in %tid .. %n step %k carry(%acc = %zero) : f32 {
//     ...
//     yield %next
//   }
//   %last = while carry(%a = %x0) : i32 {
//     ...
//     yield %go_on
//   } do(%a.1) {
//     ...
//     yield %a.2
//   }
//   %v = if %p : f32 {
//     yield %u
//   } else {
//     yield %w
//   }
//
// An `else` that only yields nothing is left out. The kernel's body has no yield.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/ir/kernel.h"

namespace heddle::ir {

struct PrintOptions {
  bool locs = false;  // each op with its place in the user's source: loc("row_sum.cc":14)
  // Values by their ids, %acc.57 and %v58, which passes leave alone: for texts that are compared. Such a text reads
  // back, but not as itself.
  bool by_id = false;
};

std::string print(const Kernel& kernel, PrintOptions options = {});

// How the text calls each value of a kernel, for whoever prints many of them.
class ValueNames {
 public:
  explicit ValueNames(const Kernel& kernel, bool by_id = false);

  // With its percent sign. Values that are not part of the kernel's text are "%?7", by their id.
  std::string of(ValueId id) const;

 private:
  std::vector<std::string> names_;
};

// One op on one line, its regions as `{ ... }`.
std::string print_op(const Kernel& kernel, OpId op);
std::string print_op(const Kernel& kernel, OpId op, const ValueNames& names);

// As `facts(…)` has it: "%x extent_div 1 4".
std::string print_fact(const Kernel& kernel, const Guard& guard, const ValueNames& names);

}  // namespace heddle::ir
