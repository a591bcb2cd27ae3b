// How arguments lie in a kernel's parameter block: the one layout that the emitter declares, the
// launch fills and the interpreter reads.
//
// Parameters follow each other in order. A scalar takes its size, aligned to it. A view takes a
// 64-bit address, then a 64-bit extent for each mode whose extent the launch decides, then a 64-bit
// stride, in elements, for each mode whose stride the launch decides. A pointer (an unbounded view)
// is its address alone. Behind them lie the values of the kernel's `at_launch` ops, which the host
// computes from the arguments (launch_program.h), and its tensor maps (tensor_map.h).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "heddle/ir/kernel.h"

namespace heddle::ir {

enum class SlotKind : uint8_t { kScalar, kAddress, kExtent, kStride };

struct ParamSlot {
  SlotKind kind;
  int param;   // index in Kernel::params
  int dim;     // extents and strides: which mode
  int offset;  // bytes from the block's start
  int bytes;
};

// A value that the host computes for each launch.
struct LaunchSlot {
  absl::InlinedVector<OpId, 1> ops;  // the at_launch ops that stand for it
  int offset;
  int bytes;
};

// A tensor map, which the host encodes for each launch.
struct MapSlot {
  OpId op;
  int offset;
};

struct ParamLayout {
  std::vector<ParamSlot> slots;
  std::vector<LaunchSlot> at_launch;
  std::vector<MapSlot> tensor_maps;
  int bytes = 0;

  // A place for so many more bytes, aligned to their number or as given; where it starts.
  int append(int count) { return append(count, count); }
  int append(int count, int align);
  // Where each parameter lies, in the order of their declaration: arguments, values, maps.
  std::vector<int> places() const;
  // Where the map of a tensor_map op lies; -1 where it has no place.
  int offset_of_map(OpId tensor_map) const;
  // The slot's offset; nullptr where the parameter has no such slot (a constant extent, say).
  const ParamSlot* find(SlotKind kind, int param, int dim = 0) const;
};

// At most 4096 bytes fit in a launch (32764 on sm_70 and up): the verifier counts
// the arguments, the emitter what the launch computes behind them too.
inline constexpr int kMaxParamBytes = 4096;

// Of the arguments alone, as the interpreter reads them.
ParamLayout param_layout(const Kernel& kernel);

}  // namespace heddle::ir
