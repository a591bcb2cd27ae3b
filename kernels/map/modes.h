// The modes of tensors that are read and written together, element by element: as few of them as their strides allow,
// and how a kernel walks through them. Internal to the kernels.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/kernels/vectors.h"
#include "heddle/runtime/heddle.h"

namespace heddle::kernels::detail {

// Modes that a tensor of a map has, and inputs of a map, at most.
inline constexpr int kMapModes = 5, kMapInputs = 4;

// A tensor without its type, and its number among the map's arguments.
struct MapTensor {
  int argument = 0;
  uint64_t address = 0;
  int element_bytes = 1;
  absl::InlinedVector<int64_t, kMapModes> extents, strides;  // the last mode is the innermost
};

// Modes that tensors have in common, from the outermost to the innermost, and the strides of each along them: 0 where all
// of a mode meets one element.
struct MapModes {
  struct Strides {
    uint64_t address = 0;
    int element_bytes = 1;
    std::array<int64_t, kMapModes> of = {};
  };
  int count = 0;
  std::array<int64_t, kMapModes> extents = {};
  absl::InlinedVector<Strides, kMapInputs> inputs;
  Strides output;
  // What tells problems apart: extents, and of each tensor the strides and where it begins.
  std::string to_string() const;
};

// The modes of an output and of inputs that are broadcast to it, as numpy does: an input's modes are the output's last
// ones, of the same extents or of one element. The output's strides do not increase from one mode to the next, modes
// that can be one are one, and none has one element alone, but where there is no other.
// kInvalidArgument for other extents, negative ones and more than 2^63 - 1 elements, for outputs of which several elements
// share a place by a stride of 0, and for inputs that begin where the output does but have other strides or elements.
StatusOr<MapModes> common_modes(const char* name, absl::Span<const MapTensor> inputs,
                                const MapTensor& output);

// How an input's elements are read.
enum class MapRead : uint8_t {
  kVector,   // as many at once as are stored
  kSingle,   // one by one
  kSame,     // one for all along the innermost mode
  kThrough,  // along another mode than the output's, through shared memory
};

// Threads of a block; elements that one holds along the innermost mode of inputs that go through shared memory; how many
// inputs may.
inline constexpr int kMapThreads = 256, kMapAcross = 4, kMostTiles = 2;
// Bytes that a thread loads and stores at once where rows begin anywhere; and of a sector, in which memory is written:
// stores of whole ones are the fastest.
inline constexpr int kWordBytes = 4, kSectorBytes = 32;
// Vectors that a thread takes from tiles together.
inline constexpr int kMapTogether = 4;

// How the modes are walked through.
struct MapDeal {
  int modes = 1;
  int width = 1;  // elements that a thread stores at once
  bool peeled =
      false;  // vectors begin where the output's memory is aligned, so that the first and last may be in part
  int vectors = 1;  // of a thread, whose loads are under way together
  std::array<MapRead, kMapInputs> reads = {};
  // Where inputs go through shared memory: tiles of the two innermost modes, the inputs' own innermost mode being the
  // output's last but one.
  bool tiled = false;
  int across = 32;   // threads along that mode; the others are along the innermost
  int group = 4;     // elements that a thread holds along the innermost one
  int in_width = 1;  // elements that it loads at once, along the other
  // Where rows begin anywhere: elements of a tile along the inputs' innermost mode, and along the output's; its rows of the
  // output begin where memory is aligned.
  int shifted_across = 0, shifted_down = 0;
  bool floods = false;  // the launch floods L2 (kernels/l2.h); no part of what is chosen
  friend bool operator==(const MapDeal&, const MapDeal&) = default;
  // What tells deals of the same modes apart.
  std::string to_string() const;

  bool is_shifted() const { return shifted_down > 0; }
  // Elements of a tile along the inputs' innermost mode, and along the output's.
  int tile_across() const { return is_shifted() ? shifted_across : across * kMapAcross; }
  int tile_down() const { return is_shifted() ? shifted_down : kMapThreads / across * group; }
  // Tiles along the output's innermost mode, of so many elements of so many bytes.
  template <class Extent>
  Extent tiles_down(const Extent& columns, int bytes) const {
    const int lead = is_shifted() ? kSectorBytes / bytes - 1 : 0;
    return (columns + (lead + tile_down() - 1)) / tile_down();
  }
  // Vectors of which a row of so many elements has a part at least.
  template <class Extent>
  Extent vectors_of_row(const Extent& columns) const {
    return (columns + (width - 1)) / width + (peeled ? 1 : 0);
  }
};

// A walk, and the modes as it takes them: where inputs go through shared memory the output's last but one mode is these
// inputs' innermost.
struct MapPlan {
  MapDeal deal;
  MapModes modes;
};
MapPlan plan_map(MapModes modes);
// Where inputs go through shared memory, all deals that are worth measuring, plan_map()'s first; else that one alone.
std::vector<MapDeal> map_deals(const MapModes& modes);
// As plan_map(), by the deal that `heddle tune` has found for the map of this name, if it has.
MapPlan plan_tuned_map(absl::string_view map, MapModes modes, const DeviceInfo& device);

// The launch. Elements along the innermost mode, or tiles, are counted in 32 bits: of what in_slabs() gives they are few enough.
LaunchShape map_shape(const MapPlan& plan);

// Calls launch(modes) of parts that kernels can count: along one mode, so that each part's strides are the whole's.
Status in_slabs(const MapModes& modes, absl::FunctionRef<Status(const MapModes&)> launch);

}  // namespace heddle::kernels::detail
