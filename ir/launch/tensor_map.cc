#include "heddle/ir/launch/tensor_map.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace heddle::ir {
namespace {

std::array<int64_t, kMaxTensorMapRank> list_of(const Kernel& kernel, const Op& op, AttrKey key) {
  std::array<int64_t, kMaxTensorMapRank> list{};
  if (!op.attr(key)) return list;
  const absl::Span<const int64_t> numbers = kernel.ints(*op.attr(key));
  std::copy(numbers.begin(), numbers.end(), list.begin());
  return list;
}

}  // namespace

int64_t BoxShape::box_bytes() const {
  int64_t bytes = bytes_of(scalar);
  for (int d = 0; d < (im2col ? 2 : rank); ++d) bytes *= box[static_cast<size_t>(d)];
  return bytes;
}

BoxShape box_shape(const Kernel& kernel, const Op& op) {
  const Type type = kernel.type(op.result());
  return {.scalar = type.scalar,
          .rank = type.rank,
          .modes = list_of(kernel, op, AttrKey::kModes),
          .box = list_of(kernel, op, AttrKey::kBox),
          .swizzle = static_cast<int>(op.attr_or(AttrKey::kSwizzle, 0)),
          .promotion = static_cast<int>(op.attr_or(AttrKey::kPromotion, 0)),
          .nan_fill = op.attr_or(AttrKey::kNanFill, 0) != 0,
          .im2col = op.attr(AttrKey::kLower).has_value(),
          .lower = list_of(kernel, op, AttrKey::kLower),
          .upper = list_of(kernel, op, AttrKey::kUpper)};
}

const Op& described_map(const Kernel& kernel, ValueId map) {
  const Op& op = *kernel.def(map);
  return op.opcode == Opcode::kTensorMapReplace ? *kernel.def(op.map()) : op;
}

// The maps of the last arguments. Who finds it taken encodes for himself.
struct TensorMaps::Memory {
  std::atomic<bool> taken{false};
  std::vector<TensorMap> maps;
  std::vector<std::array<std::byte, kTensorMapBytes>> bytes;

  bool holds(size_t i, const TensorMap& map) const {
    if (i >= maps.size()) return false;
    const TensorMap& known = maps[i];
    return known.address == map.address && known.extents == map.extents &&
           known.strides == map.strides;
  }
};

TensorMaps::TensorMaps(const Kernel& kernel, const ParamLayout& layout) {
  kernel.walk([&](OpId id) {
    const Op& op = kernel.op(id);
    if (op.opcode != Opcode::kTensorMap) return;
    const int param = *kernel.param_index(op.view());
    const Param& declared = kernel.params()[static_cast<size_t>(param)];
    Recipe& recipe = maps_.emplace_back();
    recipe.shape = box_shape(kernel, op);
    recipe.name = std::string(kernel.text(kernel.value(declared.value).name));
    const Loc loc = kernel.loc(id);
    recipe.place = {std::string(loc.file), loc.line};
    recipe.address.offset = layout.find(SlotKind::kAddress, param)->offset;
    const auto number = [&](SlotKind kind, int mode, int64_t known) {
      if (known != kDynamic) return Number{.value = known};
      return Number{.offset = layout.find(kind, param, mode)->offset};
    };
    for (size_t d = 0; d < static_cast<size_t>(recipe.shape.rank); ++d) {
      const auto mode = static_cast<size_t>(recipe.shape.modes[d]);
      const int as_int = static_cast<int>(mode);
      recipe.extents[d] = number(SlotKind::kExtent, as_int, declared.extents[mode]);
      recipe.strides[d] = number(SlotKind::kStride, as_int, declared.strides[mode]);
    }
    recipe.slot = layout.offset_of_map(id);
  });
  memory_ = std::make_shared<Memory>();
}

int64_t TensorMaps::read(const std::byte* block, const Number& number) {
  if (number.offset < 0) return number.value;
  int64_t value = 0;
  std::memcpy(&value, block + number.offset, sizeof(value));
  return value;
}

