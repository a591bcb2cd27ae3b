// What is wrong with an access, in words.
#include "heddle/ir/interp/legal.h"

#include "absl/strings/str_cat.h"

namespace heddle::ir::interp {
namespace {

// A tensor's layout and coordinate, with the numbers that the kernel computed.
std::string tensor_text(const BoundsCheck& bounds, const Warp& warp, int lane) {
  std::string text;
  size_t next = bounds.view_modes;
  for (const char c : warp.block->machine->code->texts[bounds.tensor]) {
    if (c == '%') {
      absl::StrAppend(&text, index_at(warp, bounds.coordinates[next++], lane));
    } else {
      text.push_back(c);
    }
  }
  return text;
}

// "reads x(3, 8)", "writes 'x' at element offset 7 [tensor<ptr<f32, gmem> o (4,2):(2,1)> at (3,1)]"
std::string describe(const Access& access, const Warp& warp, int lane) {
  const Code& code = *warp.block->machine->code;
  const std::string& name = code.texts[access.view_name];
  const int elements = static_cast<int>(access.bytes) / bytes_of(access.scalar);
  std::string text = access.atomic ? "atomically updates " : access.store ? "writes " : "reads ";
  if (elements > 1) absl::StrAppend(&text, elements, " elements of ");
  const BoundsCheck* const bounds = access.bounds == kNone ? nullptr : &code.bounds[access.bounds];
  if (bounds != nullptr && bounds->view_modes > 0) {
    std::vector<int64_t> coordinates;
    for (size_t d = 0; d < bounds->view_modes; ++d) {
      coordinates.push_back(index_at(warp, bounds->coordinates[d], lane));
    }
    absl::StrAppend(&text, name, coordinates_text(coordinates));
  } else {
    absl::StrAppend(&text, "'", name, "' at element offset ", index_at(warp, access.offset, lane));
  }
  if (bounds != nullptr && bounds->tensor != kNone) {
    absl::StrAppend(&text, " [", tensor_text(*bounds, warp, lane), "]");
  }
  return text;
}

}  // namespace

bool report_bounds(const Instr* instr, const Warp& warp, const Access& access, Mask bad) {
  constexpr char kFix[] =
      "guard the access with an If, or check the extents that the launch passes";
  const Machine& machine = *warp.block->machine;
  const int lane = std::countr_zero(bad);
  const std::string& name = machine.code->texts[access.view_name];
  const std::string what = describe(access, warp, lane);
  if (access.bounds == kNone) {
    return machine.reporter->add(warp, instr, bad,
                                 absl::StrCat(what, ", outside the extents of '", name, "'"), kFix);
  }
  const BoundsCheck& bounds = machine.code->bounds[access.bounds];
  std::vector<int64_t> extents;
  size_t guilty = bounds.extents.size();
  for (size_t d = 0; d < bounds.extents.size(); ++d) {
    extents.push_back(index_at(warp, bounds.extents[d], lane));
    const int64_t at = index_at(warp, bounds.coordinates[d], lane);
    const int64_t width = d < bounds.view_modes && d == bounds.run_mode ? bounds.width : 1;
    if (guilty == bounds.extents.size() &&
        (at < 0 || at >= extents[d] || extents[d] - at < width)) {
      guilty = d;
    }
  }
  if (guilty >= bounds.view_modes && guilty < bounds.extents.size()) {
    return machine.reporter->add(warp, instr, bad,
                                 absl::StrCat(what, ", outside the tensor's shape: ",
                                              index_at(warp, bounds.coordinates[guilty], lane),
                                              " is not in [0, ", extents[guilty], ")"),
                                 "guard the access with an If, a copy by copy_if(within(tile), …), "
                                 "or check the tile that the tensor was cut into");
  }
  std::string why;
  if (guilty < bounds.view_modes) {
    const int64_t at = index_at(warp, bounds.coordinates[guilty], lane);
    const bool spans = guilty == bounds.run_mode && bounds.width > 1 && at >= 0;
    why = spans ? absl::StrCat(": its ", bounds.width, " elements start at index ", at, " of mode ",
                               guilty, ", which has ", extents[guilty])
                : absl::StrCat(": index ", at, " of mode ", guilty, " is not in [0, ",
                               extents[guilty], ")");
  }
  extents.resize(bounds.view_modes);
  return machine.reporter->add(
      warp, instr, bad,
      absl::StrCat(what, ", outside its extents ", coordinates_text(extents), why), kFix);
}

bool report_alignment(const Instr* instr, const Warp& warp, const Access& access, Mask bad) {
  const int lane = std::countr_zero(bad);
  return warp.block->machine->reporter->add(
      warp, instr, bad,
      absl::StrCat(describe(access, warp, lane), ", whose address is not a multiple of ",
                   access.bytes, " as an access of ", access.bytes, " bytes needs"),
      access.bytes > static_cast<uint32_t>(bytes_of(access.scalar))
          ? "start vectors at a multiple of their width, with aligned data, or access single "
            "elements"
          : "pass data that is aligned to its element");
}

bool report_outside(const Instr* instr, const Warp& warp, const Access& access, Mask bad,
                    uint64_t address) {
  const int lane = std::countr_zero(bad);
  const Block& block = *warp.block;
  std::string where;
  std::string fix;
  if (access.space == Space::kLocal || access.space == Space::kConst) {
    where = "the array ends before";
    fix = "check the index";
  } else if (access.space == Space::kSharedCluster) {
    where = "no block of the cluster has these bytes of shared memory";
    fix = "check the index";
  } else if (access.space == Space::kShared) {
    where = absl::StrCat(access.bytes, " bytes at byte ",
                         static_cast<int64_t>(address - block.shared_address()), " of the block's ",
                         block.shared_bytes, " bytes of shared memory");
    fix = "check the index, and the dynamic shared memory that the launch asks for";
  } else {
    where = block.machine->memory->explain(address, access.bytes);
    fix = "check the index, and that the buffer is alive and as large as the kernel expects";
  }
  return block.machine->reporter->add(
      warp, instr, bad,
      absl::StrCat(describe(access, warp, lane), ", which is not in memory: ", where), fix);
}

bool report_races(const Instr* instr, const Warp& warp, const Access& access, Mask lanes,
                  const Addresses& addresses) {
  const Machine& machine = *warp.block->machine;
  const Instr* const start = machine.code->instrs.data();
  // What asynchronous copies bring lies in no register.
  const bool copies = instr->run == copy_handler_async(/*checked=*/true);
  const auto race = warp.block->machine->races.write(
      warp, static_cast<uint32_t>(instr - start),
      {.mask = lanes,
       .addresses = addresses.at,
       .contiguous = addresses.contiguous,
       .bytes = access.bytes,
       .values = copies ? nullptr : warp.reg<std::byte>(instr->c),
       .element_bytes = static_cast<uint32_t>(bytes_of(access.scalar))});
  if (!race) return false;
  const std::string other = thread_name(*warp.block, race->thread);
  return machine.reporter->add(
      warp, instr, race->lanes,
      absl::StrCat(describe(access, warp, std::countr_zero(race->lanes)), ", which ", other,
                   " has written too, with another value and nothing that orders the two: which "
                   "one stays is left to chance"),
      "let one thread write it, as in If(thread_idx.x == 0, ...), combine the values by an atomic "
      "or a reduction, or put sync_threads() between the two; where any of the values will do, "
      "say so by atomic_store()",
      {{machine.reporter->place_of(start + race->instr), absl::StrCat(other, " writes it here")}});
}

bool report_unwritten(const Instr* instr, const Warp& warp, const Access& access, Mask bad) {
  const int lane = std::countr_zero(bad);
  const bool shared = access.space != Space::kGlobal;
  return warp.block->machine->reporter->add(
      warp, instr, bad, absl::StrCat(describe(access, warp, lane), ", which nobody has written"),
      shared ? "store to it first, with a barrier in between where another thread does"
             : "copy or fill the buffer before the launch, or write it first");
}

}  // namespace heddle::ir::interp
