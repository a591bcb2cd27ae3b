#include "heddle/dsl/layout/calculator.h"

#include <algorithm>
#include <functional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "heddle/dsl/internal/tuple_builder.h"

namespace heddle {
namespace {

using Value = LayoutValue;
using Arguments = absl::Span<const Value>;

Value error(std::string what, const std::string& fix) {
  return detail::TupleBuilder::failed(absl::StrCat(what, "; ", fix));
}

bool failed(const Value& value) {
  if (const auto* tuple = std::get_if<IntTuple>(&value)) return !tuple->ok();
  if (const auto* layout = std::get_if<Layout>(&value)) return !layout->ok();
  return false;
}

// --- Arguments ------------------------------------------------------------------------------

bool is_layout_like(const Value& value) {
  return std::holds_alternative<Layout>(value) ||
         (std::holds_alternative<IntTuple>(value) && !has_underscore(std::get<IntTuple>(value)));
}

Layout as_layout(const Value& value) {
  if (const auto* layout = std::get_if<Layout>(&value)) return *layout;
  return make_layout(std::get<IntTuple>(value));
}

bool is_tiler_like(const Value& value) { return !std::holds_alternative<Swizzle>(value); }

Tiler as_tiler(const Value& value) {
  if (const auto* layout = std::get_if<Layout>(&value)) return *layout;
  if (const auto* tuple = std::get_if<IntTuple>(&value)) return *tuple;
  return std::get<Tiler>(value);
}

bool is_tuple(const Value& value) { return std::holds_alternative<IntTuple>(value); }

const IntTuple& as_tuple(const Value& value) { return std::get<IntTuple>(value); }

// A shape is a tuple, or that of a layout.
IntTuple as_shape(const Value& value) {
  if (const auto* layout = std::get_if<Layout>(&value)) return layout->shape();
  return std::get<IntTuple>(value);
}

bool is_number(const Value& value) {
  const auto* tuple = std::get_if<IntTuple>(&value);
  return tuple != nullptr && tuple->is_int() && tuple->value().is_constant() &&
         tuple->value().value() >= INT32_MIN && tuple->value().value() <= INT32_MAX;
}

int as_number(const Value& value) {
  return static_cast<int>(std::get<IntTuple>(value).value().value());
}

bool is_swizzle_or_layout(const Value& value) { return !std::holds_alternative<Tiler>(value); }

// --- Functions ------------------------------------------------------------------------------

struct Parameter {
  const char* name;
  bool (*accepts)(const Value&);
};

constexpr Parameter kLayout{"layout", &is_layout_like}, kTiler{"tiler", &is_tiler_like},
    kTuple{"tuple", &is_tuple}, kShape{"shape", &is_layout_like},
    kNumber{"host number of 32 bits", &is_number},
    kAny{"layout, or a tuple without _", &is_layout_like}, kCoord{"coord", &is_tuple},
    kInner{"swizzle or layout", &is_swizzle_or_layout};

struct Function {
  const char* name;
  std::vector<Parameter> parameters;
  size_t required;
  bool repeats;  // the last parameter, any number of times
  Value (*call)(Arguments);
};

// A function of layouts and of tuples alike.
template <class OnLayout, class OnTuple>
Value either(const Value& value, const OnLayout& on_layout, const OnTuple& on_tuple) {
  if (const auto* layout = std::get_if<Layout>(&value)) return on_layout(*layout);
  return on_tuple(std::get<IntTuple>(value));
}

Value number(const SymInt& value) {
  if (value.is_overflow()) return error("the result does not fit 64 bits", "use smaller numbers");
  return IntTuple(value);
}

// Modes as get, select and the others name them.
Value get_path(Arguments a) {
  Value at = a[0];
  for (const Value& mode : a.subspan(1)) {
    if (failed(at)) return at;
    at = either(
        at, [&](const Layout& l) -> Value { return get(l, as_number(mode)); },
        [&](const IntTuple& t) -> Value { return get(t, as_number(mode)); });
  }
  return at;
}

Value select_modes(Arguments a) {
  Layout layouts;
  IntTuple shape, stride;
  const bool is_layout = std::holds_alternative<Layout>(a[0]);
  for (const Value& mode : a.subspan(1)) {
    const Value part = get_path({{a[0], mode}});
    if (failed(part)) return part;
    shape = append(shape, as_shape(part));
    if (is_layout) stride = append(stride, std::get<Layout>(part).stride());
  }
  if (!is_layout) return shape;
  return std::get<Layout>(a[0]).with_outer(Layout(shape, stride));
}

Value append_value(Arguments a, bool in_front) {
  const int up_to = a.size() > 2 ? as_number(a[2]) : -1;
  if (std::holds_alternative<Layout>(a[0])) {
    const Layout x = a.size() > 1 ? as_layout(a[1]) : Layout();
    const Layout layout = as_layout(a[0]);
    return in_front ? prepend(layout, x, up_to) : append(layout, x, up_to);
  }
  const IntTuple x = a.size() > 1 ? as_shape(a[1]) : IntTuple(1);
  return in_front ? prepend(as_tuple(a[0]), x, up_to) : append(as_tuple(a[0]), x, up_to);
}

Value concatenated(Arguments a) {
  IntTuple shape, stride;
  for (const Value& value : a) {
    const Layout layout = as_layout(value);
    if (!layout.ok()) return layout;
    if (layout.is_composed()) return concatenate({layout});
    shape = append(shape, layout.shape());
    stride = append(stride, layout.stride());
  }
  return Layout(shape, stride);
}

Value composed(Arguments a) {
  const IntTuple& offset = as_tuple(a[1]);
  const Layout outer = as_layout(a[2]);
  if (const auto* swizzle = std::get_if<Swizzle>(&a[0])) {
    return make_composed_layout(*swizzle, offset, outer);
  }
  return make_composed_layout(as_layout(a[0]), offset, outer);
}

template <Layout (*kFunction)(const Layout&, const Tiler&, SourceLoc)>
Value tiled(Arguments a) {
  return kFunction(as_layout(a[0]), as_tiler(a[1]), {});
}
template <Layout (*kFunction)(const Layout&, const Layout&, SourceLoc)>
Value paired(Arguments a) {
  return kFunction(as_layout(a[0]), as_layout(a[1]), {});
}
template <Layout (*kFunction)(const Layout&, SourceLoc)>
Value single(Arguments a) {
  return kFunction(as_layout(a[0]), {});
}
template <IntTuple (*kFunction)(const IntTuple&, const IntTuple&, SourceLoc)>
Value of_tuples(Arguments a) {
  return kFunction(as_tuple(a[0]), as_tuple(a[1]), {});
}
template <bool (*kFunction)(const IntTuple&, const IntTuple&)>
Value predicate(Arguments a) {
  return number(kFunction(as_shape(a[0]), as_shape(a[1])) ? 1 : 0);
}

const std::vector<Function>& functions() {
  static const auto& table = *new std::
                                 vector<Function>{
                                     // Making.
                                     {"make_layout",
                                      {kAny, kAny},
                                      1,
                                      true,
                                      [](Arguments a) -> Value {
                                        if (a.size() == 1 && is_tuple(a[0]))
                                          return make_layout(as_tuple(a[0]));
                                        if (a.size() == 2 && is_tuple(a[0]) && is_tuple(a[1])) {
                                          return make_layout(as_tuple(a[0]), as_tuple(a[1]));
                                        }
                                        return concatenated(a);
                                      }},
                                     {"make_ordered_layout",
                                      {kShape, kTuple},
                                      2,
                                      false,
                                      [](Arguments a) -> Value {
                                        return make_ordered_layout(as_shape(a[0]), as_tuple(a[1]));
                                      }},
                                     {"make_layout_like",
                                      {kLayout},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return make_layout_like(as_layout(a[0]));
                                      }},
                                     {"make_fragment_like",
                                      {kLayout},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return make_fragment_like(as_layout(a[0]));
                                      }},
                                     {"make_identity_layout",
                                      {kShape},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return make_identity_layout(as_shape(a[0]));
                                      }},
                                     {"make_composed_layout",
                                      {kInner, kCoord, kLayout},
                                      3,
                                      false,
                                      &composed},
                                     {"make_layout_tv",
                                      {kLayout, kLayout},
                                      2,
                                      false,
                                      [](Arguments a) -> Value {
                                        return make_layout_tv(as_layout(a[0]), as_layout(a[1]))
                                            .second;
                                      }},
                                     {"make_swizzle",
                                      {kNumber, kNumber, kNumber},
                                      3,
                                      false,
                                      [](Arguments a) -> Value {
                                        return evaluate_layout(absl::StrCat(
                                            "S<", as_number(a[0]), ",", as_number(a[1]), ",",
                                            as_number(a[2]), ">"));
                                      }},
                                     {"recast",
                                      {kLayout, kNumber, kNumber},
                                      3,
                                      false,
                                      [](Arguments a) -> Value {
                                        return recast(as_layout(a[0]), as_number(a[1]),
                                                      as_number(a[2]));
                                      }},
                                     // Questions.
                                     {"size",
                                      {kAny},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return number(size(as_shape(a[0])));
                                      }},
                                     {"cosize",
                                      {kLayout},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return number(cosize(as_layout(a[0])));
                                      }},
                                     {"rank",
                                      {kAny},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return number(rank(as_shape(a[0])));
                                      }},
                                     {"depth",
                                      {kAny},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return number(depth(as_shape(a[0])));
                                      }},
                                     {"shape",
                                      {kLayout},
                                      1,
                                      false,
                                      [](Arguments a) -> Value { return as_shape(a[0]); }},
                                     {"stride",
                                      {kLayout},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return as_layout(a[0]).stride();
                                      }},
                                     {"is_static",
                                      {kAny},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return either(
                                            a[0],
                                            [](const Layout& l) {
                                              return number(is_static(l) ? 1 : 0);
                                            },
                                            [](const IntTuple& t) {
                                              return number(is_static(t) ? 1 : 0);
                                            });
                                      }},
                                     {"is_congruent",
                                      {kAny, kAny},
                                      2,
                                      false,
                                      &predicate<&is_congruent>},
                                     {"is_weakly_congruent",
                                      {kAny, kAny},
                                      2,
                                      false,
                                      &predicate<&is_weakly_congruent>},
                                     {"is_compatible",
                                      {kAny, kAny},
                                      2,
                                      false,
                                      &predicate<&is_compatible>},
                                     {"leading_dim",
                                      {kLayout},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return number(leading_dim(as_layout(a[0])));
                                      }},
                                     {"is_major",
                                      {kNumber, kLayout},
                                      2,
                                      false,
                                      [](Arguments a) -> Value {
                                        return number(
                                            is_major(as_number(a[0]), as_layout(a[1])) ? 1 : 0);
                                      }},
                                     {"coshape",
                                      {kLayout},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return coshape(as_layout(a[0]));
                                      }},
                                     {"size_in_bytes",
                                      {kNumber, kLayout},
                                      2,
                                      false,
                                      [](Arguments a) -> Value {
                                        return number(
                                            size_in_bytes(as_number(a[0]), as_layout(a[1])));
                                      }},
                                     {"get_swizzle_portion",
                                      {kLayout},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return get_swizzle_portion(as_layout(a[0]));
                                      }},
                                     {"get_nonswizzle_portion",
                                      {kLayout},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return get_nonswizzle_portion(as_layout(a[0]));
                                      }},
                                     {"has_underscore",
                                      {kTuple},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return number(has_underscore(as_tuple(a[0])) ? 1 : 0);
                                      }},
                                     {"elem_less",
                                      {kTuple, kTuple},
                                      2,
                                      false,
                                      &predicate<&elem_less>},
                                     {"find",
                                      {kTuple, kTuple},
                                      2,
                                      false,
                                      [](Arguments a) -> Value {
                                        return number(find(as_tuple(a[0]), as_tuple(a[1])));
                                      }},
                                     {"get_divisibility",
                                      {kTuple},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return number(size(as_tuple(a[0])).divisor());
                                      }},
                                     // Modes.
                                     {"get", {kAny, kNumber}, 2, true, &get_path},
                                     {"select", {kAny, kNumber}, 2, true, &select_modes},
                                     {"front",
                                      {kTuple},
                                      1,
                                      false,
                                      [](Arguments a) -> Value { return front(as_tuple(a[0])); }},
                                     {"wrap",
                                      {kTuple},
                                      1,
                                      false,
                                      [](Arguments a) -> Value { return wrap(as_tuple(a[0])); }},
                                     {"unwrap",
                                      {kTuple},
                                      1,
                                      false,
                                      [](Arguments a) -> Value { return unwrap(as_tuple(a[0])); }},
                                     {"flatten",
                                      {kAny},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return either(
                                            a[0],
                                            [](const Layout& l) -> Value { return flatten(l); },
                                            [](const IntTuple& t) -> Value { return flatten(t); });
                                      }},
                                     {"group_modes",
                                      {kAny, kNumber, kNumber},
                                      3,
                                      false,
                                      [](Arguments a) -> Value {
                                        return either(
                                            a[0],
                                            [&](const Layout& l) -> Value {
                                              return group_modes(l, as_number(a[1]),
                                                                 as_number(a[2]));
                                            },
                                            [&](const IntTuple& t) -> Value {
                                              return group_modes(t, as_number(a[1]),
                                                                 as_number(a[2]));
                                            });
                                      }},
                                     {"append",
                                      {kAny, kAny, kNumber},
                                      1,
                                      false,
                                      [](Arguments a) -> Value { return append_value(a, false); }},
                                     {"prepend",
                                      {kAny, kAny, kNumber},
                                      1,
                                      false,
                                      [](Arguments a) -> Value { return append_value(a, true); }},
                                     {"slice",
                                      {kCoord, kAny},
                                      2,
                                      false,
                                      [](Arguments a) -> Value {
                                        return either(
                                            a[1],
                                            [&](const Layout& l) -> Value {
                                              return slice(as_tuple(a[0]), l);
                                            },
                                            [&](const IntTuple& t) -> Value {
                                              return slice(as_tuple(a[0]), t);
                                            });
                                      }},
                                     {"dice",
                                      {kCoord, kAny},
                                      2,
                                      false,
                                      [](Arguments a) -> Value {
                                        return either(
                                            a[1],
                                            [&](const Layout& l) -> Value {
                                              return dice(as_tuple(a[0]), l);
                                            },
                                            [&](const IntTuple& t) -> Value {
                                              return dice(as_tuple(a[0]), t);
                                            });
                                      }},
                                     {"filter_zeros",
                                      {kLayout},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return filter_zeros(as_layout(a[0]));
                                      }},
                                     {"filter",
                                      {kLayout, kTuple},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return a.size() == 1
                                                   ? filter(as_layout(a[0]))
                                                   : filter(as_layout(a[0]), as_tuple(a[1]));
                                      }},
                                     {"append_ones",
                                      {kTuple, kNumber},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return append_ones(as_tuple(a[0]),
                                                           a.size() > 1 ? as_number(a[1]) : -1);
                                      }},
                                     {"prepend_ones",
                                      {kTuple, kNumber},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return prepend_ones(as_tuple(a[0]),
                                                            a.size() > 1 ? as_number(a[1]) : -1);
                                      }},
                                     {"repeat",
                                      {kTuple, kNumber},
                                      2,
                                      false,
                                      [](Arguments a) -> Value {
                                        return repeat(as_tuple(a[0]), as_number(a[1]));
                                      }},
                                     {"repeat_as_tuple",
                                      {kTuple, kNumber},
                                      2,
                                      false,
                                      [](Arguments a) -> Value {
                                        return repeat_as_tuple(as_tuple(a[0]), as_number(a[1]));
                                      }},
                                     {"repeat_like",
                                      {kTuple, kTuple},
                                      2,
                                      false,
                                      [](Arguments a) -> Value {
                                        return repeat_like(as_tuple(a[0]), as_tuple(a[1]));
                                      }},
                                     {"tuple_cat",
                                      {kTuple, kTuple},
                                      2,
                                      false,
                                      [](Arguments a) -> Value {
                                        return tuple_cat(as_tuple(a[0]), as_tuple(a[1]));
                                      }},
                                     {"unflatten",
                                      {kTuple, kTuple},
                                      2,
                                      false,
                                      &of_tuples<&unflatten>},
                                     {"coalesce",
                                      {kLayout, kTuple},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return a.size() == 1
                                                   ? coalesce(as_layout(a[0]))
                                                   : coalesce(as_layout(a[0]), as_tuple(a[1]));
                                      }},
                                     // Numbers.
                                     {"product",
                                      {kTuple},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return number(size(as_tuple(a[0])));
                                      }},
                                     {"product_each",
                                      {kTuple},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return product_each(as_tuple(a[0]));
                                      }},
                                     {"product_like",
                                      {kTuple, kTuple},
                                      2,
                                      false,
                                      &of_tuples<&product_like>},
                                     {"round_up",
                                      {kTuple, kTuple},
                                      2,
                                      false,
                                      &of_tuples<&round_up>},
                                     {"crd2crd",
                                      {kCoord, kShape, kShape},
                                      3,
                                      false,
                                      [](Arguments a) -> Value {
                                        return crd2crd(as_tuple(a[0]), as_shape(a[1]),
                                                       as_shape(a[2]));
                                      }},
                                     {"increment_coord",
                                      {kCoord, kShape},
                                      2,
                                      false,
                                      [](Arguments a) -> Value {
                                        return increment_coord(as_tuple(a[0]), as_shape(a[1]));
                                      }},
                                     {"make_basis_like",
                                      {kShape},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return make_basis_like(as_shape(a[0]));
                                      }},
                                     {"basis_value",
                                      {kTuple},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return basis_value(as_tuple(a[0]));
                                      }},
                                     {"basis_get",
                                      {kTuple, kTuple},
                                      2,
                                      false,
                                      &of_tuples<&basis_get>},
                                     {"ceil_div",
                                      {kTuple, kTuple},
                                      2,
                                      false,
                                      &of_tuples<&ceil_div>},
                                     {"shape_div",
                                      {kTuple, kTuple},
                                      2,
                                      false,
                                      &of_tuples<&shape_div>},
                                     {"crd2idx",
                                      {kCoord, kAny, kTuple},
                                      2,
                                      false,
                                      [](Arguments a) -> Value {
                                        if (a.size() == 3)
                                          return crd2idx(as_tuple(a[0]), as_shape(a[1]),
                                                         as_tuple(a[2]));
                                        if (const auto* layout = std::get_if<Layout>(&a[1]))
                                          return (*layout)(as_tuple(a[0]));
                                        return crd2idx(as_tuple(a[0]), as_tuple(a[1]));
                                      }},
                                     {"idx2crd",
                                      {kCoord, kShape},
                                      2,
                                      false,
                                      [](Arguments a) -> Value {
                                        return idx2crd(as_tuple(a[0]), as_shape(a[1]));
                                      }},
                                     // Algebra.
                                     {"composition",
                                      {kLayout, kTiler},
                                      2,
                                      false,
                                      [](Arguments a) -> Value {
                                        return composition(as_layout(a[0]), as_tiler(a[1]));
                                      }},
                                     {"complement",
                                      {kLayout, kShape},
                                      1,
                                      false,
                                      [](Arguments a) -> Value {
                                        return a.size() == 1
                                                   ? complement(as_layout(a[0]))
                                                   : complement(as_layout(a[0]), as_shape(a[1]));
                                      }},
                                     {"right_inverse",
                                      {kLayout},
                                      1,
                                      false,
                                      &single<&right_inverse>},
                                     {"left_inverse", {kLayout}, 1, false, &single<&left_inverse>},
                                     {"nullspace", {kLayout}, 1, false, &single<&nullspace>},
                                     {"max_common_vector",
                                      {kLayout, kLayout},
                                      2,
                                      false,
                                      [](Arguments a) -> Value {
                                        return number(
                                            max_common_vector(as_layout(a[0]), as_layout(a[1])));
                                      }},
                                     {"max_common_layout",
                                      {kLayout, kLayout},
                                      2,
                                      false,
                                      &paired<&max_common_layout>},
                                     {"logical_divide",
                                      {kLayout, kTiler},
                                      2,
                                      false,
                                      &tiled<&logical_divide>},
                                     {"zipped_divide",
                                      {kLayout, kTiler},
                                      2,
                                      false,
                                      &tiled<&zipped_divide>},
                                     {"tiled_divide",
                                      {kLayout, kTiler},
                                      2,
                                      false,
                                      &tiled<&tiled_divide>},
                                     {"flat_divide",
                                      {kLayout, kTiler},
                                      2,
                                      false,
                                      &tiled<&flat_divide>},
                                     {"logical_product",
                                      {kLayout, kTiler},
                                      2,
                                      false,
                                      &tiled<&logical_product>},
                                     {"zipped_product",
                                      {kLayout, kTiler},
                                      2,
                                      false,
                                      &tiled<&zipped_product>},
                                     {"tiled_product",
                                      {kLayout, kTiler},
                                      2,
                                      false,
                                      &tiled<&tiled_product>},
                                     {"flat_product",
                                      {kLayout, kTiler},
                                      2,
                                      false,
                                      &tiled<&flat_product>},
                                     {"blocked_product",
                                      {kLayout, kLayout},
                                      2,
                                      false,
                                      &paired<&blocked_product>},
                                     {"raked_product",
                                      {kLayout, kLayout},
                                      2,
                                      false,
                                      &paired<&raked_product>},
                                     {"tile_to_shape",
                                      {kLayout, kShape, kTuple},
                                      2,
                                      false,
                                      [](Arguments a) -> Value {
                                        return a.size() == 2
                                                   ? tile_to_shape(as_layout(a[0]), as_shape(a[1]))
                                                   : tile_to_shape(as_layout(a[0]), as_shape(a[1]),
                                                                   as_tuple(a[2]));
                                      }},
                                     {"local_tile",
                                      {kLayout, kTiler, kCoord},
                                      3,
                                      false,
                                      [](Arguments a) -> Value {
                                        return local_tile(as_layout(a[0]), as_tiler(a[1]),
                                                          as_tuple(a[2]));
                                      }},
                                     {"local_partition",
                                      {kLayout, kLayout, kCoord},
                                      3,
                                      false,
                                      [](Arguments a) -> Value {
                                        return local_partition(as_layout(a[0]), as_layout(a[1]),
                                                               as_tuple(a[2]));
                                      }},
                                     {"make_layout_image_mask",
                                      {kLayout, kCoord, kNumber},
                                      3,
                                      false,
                                      [](Arguments a) -> Value {
                                        return make_layout_image_mask(
                                            as_layout(a[0]), as_tuple(a[1]), as_number(a[2]));
                                      }},
                                 };
  return table;
}