TensorMap TensorMaps::tensor_of(const Recipe& recipe, const std::byte* block) {
  TensorMap map{.shape = recipe.shape};
  map.address = static_cast<uint64_t>(read(block, recipe.address));
  for (size_t d = 0; d < static_cast<size_t>(recipe.shape.rank); ++d) {
    map.extents[d] = read(block, recipe.extents[d]);
    const int64_t elements = read(block, recipe.strides[d]);
    if (__builtin_mul_overflow(elements, bytes_of(recipe.shape.scalar), &map.strides[d])) {
      map.strides[d] = INT64_MAX;
    }
  }
  return map;
}

Status TensorMaps::check(const Recipe& recipe, const TensorMap& map) {
  const auto wrong = [&](const std::string& what, absl::string_view fix) {
    const std::string place = recipe.place.file.empty() ? ""
                                                        : absl::StrCat(" (", recipe.place.file, ":",
                                                                       recipe.place.line, ")");
    return InvalidArgumentError(
        absl::StrCat("the tensor map of '", recipe.name, "' needs ", what, place, "; fix: ", fix));
  };
  if (map.address % kTensorMapMultiple != 0) {
    return wrong(absl::StrCat("an address that is a multiple of 16, and it starts at 0x",
                              absl::Hex(map.address)),
                 "start the tensor at a multiple of 16 bytes");
  }
  const int64_t element = bytes_of(recipe.shape.scalar);
  for (int d = 0; d < recipe.shape.rank; ++d) {
    const auto at = static_cast<size_t>(d);
    const int64_t mode = recipe.shape.modes[at];
    if (map.extents[at] > kTensorMapMaxExtent) {
      return wrong(
          absl::StrCat("extents of at most 2^32, and mode ", mode, " has ", map.extents[at]),
          "pass the tensor in parts");
    }
    // Of one element there is no second one that a stride would lead to.
    if (map.extents[at] == 1 && d > 0) continue;
    if (d == 0 && map.strides[at] != element && map.extents[at] != 1) {
      return wrong(absl::StrCat("mode ", mode, " to be contiguous, and its stride is ",
                                map.strides[at] / element),
                   "pass a tensor whose elements along this mode are neighbours in memory");
    }
    if (d == 0) continue;
    if (map.strides[at] <= 0 || map.strides[at] > kTensorMapMaxStride ||
        map.strides[at] % kTensorMapMultiple != 0) {
      return wrong(absl::StrCat("strides of a positive multiple of 16 bytes below 2^40, and mode ",
                                mode, " has ", map.strides[at], " bytes"),
                   "pad the rows, or copy without a tensor map");
    }
  }
  return OkStatus();
}

Status TensorMaps::encode(std::byte* block, TensorMapEncoder encoder) const {
  const bool remembers = !memory_->taken.exchange(true, std::memory_order_acquire);
  Status status;
  for (size_t i = 0; i < maps_.size() && status.ok(); ++i) {
    const Recipe& recipe = maps_[i];
    TensorMap map = tensor_of(recipe, block);
    const auto extents_end = map.extents.begin() + recipe.shape.rank;
    if (std::find(map.extents.begin(), extents_end, 0) != extents_end) continue;
    if (remembers && memory_->holds(i, map)) {
      if (recipe.slot >= 0) {
        std::memcpy(block + recipe.slot, memory_->bytes[i].data(), kTensorMapBytes);
      }
      continue;
    }
    status = check(recipe, map);
    if (!status.ok()) break;
    TensorMap encoded = map;
    // The stride of a single element may be anything, but not for an encoder.
    for (size_t d = 1; d < static_cast<size_t>(recipe.shape.rank); ++d) {
      if (map.extents[d] == 1) encoded.strides[d] = kTensorMapMultiple;
    }
    if (recipe.slot >= 0) status = encoder(encoded, block + recipe.slot);
    if (!status.ok() || !remembers) continue;
    memory_->maps.resize(maps_.size());
    memory_->bytes.resize(maps_.size());
    memory_->maps[i] = map;
    if (recipe.slot >= 0) {
      std::memcpy(memory_->bytes[i].data(), block + recipe.slot, kTensorMapBytes);
    }
  }
  if (remembers) memory_->taken.store(false, std::memory_order_release);
  return status;
}

}  // namespace heddle::ir
