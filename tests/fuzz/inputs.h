// What a fuzzed kernel is launched with. All of it follows from the kernel's signature and a seed,
// so that a reduced kernel's text and the number of its seed say everything.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/ir/kernel.h"

namespace heddle::fuzz {

// Slots of each thread in every buffer that it writes, and threads in all.
inline constexpr int kSlotsPerThread = 8;
inline constexpr int kMaxThreads = 256;
inline constexpr int kElements = kSlotsPerThread * kMaxThreads;

struct Inputs {
  struct Argument {
    uint64_t scalar = 0;
    size_t buffer = 0;  // views: which one
    size_t start = 0;   // views: the byte of it where they begin
  };
  std::vector<Argument> arguments;            // by parameter
  std::vector<std::vector<uint8_t>> buffers;  // kElements each, from where their views begin
  ir::Dim3 grid{1, 1, 1};
  ir::Dim3 block{32, 1, 1};
};

// Scalars at the edges of their types and anywhere, memory of any bits. Views of one type that may
// be written share a buffer for some seeds, unless a fact says that one of them does not overlap. Views begin
// where their facts of alignment let them; those that have none, at a multiple of 16 bytes.
Inputs inputs_for(const ir::Kernel& kernel, uint64_t seed);

// The grid that a seed is launched with: one block or two.
ir::Dim3 grid_for(uint64_t seed);

// A number at or near an edge of the type: zero, powers of two, the least and the greatest.
uint64_t edge_bits(ir::Scalar scalar, uint64_t random);

}  // namespace heddle::fuzz