Value call(absl::string_view name, const std::vector<Value>& arguments) {
  const auto& table = functions();
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const Function& f) { return name == f.name; });
  if (found == table.end()) {
    return error(absl::StrCat("there is no function '", name, "'"),
                 "heddle layout --functions lists them");
  }
  const size_t most = found->repeats ? SIZE_MAX : found->parameters.size();
  if (arguments.size() < found->required || arguments.size() > most) {
    return error(absl::StrCat(name, " takes ",
                              found->required == most ? absl::StrCat(most)
                              : found->repeats        ? absl::StrCat(found->required, " or more")
                                                      : absl::StrCat(found->required, " to ", most),
                              " arguments, not ", arguments.size()),
                 "heddle layout --functions lists them");
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (failed(arguments[i])) return arguments[i];
    const Parameter& parameter = found->parameters[std::min(i, found->parameters.size() - 1)];
    if (!parameter.accepts(arguments[i])) {
      return error(absl::StrCat("argument ", i + 1, " of ", name, " is ", to_string(arguments[i])),
                   absl::StrCat("it has to be a ", parameter.name));
    }
  }
  return found->call(arguments);
}

// --- Expressions ----------------------------------------------------------------------------

// Recursive descent. After the first mistake everything is that mistake.
class Parser {
 public:
  explicit Parser(absl::string_view text) : text_(text) {}

