// Pictures of copy atoms: who has what before and after.
//
//   std::ofstream("ldmatrix.svg") << copy_atom_svg(make_copy_atom<half>(LdMatrix{4}));
#pragma once

#include <string>

#include "heddle/dsl/tensor/copy_atom.h"

namespace heddle {

// A picture in SVG of what the atom moves, twice: by the source's threads and by the destination's.
// Each element shows its thread and value, in the thread's colour. Matrices lie one below the
// other, with a thicker line between them. "error: …" for an atom that is not ok().
std::string copy_atom_svg(const CopyAtom& atom);

// The atom of a name, "universal.128", "cp.async.64", "ldmatrix.x4" or "stmatrix.x2.trans", for
// elements of 8, 16, 32 or 64 bits. For an unknown name it is not ok(), and says why.
CopyAtom parse_copy_atom(const std::string& name, int element_bits);

}  // namespace heddle
