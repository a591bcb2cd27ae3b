// Pictures of matrix products: which thread has which element of a, b and c.
//
//   std::ofstream("mma.svg") << mma_svg(make_tiled_mma(parse_mma_atom("mma.m16n8k16.f32.f16.f16")));
#pragma once

#include <string>
#include <vector>

#include "heddle/dsl/mma/tiled_mma.h"

namespace heddle {

// A picture in SVG of a product's tile, and an HTML page, on which pointing at a cell shows its coordinate
// and who has it: a at the left, b, transposed, above, and c where their rows and columns meet. Each
// element shows its thread and value, in the thread's colour. A tile in shared memory is everybody's, and
// shows the numbers of its elements. "error: …" where it is not ok().
std::string mma_svg(const TiledMma& mma);
std::string mma_html(const TiledMma& mma);

// The atom of a name, as PTX orders its parts: "mma.m16n8k16.f32.bf16.bf16" has sums of f32, and a and b of
// bf16; "wgmma.m64n128k16.f32.f16.f16.rs" takes a from registers; "fma.f32". For an unknown name it is not
// ok(), and says why.
MmaAtom parse_mma_atom(const std::string& name);
// A name of each row of the table of atoms, with the least n and the first types that it has.
std::vector<std::string> mma_atom_names();

}  // namespace heddle