  Value run() {
    Value value = composition_chain();
    skip_space();
    if (!failed(value) && at_ < text_.size()) return expected("the end");
    return value;
  }

 private:
  static constexpr int kMostNested = 100;

  // a, a o b, a o offset o b
  Value composition_chain() {
    Value first = layout_or_tuple();
    if (failed(first) || !take_word("o")) return first;
    const Value second = layout_or_tuple();
    if (failed(second)) return second;
    if (!take_word("o")) {
      if (std::holds_alternative<Swizzle>(first)) {
        return call("make_composed_layout", {first, IntTuple(0), second});
      }
      return call("composition", {first, second});
    }
    const Value third = layout_or_tuple();
    if (failed(third)) return third;
    return call("make_composed_layout", {first, second, third});
  }

  // a, a:b
  Value layout_or_tuple() {
    Value shape = applied();
    if (failed(shape) || !take(':')) return shape;
    const Value stride = applied();
    if (failed(stride)) return stride;
    if (!is_tuple(shape) || !is_tuple(stride)) return expected("a shape and a stride around ':'");
    return call("make_layout", {shape, stride});
  }

  // a, a(coord)
  Value applied() {
    Value value = primary();
    while (!failed(value) && take('(')) {
      std::vector<Value> coords;
      if (const Value list = elements(')', &coords); failed(list)) return list;
      IntTuple coord;
      for (const Value& c : coords) {
        if (!is_tuple(c)) return error("a coordinate with " + to_string(c), "give integers and _");
        coord = append(coord, as_tuple(c));
      }
      if (coords.size() == 1) coord = as_tuple(coords[0]);
      if (const auto* swizzle = std::get_if<Swizzle>(&value)) {
        if (!coord.is_int()) return error("a swizzle of " + coord.to_string(), "give an integer");
        value = IntTuple((*swizzle)(coord.value()));
      } else if (!is_layout_like(value)) {
        return error(to_string(value) + " is no layout", "evaluate layouts");
      } else {
        const Layout layout = as_layout(value);
        if (has_underscore(coord)) {
          value = slice(coord, layout, {});
        } else {
          value = layout(coord, {});
        }
      }
    }
    return value;
  }

