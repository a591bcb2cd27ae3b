#include "heddle/dsl/tensor/copy.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/control.h"
#include "heddle/dsl/layout/modes_internal.h"
#include "heddle/dsl/tensor/runs_internal.h"

namespace heddle::detail {

using ir::Opcode;

namespace {

bool same_size(const AnyTensor& a, const AnyTensor& b, const char* what, SourceLoc loc) {
  if (!a.layout.ok() || !b.layout.ok()) return false;
  const SymInt left = size(a.layout.shape(), loc), right = size(b.layout.shape(), loc);
  // Of two that are known later the interpreter says whether they differ: by its checks of bounds.
  if (left == right || (!left.is_constant() && !right.is_constant())) return true;
  fail(loc,
       absl::StrCat(what, ": ", to_string(a), " has ", text(left), " elements and ", to_string(b),
                    " ", text(right)),
       "both sides have as many elements: partition them by the same layout");
  return false;
}

// Element by element, in a loop.
void copy_in_loop(const Predicate& predicate, const AnyTensor& from, const AnyTensor& to,
                  SourceLoc loc) {
  const auto element = [&](const AnyTensor& tensor, const SymInt& number) {
    return element_access(tensor, coordinate_of(tensor, number, loc), loc);
  };
  for (const Int64 i : range(size(from.layout.shape(), loc).wide(loc), loc)) {
    const SymInt number(i, loc);
    const auto move = [&] {
      Nodes value = {emit_load(element(from, number), scalar_type(from.scalar), loc)};
      emit_store(element(to, number), converted(value, to.scalar, loc)[0], loc);
    };
    if (const auto guard = condition(predicate, number, loc)) {
      If(Bool(*guard), move);
    } else {
      move();
    }
  }
}

// A part of a coordinate for each part of the shape; the shape's parts have modes where the
// coordinate's do.
void compare(const TupleNode& coord, const TupleNode& shape, SourceLoc loc, Node* all, bool* ok) {
  if (shape.is_tuple()) {
    int mode = 0;
    for (const TupleNode& extent : Elements(shape)) {
      const TupleNode zero;
      const bool given = coord.is_tuple() ? mode < static_cast<int>(coord.rank) : mode == 0;
      compare(!given             ? zero
              : coord.is_tuple() ? element(coord, mode)
                                 : coord,
              extent, loc, all, ok);
      ++mode;
    }
    return;
  }
  if (!coord.is_int() || !shape.is_int()) {
    *ok = false;
    return;
  }
  // An extent of the kernel's may be 0, whatever layouts take it for.
  if (coord.value.is_constant() && shape.value.is_constant() &&
      coord.value.value() < shape.value.value()) {
    return;
  }
  if (shape.value.is_constant() && coord.value.most() < shape.value.value()) return;
  // Numbers that 32 bits hold as unsigned ones compare right in 32 bits, for none is negative.
  const bool wide = shape.value.most() > INT32_MAX;
  // Elements of a tensor share what their coordinates have in common.
  const int64_t own = coord.value.constant_part();
  Node a = materialize(coord.value - own, wide, loc), b = materialize(shape.value, wide, loc);
  if (own != 0) a = emit(Opcode::kAdd, a, materialize(own, wide, loc), loc);
  if (!wide && coord.value.most() > INT32_MAX) {
    a = emit_bitcast(a, ir::Scalar::kU32, loc);
    b = emit_bitcast(b, ir::Scalar::kU32, loc);
  }
  const Node less = emit(Opcode::kLt, a, b, loc);
  *all = all->is_host() && all->bits != 0 ? less : emit(Opcode::kAnd, *all, less, loc);
}

}  // namespace

Node within_node(const IntTuple& coord, const IntTuple& shape, SourceLoc loc) {
  Node all = host_node(true);
  if (!coord.ok() || !shape.ok()) return all;
  bool ok = true;
  compare(coord.node(), shape.node(), loc, &all, &ok);
  if (!ok) {
    fail(loc, absl::StrCat("within(", coord.to_string(), ", ", shape.to_string(), ")"),
         "the shape has a number for each number of the coordinate");
  }
  return all;
}

Within within_view(const AnyTensor& tensor, SourceLoc loc) {
  if (tensor.layout.ok() && tensor.storage != Storage::kView) {
    fail(loc, absl::StrCat("within(", to_string(tensor), "), which is no part of a view"),
         "give the coordinates and the shape: within(coordinates, shape)");
  }
  Within within{tensor, tensor.layout.shape()};
  within.coords.storage = Storage::kCoordinates;
  if (tensor.layout.ok() && tensor.storage == Storage::kView) {
    within.shape = whole_view(tensor.node, tensor.scalar, tensor.mode, loc).layout.shape();
  }
  return within;
}

void copy_tensors(const Predicate& predicate, const AnyTensor& from, const AnyTensor& to,
                  SourceLoc loc, int exact) {
  if (!same_size(from, to, "copy", loc)) return;
  const AnyTensor* const others = predicate.flags != nullptr    ? predicate.flags
                                  : predicate.within != nullptr ? &predicate.within->coords
                                                                : nullptr;
  if (others != nullptr && !same_size(from, *others, "copy_if", loc)) return;
  const bool in_memory = from.storage == Storage::kView && to.storage == Storage::kView;
  if (in_memory && exact == 0 && !size(from.layout.shape(), loc).is_constant()) {
    return copy_in_loop(predicate, from, to, loc);
  }
  if (static_size(from, "copy", loc) == 0) return;
  // Registers keep what they have where nothing is copied; memory is guarded.
  if (others != nullptr && from.storage == Storage::kView && to.storage == Storage::kRegisters &&
      from.scalar == to.scalar) {
    const Nodes before = gather_elements(to, {}, nullptr, loc);
    return scatter_elements(to, {}, gather_elements(from, {predicate, exact}, &before, loc), loc);
  }
  const bool guarded = from.storage == Storage::kView;
  const Nodes values =
      gather_elements(from, {guarded ? predicate : Predicate{}, exact}, nullptr, loc);
  scatter_elements(to, {predicate, exact}, converted(values, to.scalar, loc), loc);
}

void fill_tensor(const AnyTensor& tensor, const Node& value, SourceLoc loc) {
  const int64_t count = static_size(tensor, "fill", loc);
  if (count > 0) scatter_elements(tensor, {}, Nodes(static_cast<size_t>(count), value), loc);
}

Node gather(const AnyTensor& tensor, SourceLoc loc) {
  Nodes all = gather_elements(tensor, {}, nullptr, loc);
  if (all.empty()) all.push_back({.type = scalar_type(tensor.scalar), .bits = 0});
  return fragment_of(tensor.scalar, all, loc);
}

void scatter(const AnyTensor& tensor, const Node& fragment, SourceLoc loc) {
  const int64_t count = static_size(tensor, "store", loc);
  if (!tensor.layout.ok() || count == 0) return;
  if (count != fragment.type.count) {
    fail(loc,
         absl::StrCat("store: ", static_cast<int>(fragment.type.count), " values for the ", count,
                      " elements of ", to_string(tensor)),
         "there is a value for each element");
    return;
  }
  scatter_elements(tensor, {}, elements_of(fragment, loc), loc);
}

void axpby_tensors(const Node& alpha, const AnyTensor& x, const Node& beta, const AnyTensor& y,
                   SourceLoc loc) {
  if (!same_size(x, y, "axpby", loc) || static_size(x, "axpby", loc) == 0) return;
  Nodes result = converted(gather_elements(x, {}, nullptr, loc), y.scalar, loc);
  for (Node& value : result) value = emit(Opcode::kMul, alpha, value, loc);  // by 1: folded
  if (!beta.is_host() || beta.bits != 0) {
    const Nodes before = gather_elements(y, {}, nullptr, loc);
    for (size_t i = 0; i < result.size(); ++i) {
      result[i] = emit(Opcode::kFma, beta, before[i], result[i], loc);
    }
  }
  scatter_elements(y, {}, result, loc);
}

namespace {

// (v,m,k), where a tensor without v has one of each.
struct Operand3 {
  int64_t v, rows, depth;
  Nodes values;
};

std::optional<Operand3> operand(const AnyTensor& tensor, int gemm_rank, ir::Scalar scalar,
                                SourceLoc loc) {
  const IntTuple shape = product_each(tensor.layout.shape());
  const auto extent = [&](int mode) {
    return mode < 0 ? int64_t{1} : get(shape, mode).value().value();
  };
  const int first = gemm_rank - 3;
  if (static_size(tensor, "gemm", loc) == 0) return std::nullopt;
  return Operand3{extent(first), extent(first + 1), extent(first + 2),
                  converted(gather_elements(tensor, {}, nullptr, loc), scalar, loc)};
}

}  // namespace

void gemm_tensors(const AnyTensor& a, const AnyTensor& b, const AnyTensor& c, SourceLoc loc) {
  if (!a.layout.ok() || !b.layout.ok() || !c.layout.ok()) return;
  const int modes = rank(a.layout);
  const auto wrong_shapes = [&] {
    fail(loc, absl::StrCat("gemm: ", to_string(a), ", ", to_string(b), " and ", to_string(c)),
         "the shapes are (m,k), (n,k) and (m,n), or with a mode more in front of each");
  };
  if ((modes != 2 && modes != 3) || rank(b.layout) != modes || rank(c.layout) != modes) {
    return wrong_shapes();
  }
  const auto x = operand(a, modes, c.scalar, loc);
  const auto y = operand(b, modes, c.scalar, loc);
  auto sums = operand(c, modes, c.scalar, loc);
  if (!x || !y || !sums) return;
  if (x->rows != sums->rows || y->rows != sums->depth || x->depth != y->depth || x->v != y->v ||
      x->v != sums->v) {
    return wrong_shapes();
  }
  for (int64_t k = 0; k < x->depth; ++k) {
    for (int64_t n = 0; n < y->rows; ++n) {
      for (int64_t m = 0; m < x->rows; ++m) {
        for (int64_t v = 0; v < x->v; ++v) {
          Node& sum = sums->values[static_cast<size_t>(v + x->v * (m + x->rows * n))];
          sum = emit(Opcode::kFma, x->values[static_cast<size_t>(v + x->v * (m + x->rows * k))],
                     y->values[static_cast<size_t>(v + x->v * (n + y->rows * k))], sum, loc);
        }
      }
    }
  }
  scatter_elements(c, {}, sums->values, loc);
}

}  // namespace heddle::detail
