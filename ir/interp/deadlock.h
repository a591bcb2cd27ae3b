// What to say where no warp can go on. Internal.
#pragma once

#include <vector>

#include "heddle/ir/interp/machine.h"

namespace heddle::ir::interp {

// Whether all its warps have ended.
bool is_done(const Block& block);

// None of these blocks can go on: reports who waits for what, by the last block that has not ended.
void report_deadlock(const std::vector<Block*>& blocks);

}  // namespace heddle::ir::interp
