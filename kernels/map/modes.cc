#include "heddle/kernels/map/modes.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/runtime/tuning/tunable.h"

namespace heddle::kernels::detail {
namespace {

// Elements of a launch, at most.
constexpr int64_t kMostElements = int64_t{1} << 30;
// Vectors of a thread that are under way together, at most: narrow ones, of which more are needed to keep memory busy.
constexpr int kMostVectors = 8;
// What a tile has side by side of an input's elements: as much as of the output's where both are read and written in
// vectors. Else less, since what is stored at odd places is better stored in longer runs.
constexpr int kRunBytes = 256, kOddRunBytes = 128;
// Of fewer elements along either mode shifted tiles would be empty for the most part.
constexpr int64_t kLeastShifted = 64;
// Rows of fewer vectors than this are not worth elements at their edges.
constexpr int64_t kVectorsOfRow = 4;

int64_t power_of_two(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

std::string extents_text(const MapTensor& tensor) {
  return absl::StrCat("[", absl::StrJoin(tensor.extents, ", "), "]");
}

// f(strides) of each tensor.
template <class Modes, class F>
void each_tensor(Modes& modes, F f) {
  for (auto& input : modes.inputs) f(input);
  f(modes.output);
}

void drop_mode(MapModes& modes, int mode) {
  std::copy(modes.extents.begin() + mode + 1, modes.extents.end(), modes.extents.begin() + mode);
  each_tensor(modes, [&](auto& tensor) {
    std::copy(tensor.of.begin() + mode + 1, tensor.of.end(), tensor.of.begin() + mode);
  });
  --modes.count;
}

// Puts a mode in another's place, and those between them one further on.
void move_mode(MapModes& modes, int from, int to) {
  const auto move = [&](std::array<int64_t, kMapModes>& of) {
    if (from < to) std::rotate(of.begin() + from, of.begin() + from + 1, of.begin() + to + 1);
    if (to < from) std::rotate(of.begin() + to, of.begin() + from, of.begin() + from + 1);
  };
  move(modes.extents);
  each_tensor(modes, [&](auto& tensor) { move(tensor.of); });
}

// Whether walking through `inner` within `outer` is walking through one mode.
bool are_one(const MapModes& modes, int outer, int inner) {
  bool one = true;
  each_tensor(modes, [&](const auto& tensor) {
    one = one && tensor.of[outer] == tensor.of[inner] * modes.extents[inner];
  });
  return one;
}

MapModes simplified(MapModes modes) {
  for (int mode = modes.count - 1; mode >= 0 && modes.count > 1; --mode) {
    if (modes.extents[mode] == 1) drop_mode(modes, mode);
  }
  // An insertion sort, which keeps the order of equal strides.
  for (int i = 1; i < modes.count; ++i) {
    int to = i;
    while (to > 0 && std::abs(modes.output.of[to - 1]) < std::abs(modes.output.of[i])) --to;
    move_mode(modes, i, to);
  }
  for (int mode = modes.count - 1; mode > 0; --mode) {
    if (!are_one(modes, mode - 1, mode)) continue;
    modes.extents[mode] *= modes.extents[mode - 1];
    drop_mode(modes, mode - 1);
  }
  return modes;
}

// What decides how a tensor can be read or written in vectors along its mode `inner`.
class Rows {
 public:
  Rows(const MapModes& modes, const MapModes::Strides& tensor, int inner)
      : modes_(modes), tensor_(tensor), inner_(inner) {}

  bool is_dense() const { return tensor_.of[inner_] == 1; }
  bool is_same() const { return tensor_.of[inner_] == 0; }
  // Whether all rows begin where vectors of this width do.
  bool begin_at(int width) const {
    return is_dense() && first() % width == 0 &&
           all_strides([&](int64_t stride, int) { return stride % width == 0; });
  }
  // Whether in both tensors rows begin equally far behind the beginnings of vectors.
  bool begin_as(const Rows& other, int width) const {
    return is_dense() && (first() - other.first()) % width == 0 &&
           all_strides([&](int64_t stride, int mode) {
             return (stride - other.tensor_.of[mode]) % width == 0;
           });
  }

 private:
  int64_t first() const {
    return static_cast<int64_t>(tensor_.address % 4096) / tensor_.element_bytes;
  }
  template <class Holds>
  bool all_strides(Holds holds) const {
    for (int mode = 0; mode < modes_.count; ++mode) {
      if (mode != inner_ && !holds(tensor_.of[mode], mode)) return false;
    }
    return true;
  }

  const MapModes& modes_;
  const MapModes::Strides& tensor_;
  const int inner_;
};

// How inputs are read by vectors of a width, and how many accesses that takes for an element.
struct Accesses {
  int width = 1;
  bool peeled = false;
  std::array<MapRead, kMapInputs> reads = {};
  double of_element = 0;
};

Accesses accesses(const MapModes& modes, int width, bool peeled) {
  const int inner = modes.count - 1;
  const Rows output(modes, modes.output, inner);
  Accesses all{width, peeled, {}, 1.0 / width};
  for (size_t i = 0; i < modes.inputs.size(); ++i) {
    const Rows input(modes, modes.inputs[i], inner);
    const bool vectors = peeled ? input.begin_as(output, width) : input.begin_at(width);
    all.reads[i] = input.is_same() ? MapRead::kSame : vectors ? MapRead::kVector : MapRead::kSingle;
    all.of_element += all.reads[i] == MapRead::kSingle ? 1 : 1.0 / width;
  }
  return all;
}

// The fewest accesses, without elements at the edges of rows where that takes no more.
Accesses best_accesses(const MapModes& modes, bool may_peel) {
  const int inner = modes.count - 1;
  const Rows output(modes, modes.output, inner);
  int bytes = 1;
  each_tensor(modes, [&](const auto& tensor) { bytes = std::max(bytes, tensor.element_bytes); });
  Accesses best = accesses(modes, 1, false);
  for (int width = 2; width <= kVectorBytes / bytes; width *= 2) {
    const bool exact = output.begin_at(width) && modes.extents[inner] % width == 0;
    const bool peeled =
        may_peel && output.is_dense() && modes.extents[inner] >= kVectorsOfRow * width;
    if (!exact && !peeled) continue;
    const Accesses other = accesses(modes, width, !exact);
    if (other.of_element < best.of_element) best = other;
  }
  return best;
}

// The mode along which inputs are dense that are not along the innermost one: of the first such input. -1: none is.
int dense_mode(const MapModes& modes, const MapModes::Strides& input) {
  const int inner = modes.count - 1;
  if (input.of[inner] == 0 || input.of[inner] == 1) return -1;
  for (int mode = inner - 1; mode >= 0; --mode) {
    if (input.of[mode] == 1) return mode;
  }
  return -1;
}
int dense_mode(const MapModes& modes) {
  if (modes.output.of[modes.count - 1] != 1) return -1;
  for (const MapModes::Strides& input : modes.inputs) {
    if (const int mode = dense_mode(modes, input); mode >= 0) return mode;
  }
  return -1;
}

// Inputs that are dense along `dense` through shared memory; tiles are still to be dealt out.
struct ThroughTiles {
  MapPlan plan;
  int bytes = 1;     // of the largest element of these inputs
  int least = 1;     // of the smallest one
  bool odd = false;  // vectors are single elements, of these inputs or of the output
  int64_t along() const { return plan.modes.extents[plan.modes.count - 2]; }
  int64_t inner() const { return plan.modes.extents[plan.modes.count - 1]; }
};
ThroughTiles through_tiles(MapModes modes, int dense) {
  const int along = modes.count - 2;
  move_mode(modes, dense, along);
  const Accesses best = best_accesses(modes, false);
  MapDeal deal{.modes = modes.count, .width = best.width, .reads = best.reads, .tiled = true};
  int bytes = 1, least = kVectorBytes, through = 0;
  deal.in_width = kMapAcross;
  for (size_t i = 0; i < modes.inputs.size(); ++i) {
    const MapModes::Strides& input = modes.inputs[i];
    if (dense_mode(modes, input) != along || through == kMostTiles) continue;
    deal.reads[i] = MapRead::kThrough;
    ++through;
    bytes = std::max(bytes, input.element_bytes);
    least = std::min(least, input.element_bytes);
    const Rows rows(modes, input, along);
    while (!rows.begin_at(deal.in_width) || modes.extents[along] % deal.in_width != 0 ||
           deal.in_width * input.element_bytes > kVectorBytes) {
      deal.in_width /= 2;
    }
  }
  const bool odd = deal.in_width == 1 || deal.width == 1;
  return {{deal, std::move(modes)}, bytes, least, odd};
}

// Tiles that have `run` bytes side by side of an input's elements.
MapDeal in_tiles(const ThroughTiles& through, int run) {
  MapDeal deal = through.plan.deal;
  deal.group = static_cast<int>(
      std::min<int64_t>(kVectorBytes / through.bytes, power_of_two(through.inner())));
  // Threads along each mode, but no more than it has elements for.
  const int64_t across = power_of_two(divide_up(through.along(), kMapAcross)),
                down = power_of_two(divide_up(through.inner(), deal.group)),
                wanted = std::min<int64_t>(across, run / through.bytes / kMapAcross);
  deal.across =
      static_cast<int>(std::clamp<int64_t>(wanted, divide_up(kMapThreads, down), kMapThreads));
  return deal;
}
MapDeal in_tiles(const ThroughTiles& through) {
  return in_tiles(through, through.odd ? kOddRunBytes : kRunBytes);
}

// Tiles whose rows of the output begin where memory is aligned.
std::optional<MapDeal> in_shifted_tiles(const ThroughTiles& through) {
  const int of_output = through.plan.modes.output.element_bytes,
            most = std::max(through.bytes, of_output), least = std::min(through.least, of_output);
  if (most > kWordBytes || std::min(through.along(), through.inner()) < kLeastShifted)
    return std::nullopt;
  MapDeal deal = through.plan.deal;
  deal.width = kWordBytes / of_output;
  deal.in_width = 1;  // of no use here
  // Vectors of that width begin anywhere in other inputs.
  for (MapRead& read : deal.reads) read = read == MapRead::kVector ? MapRead::kSingle : read;
  // A warp's words of a row, of which the first one may begin in front of the tile: whole words of all.
  const int unit = kWordBytes / least,
            across = (kWarpSize - (most < kWordBytes ? 1 : 0)) * kWordBytes / most;
  deal.shifted_across = across / unit * unit;
  deal.shifted_down = most == kWordBytes ? 128 : 256;
  return deal;
}

// Shifted ones where vectors of the others would be single elements.
MapDeal best_tiles(const ThroughTiles& through) {
  if (!through.odd) return in_tiles(through);
  const std::optional<MapDeal> shifted = in_shifted_tiles(through);
  return shifted ? *shifted : in_tiles(through);
}

}  // namespace

StatusOr<MapModes> common_modes(const char* name, absl::Span<const MapTensor> inputs,
                                const MapTensor& output) {
  MapModes modes;
  modes.count = static_cast<int>(output.extents.size());
  std::copy(output.extents.begin(), output.extents.end(), modes.extents.begin());
  modes.output = {output.address, output.element_bytes, {}};
  std::copy(output.strides.begin(), output.strides.end(), modes.output.of.begin());
  int64_t elements = 1;
  bool too_many = false;
  for (int mode = 0; mode < modes.count; ++mode) {
    if (modes.extents[mode] < 0) {
      return InvalidArgumentError(absl::StrCat(name, ": the output ", extents_text(output),
                                               " has a negative extent in mode ", mode));
    }
    too_many |= __builtin_mul_overflow(elements, modes.extents[mode], &elements);
    if (modes.extents[mode] > 1 && modes.output.of[mode] == 0) {
      return InvalidArgumentError(absl::StrCat(
          name, ": the output ", extents_text(output), " has stride 0 along mode ", mode,
          ", so that several elements would be stored in one place; give it memory for each"));
    }
  }
  if (too_many) {
    return InvalidArgumentError(absl::StrCat(name, ": the output ", extents_text(output),
                                             " has more than 2^63 - 1 elements"));
  }
  for (const MapTensor& input : inputs) {
    const auto modes_of = static_cast<int>(input.extents.size());
    const int missing = modes.count - modes_of;
    bool fits = missing >= 0;
    MapModes::Strides strides{input.address, input.element_bytes, {}};
    for (int mode = 0; fits && mode < modes_of; ++mode) {
      const int64_t extent = input.extents[mode];
      fits = extent == 1 || extent == modes.extents[missing + mode];
      strides.of[missing + mode] = extent == 1 ? 0 : input.strides[mode];
    }
    if (!fits) {
      return InvalidArgumentError(absl::StrCat(name, ": argument ", input.argument, " is ",
                                               extents_text(input), " and the output ",
                                               extents_text(output),
                                               "; an input's modes are the output's last ones, "
                                               "each as long as there or of one element"));
    }
    bool same = input.element_bytes == output.element_bytes;
    for (int mode = 0; mode < modes.count; ++mode) {
      same = same && (modes.extents[mode] == 1 || strides.of[mode] == modes.output.of[mode]);
    }
    if (input.address == output.address && !same && elements > 0) {
      return InvalidArgumentError(
          absl::StrCat(name, ": argument ", input.argument,
                       " begins where the output does, with other strides or elements, so that "
                       "elements would be overwritten before they are read; give the output memory "
                       "of its own"));
    }
    modes.inputs.push_back(strides);
  }
  return simplified(std::move(modes));
}

MapPlan plan_map(MapModes modes) {
  if (const int dense = dense_mode(modes); dense >= 0) {
    ThroughTiles through = through_tiles(std::move(modes), dense);
    return {best_tiles(through), std::move(through.plan.modes)};
  }
  const Accesses best = best_accesses(modes, true);
  const int bytes = best.width * modes.output.element_bytes;
  return {{.modes = modes.count,
           .width = best.width,
           .peeled = best.peeled,
           .vectors = std::clamp(kVectorBytes / bytes, 1, kMostVectors),
           .reads = best.reads},
          std::move(modes)};
}

std::vector<MapDeal> map_deals(const MapModes& modes) {
  std::vector<MapDeal> deals = {plan_map(modes).deal};
  const int dense = dense_mode(modes);
  if (dense < 0) return deals;
  const ThroughTiles through = through_tiles(modes, dense);
  const auto add = [&](const MapDeal& deal) {
    if (!absl::c_linear_search(deals, deal)) deals.push_back(deal);
  };
  for (int run = kOddRunBytes; run <= 2 * kRunBytes; run *= 2) add(in_tiles(through, run));
  if (const std::optional<MapDeal> deal = in_shifted_tiles(through)) add(*deal);
  return deals;
}

MapPlan plan_tuned_map(absl::string_view map, MapModes modes, const DeviceInfo& device) {
  const int dense = dense_mode(modes);
  if (dense < 0) return plan_map(std::move(modes));
  const runtime::Tunable<MapModes, MapDeal> tunable(
      std::string(map.substr(0, map.find('('))),
      [](const MapModes& problem, const DeviceInfo&) { return map_deals(problem); },
      [](const MapModes& problem, const DeviceInfo&) { return plan_map(problem).deal; });
  const MapDeal deal = tunable.choose(modes, device);
  // As through_tiles() has them.
  move_mode(modes, dense, modes.count - 2);
  return {deal, std::move(modes)};
}

std::string MapModes::to_string() const {
  const auto of_modes = [&](const std::array<int64_t, kMapModes>& of, const char* between) {
    return absl::StrJoin(of.begin(), of.begin() + count, between);
  };
  std::string text = of_modes(extents, "x");
  each_tensor(*this, [&](const Strides& tensor) {
    absl::StrAppend(&text, ", ", tensor.element_bytes, " bytes at ", tensor.address % kSectorBytes,
                    " by ", of_modes(tensor.of, ":"));
  });
  return text;
}
std::string MapDeal::to_string() const {
  return absl::StrCat(is_shifted() ? "shifted " : "tiles ", tile_across(), "x", tile_down());
}

LaunchShape map_shape(const MapPlan& plan) {
  const MapDeal& deal = plan.deal;
  const MapModes& modes = plan.modes;
  const auto extent_behind = [&](int modes_left) {
    return std::accumulate(modes.extents.begin(), modes.extents.begin() + modes.count - modes_left,
                           int64_t{1}, std::multiplies<>());
  };
  const int64_t innermost = modes.extents[modes.count - 1];
  if (deal.tiled) {
    return {.grid = extent_behind(2) *
                    divide_up(modes.extents[modes.count - 2], deal.tile_across()) *
                    deal.tiles_down(innermost, modes.output.element_bytes),
            .block = kMapThreads};
  }
  const int64_t vectors = extent_behind(1) * deal.vectors_of_row(innermost);
  return {.grid = divide_up(vectors, int64_t{kMapThreads} * deal.vectors), .block = kMapThreads};
}

Status in_slabs(const MapModes& modes, absl::FunctionRef<Status(const MapModes&)> launch) {
  int64_t elements = 1;
  for (int mode = 0; mode < modes.count; ++mode) elements *= modes.extents[mode];
  if (elements == 0) return OkStatus();
  if (elements <= kMostElements) return launch(modes);
  const int64_t extent = modes.extents[0],
                slab = std::max<int64_t>(kMostElements / (elements / extent), 1);
  for (int64_t begin = 0; begin < extent; begin += slab) {
    MapModes part = modes;
    part.extents[0] = std::min(slab, extent - begin);
    each_tensor(part, [&](MapModes::Strides& tensor) {
      tensor.address += static_cast<uint64_t>(begin * tensor.of[0] * tensor.element_bytes);
    });
    if (slab == 1 && part.count > 1) drop_mode(part, 0);
    if (Status s = in_slabs(part, launch); !s.ok()) return s;
  }
  return OkStatus();
}

}  // namespace heddle::kernels::detail
