// The boxes of copy atoms: which fill a tile, and whether they fill another one too. Not for users.
#pragma once

#include "heddle/dsl/tensor/tma_atom.h"

namespace heddle::detail {

// Finds the boxes of a tile, and cuts them into slices. `order`: its modes from the slowest to the fastest but for the
// contiguous one. False where there are none, which is reported.
bool find_boxes(const AnyTensor& shared, absl::Span<const int> order, int slices, const char* what,
                SourceLoc loc, TileBoxes* boxes);

// Whether an atom's boxes fill a tile; if not, that is reported.
bool fills(const TileBoxes& boxes, const AnyTensor& shared, absl::Span<const int> order,
           SourceLoc loc);

}  // namespace heddle::detail
