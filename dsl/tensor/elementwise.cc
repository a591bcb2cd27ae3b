#include "heddle/dsl/tensor/elementwise.h"

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/modes_internal.h"
#include "heddle/dsl/tensor/runs_internal.h"

namespace heddle::detail {

namespace {

// Mode by mode; false where a mode has neither one element nor as many.
bool broadcast(const TupleNode& shape, const TupleNode& stride, const TupleNode& to,
               LayoutBuilder* out) {
  const TupleNode zero;
  if (product(shape).is_constant(1)) {
    // Whatever modes are asked for, all of one element.
    if (!to.is_tuple()) {
      out->add(Part(to, zero));
      return true;
    }
    const size_t tuple = out->open();
    for (const TupleNode& child : Elements(to)) broadcast(shape, stride, child, out);
    out->close(tuple);
    return true;
  }
  if (!to.is_tuple() || !shape.is_tuple()) {
    // A mode with modes stands for as many elements.
    if (!(product(shape) == product(to)) || (to.is_tuple() && !shape.is_tuple())) return false;
    out->add(Part(shape, stride));
    return true;
  }
  if (shape.rank > to.rank) return false;
  const size_t tuple = out->open();
  int mode = 0;
  bool ok = true;
  for (const TupleNode& child : Elements(to)) {
    const bool given = mode < static_cast<int>(shape.rank);
    TupleNode one;
    one.value = 1;
    ok &= given ? broadcast(element(shape, mode), element(stride, mode), child, out)
                : broadcast(one, zero, child, out);
    ++mode;
  }
  out->close(tuple);
  return ok;
}

}  // namespace

AnyTensor broadcast(const AnyTensor& tensor, const IntTuple& shape, SourceLoc loc) {
  AnyTensor result = tensor;
  if (!tensor.layout.ok() || !shape.ok()) return result;
  LayoutBuilder builder;
  // A tensor of one mode is the first of several.
  const IntTuple own_shape = shape.is_tuple() && !tensor.layout.shape().is_tuple()
                                 ? IntTuple{tensor.layout.shape()}
                                 : tensor.layout.shape();
  const IntTuple own_stride = shape.is_tuple() && !tensor.layout.shape().is_tuple()
                                  ? IntTuple{tensor.layout.stride()}
                                  : tensor.layout.stride();
  if (broadcast(own_shape.node(), own_stride.node(), shape.node(), &builder)) {
    result.layout = tensor.layout.with_outer(builder.build(loc));
    return result;
  }
  result.layout =
      fail_layout(loc,
                  absl::StrCat("a tensor of shape ", tensor.layout.shape().to_string(),
                               " where one of shape ", shape.to_string(), " is wanted"),
                  "each mode has as many elements as are wanted, or one, which is repeated");
  return result;
}

SplitModes split_off(const AnyTensor& tensor, int mode, SourceLoc loc) {
  SplitModes split{tensor, 1};
  if (!tensor.layout.ok()) return split;
  const int modes = rank(tensor.layout);
  if (mode < 0 || mode >= modes) {
    split.tensor.layout = fail_layout(
        loc, absl::StrCat("reduce: mode ", mode, " of ", to_string(tensor)), "modes count from 0");
    return split;
  }
  if (static_size(tensor, "reduce", loc) == 0) {
    split.tensor.layout = failed_layout(TupleBuilder::failed("nothing to reduce"));
    return split;
  }
  LayoutBuilder others;
  const size_t tuple = others.open();
  for (int i = 0; i < modes; ++i) {
    if (i != mode) others.add(get(tensor.layout, i).outer());
  }
  others.close(tuple);
  const Layout rest = modes == 1 ? Layout() : others.build(loc);
  split.tensor.layout =
      tensor.layout.with_outer(make_layout(get(tensor.layout, mode).outer(), rest));
  split.others = unwrap(rest.shape());
  return split;
}

}  // namespace heddle::detail
