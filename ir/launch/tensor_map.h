// The tensor maps of a kernel: what its `tensor_map` ops ask for, with the numbers of a launch.
//
//   const TensorMaps maps(kernel, layout);                     // from here on without the kernel
//   if (Status s = maps.encode(block, encode); !s.ok()) …      // writes a map into each slot
//
// The driver of a GPU encodes a TensorMap in a form of its own; the interpreter reads the argument.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "heddle/ir/diagnostic.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/launch/abi.h"
#include "heddle/ir/status.h"

namespace heddle::ir {

inline constexpr int kTensorMapBytes = 128;
inline constexpr int kTensorMapAlign = 128;
// What every tensor map asks of a tensor: of the address and the strides in bytes, and of the extents.
inline constexpr int64_t kTensorMapMultiple = 16;
inline constexpr int64_t kTensorMapMaxStride = (int64_t{1} << 40) - 1;
inline constexpr int64_t kTensorMapMaxExtent = int64_t{1} << 32;

// What a tensor_map op says of boxes, the same for each launch. Dimension 0 comes first.
struct BoxShape {
  Scalar scalar{};
  int rank = 0;
  std::array<int64_t, kMaxTensorMapRank> modes{};  // of the view
  std::array<int64_t, kMaxTensorMapRank> box{};    // elements
  int swizzle = 0;                                 // bytes; 0: none
  int promotion = 0;                               // bytes; 0: none
  bool nan_fill = false;
  // An im2col map: a box is box[1] pixels of box[0] channels; dimension d of an image has those from lower[d - 1] to
  // its extent - 1 + upper[d - 1].
  bool im2col = false;
  std::array<int64_t, kMaxTensorMapRank> lower{}, upper{};

  int64_t box_bytes() const;
  // Dimensions of an image.
  int image_rank() const { return rank - 2; }
};
BoxShape box_shape(const Kernel& kernel, const Op& tensor_map);
// The tensor_map op that says what boxes of a map are like: the map's own, or that of the parameter's map which it
// replaces.
const Op& described_map(const Kernel& kernel, ValueId map);

// A tensor map: boxes, and the tensor that a launch passes.
struct TensorMap {
  BoxShape shape;
  uint64_t address = 0;
  std::array<int64_t, kMaxTensorMapRank> extents{};  // elements
  std::array<int64_t, kMaxTensorMapRank> strides{};  // bytes
};

// Writes the 128 bytes that a device understands.
using TensorMapEncoder = absl::FunctionRef<Status(const TensorMap&, std::byte* to)>;

class TensorMaps {
 public:
  TensorMaps() = default;
  // Of a verified kernel, and the layout of its parameter block. A map without a place in the block is
  // checked alone.
  TensorMaps(const Kernel& kernel, const ParamLayout& layout);

  bool empty() const { return maps_.empty(); }
  // Checks the arguments in the parameter block by what maps ask of them, and writes the maps; those
  // of the last arguments are remembered. Of a tensor without elements there is no map. Any number of
  // threads may call it at once.
  Status encode(std::byte* block, TensorMapEncoder encoder) const;

 private:
  // A number of the block, or one that is known.
  struct Number {
    int offset = -1;  // in the block; -1: `value`
    int64_t value = 0;
  };
  struct Recipe {
    BoxShape shape;
    std::string name;  // of the parameter
    SourceLine place;
    Number address;
    std::array<Number, kMaxTensorMapRank> extents, strides;  // strides in elements
    int slot = -1;                                           // offset in the block
  };
  struct Memory;

  static int64_t read(const std::byte* block, const Number& number);
  static TensorMap tensor_of(const Recipe& recipe, const std::byte* block);
  static Status check(const Recipe& recipe, const TensorMap& map);

  std::vector<Recipe> maps_;
  std::shared_ptr<Memory> memory_;
};

}  // namespace heddle::ir
