// What a kernel asks of its launches, stated in the kernel beside the code that relies on it, and checked
// by the host before anything runs. It costs nothing in the kernel.
//
//   require(a.shape(1) == b.shape(0));       // "… but a.shape(1) is 9 and b.shape(0) is 8 …"
//   require_block(256);                      // the kernel is written for blocks of 256 threads
//   min_blocks_per_sm(2);                    // of few enough registers that two fit
//   const int width = x.vector_width();
//   launch_grid(ceil_div(x.shape(0), threads_per_block() * width));
//   …
//   kernel.launch(stream, {.block = 256}, a, b, x);       // the grid is the kernel's
//
// Conditions and grids may be computed from what the host knows before a launch: integer
// parameters, shapes and strides of parameters, block_dim, grid_dim and constants, by integer
// arithmetic, comparisons, &&, || and !. Other operands are an error of the kernel.
#pragma once

#include "heddle/dsl/index.h"

namespace heddle {
namespace detail {

void emit_require(const Node& condition, SourceLoc loc);
void emit_launch_grid(const Node& x, const Node& y, const Node& z, SourceLoc loc);
// The block must have so many threads at least, for `what`.
void require_threads(int64_t threads, const char* what, SourceLoc loc);

}  // namespace detail

// A precondition of the launch. A launch for which it does not hold is refused with
// kInvalidArgument; the message has the relation, both numbers, their names and this line. It
// counts for the whole launch, even inside of a branch or loop that is never entered.
inline void require(const detail::Arg<bool>& condition) {
  detail::emit_require(condition.node, condition.loc);
}

// Fixes the block: x, y and z threads. A launch or compile() without a block gets this one; with another one it is refused.
void require_block(int x, int y = 1, int z = 1, SourceLoc loc = SourceLoc::current());

// Asks for so few registers that a multiprocessor can hold `count` blocks at once, 1 to 32: CUDA's second launch bound. Where
// that is too few, the assembler spills some to memory. CompileOptions::max_registers overrides it. Said once, of blocks whose
// threads fit in a multiprocessor together, 2048 at most.
void min_blocks_per_sm(int count, SourceLoc loc = SourceLoc::current());

// The grid of the kernel's launches, in blocks. A launch without .grid gets this one, and runs
// nothing where it is empty; a launch with another grid is refused. So the grid may follow from
// what a block does, such as a vector_width(). Called once, outside branches and loops.
inline void launch_grid(const detail::Index& x, const detail::Index& y = 1,
                        const detail::Index& z = 1) {
  detail::emit_launch_grid(x.node, y.node, z.node, x.loc);
}

}  // namespace heddle