  Value primary() {
    skip_space();
    if (at_ >= text_.size()) return expected("an expression");
    if (++nested_ > kMostNested)
      return error("brackets nest too deeply", "simplify the expression");
    Value value = unnested();
    --nested_;
    return value;
  }

  Value unnested() {
    const char c = text_[at_];
    if (c == '(') {
      ++at_;
      return tuple();
    }
    if (c == '<') {
      ++at_;
      std::vector<Value> modes;
      if (Value list = elements('>', &modes); failed(list)) return list;
      return tiler(modes);
    }
    if (c == '?' || c == '-' || absl::ascii_isdigit(c)) return leaf();
    if (c == '_' && at_ + 1 < text_.size() && absl::ascii_isdigit(text_[at_ + 1])) {
      ++at_;  // CuTe's _4, a static 4
      return leaf();
    }
    if (c == '_') {
      ++at_;
      return IntTuple(_);
    }
    const absl::string_view name = word();
    if (name.empty()) return expected("an expression");
    if (name == "S" && take('<')) return swizzle();
    if (!take('(')) return expected("'('");
    std::vector<Value> arguments;
    if (Value list = elements(')', &arguments); failed(list)) return list;
    return call(name, arguments);
  }

  // What stands in brackets: a tuple; where one thing that is no tuple does, that thing.
  Value tuple() {
    std::vector<Value> parts;
    if (Value list = elements(')', &parts); failed(list)) return list;
    if (parts.size() == 1 && !is_tuple(parts[0])) return parts[0];
    if (!std::all_of(parts.begin(), parts.end(), &is_tuple)) return tiler(parts);
    detail::TupleBuilder builder;
    const size_t open = builder.open();
    for (const Value& part : parts) builder.add(as_tuple(part));
    builder.close(open);
    return builder.build();
  }

