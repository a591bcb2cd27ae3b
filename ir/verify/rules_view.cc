// Rules of views: arrays, tables, parts of views, addresses, checks of bounds.

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/verify/rules_internal.h"
#include "heddle/ir/wording.h"

namespace heddle::ir {
namespace {

// A shared array of more bytes fits nowhere, and sums of sizes must not overflow.
constexpr int64_t kMaxArrayBytes = int64_t{1} << 30;

constexpr int64_t kMaxLocalBytes = int64_t{1} << 18;
constexpr int64_t kMaxTableBytes = int64_t{1} << 16;

void check_view_result(RuleContext& c, Space space, int rank, bool read_only = false) {
  const Type type = c.result_type();
  if (type.is_view() && type == Type::view(type.scalar, space, rank, read_only)) return;
  c.error(absl::StrCat(c.result_text(), ", but must be a ", read_only ? "read-only" : "writable",
                       " view of ", counted(rank, "mode"), " in ", name_of(space), " memory"));
}

void check_array(RuleContext& c, Space space, bool read_only, int64_t most) {
  const absl::Span<const int64_t> extents = c.kernel().ints(*c.attr(AttrKey::kExtents));
  check_view_result(c, space, static_cast<int>(extents.size()), read_only);
  int64_t bytes = bytes_of(c.result_type().scalar);
  for (const int64_t extent : extents) {
    if (extent < 1) {
      c.error(absl::StrCat("a ", name_of(space),
                           " array has at least one element in each mode, not ", extent));
      return;
    }
    if (bytes > most / extent) {
      c.error(absl::StrCat("a ", name_of(space), " array of [", absl::StrJoin(extents, ", "),
                           "] x ", info(c.result_type().scalar).name, " fits in no GPU's ",
                           name_of(space), " memory"));
      return;
    }
    bytes *= extent;
  }
}

}  // namespace

void check_dim(RuleContext& c) {
  const int rank = c.type(c.op().view()).rank;
  const int64_t dim = *c.attr(AttrKey::kDim);
  if (dim < rank) return;
  c.error(absl::StrCat(c.quoted(), " asks for mode ", dim, " of ", c.name(c.op().view()),
                       ", which has ", counted(rank, "mode")),
          "modes are counted from 0");
}

void check_shared(RuleContext& c) {
  check_array(c, Space::kShared, false, kMaxArrayBytes);
  if (c.attr(AttrKey::kArena).has_value() == c.attr(AttrKey::kRegion).has_value()) return;
  c.error("'shared' has one of 'arena' and 'region' alone",
          "give an array of an arena both, and others neither");
}

void check_shared_begin(RuleContext& c) {
  const Op* const array = c.kernel().def(c.op().view());
  if (array != nullptr && array->opcode == Opcode::kShared && array->attr(AttrKey::kArena)) return;
  c.error(absl::StrCat(c.quoted(), " takes an array of an arena, and ", c.name(c.op().view()),
                       " is none"),
          "pass the result of a 'shared' with 'arena' and 'region'");
}

void check_local(RuleContext& c) { check_array(c, Space::kLocal, false, kMaxLocalBytes); }

void check_table(RuleContext& c) {
  check_array(c, Space::kConst, true, kMaxTableBytes);
  int64_t bytes = bytes_of(c.result_type().scalar);
  for (const int64_t extent : c.kernel().ints(*c.attr(AttrKey::kExtents))) bytes *= extent;
  const absl::string_view digits = c.text_attr(AttrKey::kData);
  const bool is_hex = std::all_of(digits.begin(), digits.end(), [](char digit) {
    return absl::ascii_isxdigit(static_cast<unsigned char>(digit));
  });
  if (is_hex && static_cast<int64_t>(digits.size()) == 2 * bytes) return;
  if (bytes == 0) return;  // reported as an array without elements
  c.error(absl::StrCat("the data of this table is not the ", bytes,
                       " bytes of its elements in hexadecimal"),
          "write two digits for each byte");
}

void check_dynamic_shared(RuleContext& c) { check_view_result(c, Space::kShared, 1); }

void check_pointer(RuleContext& c) {
  const Type view = c.result_type();
  if (view.space == Space::kGlobal && view.rank == 1) return;
  c.error(absl::StrCat(c.result_text(), ", but must be a view of 1 mode in global memory"));
}

void check_address(RuleContext& c) {
  const Type view = c.type(c.op().view());
  if (view.space == Space::kGlobal || is_shared(view)) return;
  c.error(absl::StrCat(c.quoted(), " of ", name_of(view.space), " memory"),
          "global and shared memory have addresses");
}

void check_subview(RuleContext& c) {
  const Type view = c.type(c.op().view());
  const Type type = c.result_type();
  if (type != Type::view(view.scalar, view.space, static_cast<int>(c.op().extents().size()),
                         type.read_only)) {
    c.error(absl::StrCat(c.result_text(), ", but must be a view of ", info(view.scalar).name,
                         " in ", name_of(view.space), " memory with a mode for each extent"));
  } else if (view.read_only && !type.read_only) {
    c.error("a part of a read-only view is read-only too",
            absl::StrCat("make the result view<const ", info(view.scalar).name, ", ...>"));
  }
}

void check_bounds(RuleContext& c) {
  const int rank = c.type(c.op().view()).rank;
  const auto given = static_cast<int64_t>(c.op().coordinates().size());
  int64_t named = 0;
  if (c.attr(AttrKey::kTensor)) {
    const absl::string_view text = c.text_attr(AttrKey::kTensor);
    named = std::count(text.begin(), text.end(), '%');
  }
  if (given != rank + 2 * named) {
    c.error(absl::StrCat("'bounds' is given ", counted(given, "coordinate"), ", but ",
                         c.name(c.op().view()), " has ", counted(rank, "mode"),
                         named == 0
                             ? ""
                             : absl::StrCat(", and its tensor names ", counted(named, "number"),
                                            " with an extent each")));
  }
  const int64_t dim = c.attr_or(AttrKey::kDim, 0);
  if (dim < 0 || dim >= rank) {
    c.error(absl::StrCat("mode ", dim, " of ", c.name(c.op().view()), ", which has ",
                         counted(rank, "mode")));
  }
}

void check_map_shared(RuleContext& c) {
  const Type from = c.type(c.op().view());
  const Type to = c.result_type();
  if (from.space != Space::kShared) {
    c.error(absl::StrCat("'map_shared' maps shared memory, and ", c.name(c.op().view()), " is in ",
                         name_of(from.space), " memory"),
            "map the block's own array");
  } else if (to != Type::view(from.scalar, Space::kSharedCluster, from.rank, from.read_only)) {
    c.error(absl::StrCat(
        c.result_text(), ", but must be ",
        to_string(Type::view(from.scalar, Space::kSharedCluster, from.rank, from.read_only))));
  }
}

}  // namespace heddle::ir
