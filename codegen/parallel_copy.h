// Copies that happen all at once, as a sequence of single ones.
//
// Block arguments and region results leave through here: `a, b = b, a` must not read what it has
// just written.
//
//   std::vector<Copy> moves;
//   sequence_copies({{a, b}, {b, a}}, registers, &moves);   // t = a; a = b; b = t
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "heddle/codegen/registers.h"

namespace heddle::codegen {

struct Copy {
  Operand to;  // a register
  Operand from;
  bool operator==(const Copy&) const = default;
};

// Appends to `moves` what, done in order, has the effect of doing all `copies` at once. Each
// destination may occur once; sources may repeat, be destinations, be constants. Copies of a
// register to itself vanish. A cycle takes one scratch register from `registers`.
void sequence_copies(absl::Span<const Copy> copies, RegisterFile& registers,
                     std::vector<Copy>* moves);

}  // namespace heddle::codegen
