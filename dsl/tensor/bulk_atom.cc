#include "heddle/dsl/tensor/bulk_atom.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/modes_internal.h"
#include "heddle/dsl/layout/tuple_builder_internal.h"
#include "heddle/dsl/tensor/tensor_internal.h"
#include "heddle/ir/type.h"

namespace heddle::detail {

namespace {

constexpr int64_t kBulkBytes = 16;  // copies are multiples of it

// Whether a coalesced layout puts all elements one behind the other, in some order: each stride is the product of the
// extents of smaller ones.
bool is_dense(const Layout& layout) {
  if (layout.is_composed() || !is_static(layout)) return false;
  std::vector<std::pair<int64_t, int64_t>> modes;  // strides and extents
  for (const Mode& mode : coalesced(layout)) {
    if (!mode.stride.is_tuple()) {
      modes.emplace_back(mode.stride.value.value(), mode.shape.value());
    }
  }
  std::sort(modes.begin(), modes.end());
  int64_t next = 1;
  for (const auto& [stride, extent] : modes) {
    if (stride != next && extent != 1) return false;
    next *= extent;
  }
  return next == size(layout).value();
}

// The elements of a tile that one bulk copy moves; nullopt where none does, which is reported.
std::optional<int64_t> elements(const AnyTensor& from, const AnyTensor& to, SourceLoc loc) {
  if (!from.layout.ok() || !to.layout.ok()) return std::nullopt;  // reported where it was made
  const auto wrong = [&](const std::string& why, const char* fix) {
    fail(loc, absl::StrCat("copy: a bulk copy from ", to_string(from), " to ", to_string(to), why),
         fix);
    return std::nullopt;
  };
  if (from.scalar != to.scalar) {
    return wrong(", of another type", "the copy engine converts nothing: make both of one type");
  }
  const Layout source = coalesce(memory_layout(from)), destination = coalesce(memory_layout(to));
  if (!is_dense(source) || !(source == destination)) {
    return wrong(", whose elements do not lie one behind the other in the same order",
                 "copy a part that does, or by a TMA atom, which knows strides");
  }
  const int64_t count = size(source).value();
  if (count * ir::bytes_of(from.scalar) % kBulkBytes != 0) {
    return wrong(absl::StrCat(", of ", count * ir::bytes_of(from.scalar), " bytes"),
                 "bulk copies are multiples of 16 bytes");
  }
  return count;
}

template <class Emit>
void emit_tile(const AnyTensor& from, const AnyTensor& to, SourceLoc loc, const Emit& emit) {
  const std::optional<int64_t> count = elements(from, to, loc);
  if (!count) return;
  const Access there = element_access(to, 0, loc), here = element_access(from, 0, loc);
  const Arg<int32_t> number(static_cast<int32_t>(*count), loc);
  emit(BulkCopy{there, here, from.scalar, number.node});
}

}  // namespace

void emit_bulk_tile(ir::Opcode opcode, const AnyTensor& from, const AnyTensor& to,
                    const BulkLoadTo* load, SourceLoc loc) {
  emit_tile(from, to, loc, [&](const BulkCopy& copy) {
    if (load == nullptr) return emit_bulk(opcode, copy);
    const BulkBarrier told{load->words, load->index};
    emit_bulk(opcode, copy, &told, load->is_multicast ? &load->ranks : nullptr);
  });
}

void emit_bulk_tile_reduce(TmaReduction op, const AnyTensor& from, const AnyTensor& to,
                           SourceLoc loc) {
  emit_tile(from, to, loc, [&](const BulkCopy& copy) { emit_bulk_reduce(atomic_kind(op), copy); });
}

}  // namespace heddle::detail
