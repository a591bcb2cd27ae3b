// Pictures of copy atoms: who has what before and after.
//
//   std::ofstream("ldmatrix.svg") << copy_atom_svg(make_copy_atom<half>(LdMatrix{4}));
#pragma once

#include <string>

#include "heddle/dsl/tensor/copy_atom.h"

namespace heddle {

// What the atom moves, twice: as its source's threads have it, then as its destination's, each
// element with thread and value, in the thread's colour. Matrices have a row for each of theirs,
// one below the other, and a thicker line between them. "error: …" of an atom that is not ok().
std::string copy_atom_svg(const CopyAtom& atom);

// The atom of a name: "universal.128", "cp.async.64", "ldmatrix.x4", "stmatrix.x2.trans", for
// elements of 8, 16, 32 or 64 bits. An atom that is not ok() says what it does not know.
CopyAtom parse_copy_atom(const std::string& name, int element_bits);

}  // namespace heddle