  Value tiler(const std::vector<Value>& modes) {
    std::vector<Tiler> tilers;
    for (const Value& mode : modes) {
      if (!is_tiler_like(mode)) {
        return error("a tiler with " + to_string(mode), "give layouts, numbers and _");
      }
      tilers.push_back(as_tiler(mode));
    }
    return Tiler(tilers.data(), static_cast<int>(tilers.size()));
  }

  // Up to the closing bracket.
  Value elements(char close, std::vector<Value>* out) {
    if (take(close)) return IntTuple(0);
    for (;;) {
      Value element = composition_chain();
      if (failed(element)) return element;
      out->push_back(std::move(element));
      if (take(close)) return IntTuple(0);
      if (!take(',')) return expected(absl::StrCat("',' or '", std::string(1, close), "'"));
      if (close == ')' && take(close)) return IntTuple(0);  // (4,)
    }
  }

  // 4, ?, ?{div=8}, and with @ behind them
  Value leaf() {
    SymInt value;
    if (take('?')) {
      int64_t divisor = 1;
      if (take('{')) {
        // The width that CuTe DSL may say is of no consequence here.
        if (take_word("i32") || take_word("i64")) {
        }
        if (take_word("div")) {
          if (!take('=') || !integer(&divisor) || divisor < 1)
            return expected("a positive divisor");
        }
        if (!take('}')) return expected("'}'");
      }
      value = SymInt::unknown(divisor);
    } else {
      int64_t number = 0;
      if (!integer(&number)) return expected("a number that fits 64 bits");
      value = number;
    }
    detail::TupleNode node;
    node.value = value;
    while (take('@')) {
      int64_t mode = 0;
      if (!integer(&mode) || mode < 0 || mode > 255 ||
          node.path_length == detail::TupleNode::kMaxPath) {
        return expected("a mode");
      }
      node.path[node.path_length++] = static_cast<uint8_t>(mode);
    }
    std::reverse(node.path, node.path + node.path_length);
    return detail::TupleBuilder::build(node);
  }

