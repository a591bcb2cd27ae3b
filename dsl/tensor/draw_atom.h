// Pictures of copy atoms: who has what before and after, and of the boxes that the copy engine fills a tile with.
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
// The same as an HTML page, on which pointing at a cell shows its coordinate and who has it.
std::string copy_atom_html(const CopyAtom& atom);

// The boxes of a tile in shared memory, one to five modes of host numbers, as box_of() makes them: their extents,
// swizzle and bytes, and at which byte of the tile each begins. "error: …" where no boxes fill it.
std::string boxes_text(const Layout& tile, ir::Scalar scalar);
// A picture of them, and an HTML page, for tiles of one or two modes: each element shows the number of its box and its
// place in the box, in the box's colour. A swizzle moves elements within the box, which shows nowhere here.
std::string boxes_svg(const Layout& tile, ir::Scalar scalar);
std::string boxes_html(const Layout& tile, ir::Scalar scalar);

// The atom of a name, "universal.128", "cp.async.64", "ldmatrix.x4" or "stmatrix.x2.trans", for
// elements of 8, 16, 32 or 64 bits. For an unknown name it is not ok(), and says why.
CopyAtom parse_copy_atom(const std::string& name, int element_bits);

}  // namespace heddle
