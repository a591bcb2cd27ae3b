#include "heddle/dsl/cuda/matrix.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/access_internal.h"

namespace heddle::detail {
namespace {

using ir::AttrKey;
using ir::Opcode;

constexpr int kRowBytes = 16;
constexpr int kLaneBytes = 4;  // of each matrix

bool is_count(int matrices) { return matrices == 1 || matrices == 2 || matrices == 4; }

// Reports what no matrix lies in; whether one can.
bool holds_matrices(Trace& trace, absl::string_view op, const Access& row, ir::Scalar scalar,
                    bool transpose) {
  const ir::Space space = trace.kernel().type(trace.use(row.view, row.loc)).space;
  const int size = ir::bytes_of(scalar);
  const absl::string_view element = ir::info(scalar).name;
  const AccessMode mode = row.mode;
  const auto wrong = [&](std::string message, std::string fix) {
    trace.report(row.loc, absl::StrCat(op, message), std::move(fix));
    return false;
  };
  if (space != ir::Space::kShared) {
    return wrong(
        absl::StrCat(" of matrices in ", name_of(space), " memory"),
        "copy the tile to a Shared array first: ldmatrix and stmatrix reach the block's own "
        "shared memory alone");
  }
  if (scalar == ir::Scalar::kBool || size > kLaneBytes) {
    return wrong(absl::StrCat(" of ", element, ", an element of ", ir::info(scalar).bits, " bits"),
                 "it moves elements of 1, 2 or 4 bytes that are no bools: access these one by one");
  }
  if (transpose && size != 2) {
    return wrong(absl::StrCat(" that transposes ", element, ", an element of ",
                              ir::info(scalar).bits, " bits"),
                 "it transposes elements of 16 bits: leave `transpose` out");
  }
  if (mode.is_volatile || mode.cache >= 0 || mode.l2_evict >= 0) {
    return wrong(absl::StrCat(" of a view with ", mode.is_volatile  ? "as_volatile()"
                                                  : mode.cache >= 0 ? "a Cache"
                                                                    : "an L2Evict"),
                 "leave it out: there is no such access to matrices");
  }
  return true;
}

// The operands behind the view: the offset of the row, and its check.
void append_row(const AccessOperands& row, absl::InlinedVector<ir::ValueId, 4>* operands) {
  operands->push_back(row.offset);
  if (ir::valid(row.check)) operands->push_back(row.check);
}

AccessAttrs attrs_of(int count, bool transpose) {
  AccessAttrs attrs = {{AttrKey::kCount, count}};
  if (transpose) attrs.push_back({AttrKey::kTranspose, 1});
  return attrs;
}

}  // namespace

Node emit_ldmatrix(const Access& row, ir::Scalar scalar, int count, bool transpose) {
  const int size = ir::bytes_of(scalar);
  const NodeType type =
      fragment_type(scalar, is_count(count) ? std::max(1, count * kLaneBytes / size) : 1, row.loc);
  Trace* const trace = Trace::current();
  if (trace == nullptr) return made_outside(type, "ldmatrix", row.loc);
  if (!is_count(count)) {
    trace->report(row.loc, absl::StrCat("ldmatrix of ", count, " matrices"),
                  "a warp loads 1, 2 or 4 of them at once");
    return {.type = type};
  }
  if (!holds_matrices(*trace, "ldmatrix", row, scalar, transpose)) return {.type = type};
  const AccessOperands p =
      record_access(*trace, row, vector_type(scalar, kRowBytes / size), row.loc);
  absl::InlinedVector<ir::ValueId, 4> operands = {p.view};
  append_row(p, &operands);
  return trace->node(
      trace->create(Opcode::kLdMatrix, operands, to_type(type), attrs_of(count, transpose)));
}

void emit_stmatrix(const Access& row, const Node& matrices, bool transpose) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) {
    return report(row.loc, "stmatrix outside a kernel", "write it in the lambda");
  }
  const ir::Scalar scalar = matrices.type.scalar;
  if (!holds_matrices(*trace, "stmatrix", row, scalar, transpose)) return;
  const int size = ir::bytes_of(scalar), elements = matrices.type.count;
  const int count = elements * size / kLaneBytes;
  if (elements * size != count * kLaneBytes || !is_count(count)) {
    const int one = kLaneBytes / size;
    return trace->report(
        row.loc,
        absl::StrCat("stmatrix of a fragment of ", elements, " x ", ir::info(scalar).name,
                     ", which is ", elements * size, " bytes"),
        absl::StrCat("a lane has 4 bytes of each of 1, 2 or 4 matrices: ", one, ", ", 2 * one,
                     " or ", 4 * one, " of these elements"));
  }
  const AccessOperands p =
      record_access(*trace, row, vector_type(scalar, kRowBytes / size), row.loc);
  absl::InlinedVector<ir::ValueId, 4> operands = {p.view, trace->use(matrices, row.loc)};
  append_row(p, &operands);
  trace->create(Opcode::kStMatrix, operands, ir::Type::none(), attrs_of(count, transpose));
}

}  // namespace heddle::detail