  Value swizzle() {
    int64_t numbers[3];
    for (int i = 0; i < 3; ++i) {
      if (!integer(&numbers[i]) || !take(i < 2 ? ',' : '>')) return expected("S<bits,base,shift>");
      if (numbers[i] < -62 || numbers[i] > 62)
        return error("a swizzle of more than 62 bits", "use less");
    }
    if (numbers[0] < 0 || numbers[1] < 0 || std::abs(numbers[2]) < numbers[0] ||
        numbers[0] + numbers[1] + std::abs(numbers[2]) > 62) {
      return error(
          absl::StrCat("S<", numbers[0], ",", numbers[1], ",", numbers[2], "> is no swizzle"),
          "bits and base are not negative, |shift| >= bits, and all lies below bit 62");
    }
    return Swizzle(static_cast<int>(numbers[0]), static_cast<int>(numbers[1]),
                   static_cast<int>(numbers[2]));
  }

  // --- Text ---

  void skip_space() {
    while (at_ < text_.size() && absl::ascii_isspace(text_[at_])) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  absl::string_view word() {
    skip_space();
    size_t end = at_;
    while (end < text_.size() && (absl::ascii_isalnum(text_[end]) || text_[end] == '_')) ++end;
    const absl::string_view result = text_.substr(at_, end - at_);
    at_ = end;
    return result;
  }
  bool take_word(absl::string_view wanted) {
    const size_t before = at_;
    if (word() == wanted) return true;
    at_ = before;
    return false;
  }
  bool integer(int64_t* value) {
    skip_space();
    size_t end = at_ + (at_ < text_.size() && text_[at_] == '-' ? 1 : 0);
    while (end < text_.size() && absl::ascii_isdigit(text_[end])) ++end;
    const absl::string_view digits = text_.substr(at_, end - at_);
    if (!absl::SimpleAtoi(digits, value)) return false;
    at_ = end;
    return true;
  }
  Value expected(const std::string& what) {
    skip_space();
    return error(
        absl::StrCat("expected ", what, " at column ", at_ + 1,
                     at_ < text_.size()
                         ? absl::StrCat(", where '", std::string(text_.substr(at_, 12)), "' stands")
                         : ", where the expression ends"),
        "see heddle layout --help");
  }

  const absl::string_view text_;
  size_t at_ = 0;
  int nested_ = 0;
};

}  // namespace

