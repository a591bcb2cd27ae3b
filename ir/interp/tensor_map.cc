// Tensor maps that kernels make. Copies read the registers of the tensor that a map describes; what is checked here
// is what a GPU asks of the map.
#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/byte_range.h"
#include "heddle/ir/interp/handlers.h"
#include "heddle/ir/interp/mbarrier.h"
#include "heddle/ir/interp/report.h"
#include "heddle/ir/interp/watch.h"

namespace heddle::ir::interp {
namespace {

struct Mistake {
  std::string what;
  const char* fix = nullptr;
};

// What is wrong with the tensor as a lane describes it.
Mistake tensor_mistake(const Warp& warp, const MapReplacement& map, int lane) {
  const uint64_t address = warp.reg<uint64_t>(map.address)[lane];
  if (address % kTensorMapMultiple != 0) {
    return {"starts at an address that is no multiple of 16", "start it at a multiple of 16 bytes"};
  }
  for (size_t d = 0; d < static_cast<size_t>(map.rank); ++d) {
    const int64_t extent = warp.reg<int64_t>(map.extents[d])[lane];
    if (extent < 1 || extent > kTensorMapMaxExtent) {
      return {absl::StrCat("has ", extent, " elements along dimension ", d),
              "copy nothing of a tensor without elements, and a larger one in parts"};
    }
    if (d == 0) continue;
    const int64_t stride = warp.reg<int64_t>(map.strides[d])[lane];
    const int64_t most = kTensorMapMaxStride / bytes_of(map.scalar);
    if (stride < 1 || stride > most || stride * bytes_of(map.scalar) % kTensorMapMultiple != 0) {
      return {absl::StrCat("has a stride of ", stride, " elements along dimension ", d,
                           ", which is no positive multiple of 16 bytes below 2^40"),
              "pad the rows, or copy without a tensor map"};
    }
  }
  return {};
}

// What is wrong with where the map is put together and lies; else *target is the latter.
Mistake place_mistake(const Instr* instr, Warp& warp, const MapReplacement& map, int lane,
                      ByteRange* source, ByteRange* target) {
  *source = {.address = warp.reg<uint64_t>(instr->a)[lane], .bytes = kTensorMapBytes};
  *target = {.address = warp.reg<uint64_t>(instr->b)[lane], .bytes = kTensorMapBytes};
  source->block = block_of(warp, source->address, kTensorMapBytes);
  const std::string beyond =
      beyond_array(warp, source->block, map.shared_array, source->address, kTensorMapBytes);
  if (!beyond.empty()) {
    return {absl::StrCat("is put together in ", beyond), "give it 128 bytes of shared memory"};
  }
  if ((source->address | target->address) % kTensorMapAlign != 0) {
    return {"is put together or lies at an address that is no multiple of 128",
            "align both places to 128 bytes"};
  }
  Machine& machine = *warp.block->machine;
  if (!machine.code->checked) return {};
  target->allocation = machine.cursors[map.access].find(target->address, kTensorMapBytes);
  if (target->allocation == nullptr) {
    return {absl::StrCat("leaves the memory of '",
                         machine.code->texts[machine.code->accesses[map.access].view_name], "'"),
            "give it 128 bytes of global memory"};
  }
  return {};
}

bool lanes_agree(const Instr* instr, const Warp& warp, const MapReplacement& map, int lane) {
  const auto same = [&](uint32_t reg) {
    const uint64_t* const values = warp.reg<uint64_t>(reg);
    return values[0] == values[lane];
  };
  bool agree = same(instr->a) && same(instr->b) && same(map.address);
  for (size_t d = 0; d < static_cast<size_t>(map.rank); ++d) {
    agree = agree && same(map.extents[d]) && (d == 0 || same(map.strides[d]));
  }
  return agree;
}

const Instr* run_map_replace(const Instr* instr, Warp& warp) {
  Machine& machine = *warp.block->machine;
  const MapReplacement& map = machine.code->map_replacements[instr->aux];
  bool stop = false;
  for_each_lane(warp.mask, [&](int l) {
    if (stop) return;
    ByteRange source, target;
    Mistake wrong = place_mistake(instr, warp, map, l, &source, &target);
    if (wrong.fix == nullptr) wrong = tensor_mistake(warp, map, l);
    if (wrong.fix == nullptr && !lanes_agree(instr, warp, map, l)) {
      wrong = {"differs between the lanes of the warp", "compute it the same way in all lanes"};
    }
    if (wrong.fix != nullptr) {
      stop =
          machine.reporter->add(warp, instr, Mask{1} << l,
                                absl::StrCat("the new tensor map of '",
                                             machine.code->texts[map.view_name], "' ", wrong.what),
                                wrong.fix);
    } else if (machine.code->checked) {
      source.mark_written();
      target.mark_written();
    }
  });
  Watch* const watch = watch_of(warp);
  if (!stop && watch != nullptr) {
    const Mask first = warp.mask & (~warp.mask + 1);
    stop = watch->access(instr, warp, AccessKind::kWrite, first, warp.reg<uint64_t>(instr->a),
                         kTensorMapBytes);
  }
  return stop ? warp.suspend(WarpState::kStopped, instr) : instr + 1;
}

}  // namespace

Handler map_replace_handler() { return &run_map_replace; }

}  // namespace heddle::ir::interp