LayoutValue evaluate_layout(std::string_view expression) {
  return Parser({expression.data(), expression.size()}).run();
}

std::string to_string(const LayoutValue& value) {
  return std::visit([](const auto& v) { return v.to_string(); }, value);
}

std::string evaluate(std::string_view expression) { return to_string(evaluate_layout(expression)); }

Layout parse_layout(std::string_view text) {
  const LayoutValue value = evaluate_layout(text);
  if (is_layout_like(value)) return as_layout(value);
  const IntTuple none = detail::TupleBuilder::failed(
      absl::StrCat(to_string(value), " is no layout; write shape:stride"));
  return Layout(none, none);
}

IntTuple parse_int_tuple(std::string_view text) {
  const LayoutValue value = evaluate_layout(text);
  if (const auto* tuple = std::get_if<IntTuple>(&value)) return *tuple;
  return detail::TupleBuilder::failed(
      absl::StrCat(to_string(value), " is no tuple; write (a,b,…)"));
}

std::vector<std::string> calculator_functions() {
  std::vector<std::string> result;
  for (const Function& function : functions()) {
    std::string text = absl::StrCat(function.name, "(");
    for (size_t i = 0; i < function.parameters.size(); ++i) {
      absl::StrAppend(&text, i == function.required ? "[" : "", i == 0 ? "" : ", ",
                      function.parameters[i].name);
    }
    absl::StrAppend(&text, function.repeats ? ", …" : "",
                    function.required < function.parameters.size() ? "]" : "", ")");
    result.push_back(std::move(text));
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace heddle
