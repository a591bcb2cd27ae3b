// The functions of the layout calculator, by name.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "heddle/dsl/layout/calculator_internal.h"
#include "heddle/dsl/layout/modes_internal.h"
#include "heddle/dsl/layout/tuple_builder_internal.h"

namespace heddle {
namespace detail {

LayoutValue calculator_error(std::string what, const std::string& fix) {
  return detail::TupleBuilder::failed(absl::StrCat(what, "; ", fix));
}

bool failed(const LayoutValue& value) {
  if (const auto* tuple = std::get_if<IntTuple>(&value)) return !tuple->ok();
  if (const auto* layout = std::get_if<Layout>(&value)) return !layout->ok();
  return false;
}

bool is_layout_like(const LayoutValue& value) {
  return std::holds_alternative<Layout>(value) ||
         (std::holds_alternative<IntTuple>(value) && !has_underscore(std::get<IntTuple>(value)));
}

Layout as_layout(const LayoutValue& value) {
  if (const auto* layout = std::get_if<Layout>(&value)) return *layout;
  return make_layout(std::get<IntTuple>(value));
}

bool is_tiler_like(const LayoutValue& value) {
  return std::holds_alternative<Layout>(value) || std::holds_alternative<Tiler>(value) ||
         std::holds_alternative<IntTuple>(value);
}

Tiler as_tiler(const LayoutValue& value) {
  if (const auto* layout = std::get_if<Layout>(&value)) return *layout;
  if (const auto* tuple = std::get_if<IntTuple>(&value)) return *tuple;
  return std::get<Tiler>(value);
}

bool is_tuple(const LayoutValue& value) { return std::holds_alternative<IntTuple>(value); }

const IntTuple& as_tuple(const LayoutValue& value) { return std::get<IntTuple>(value); }

}  // namespace detail

namespace {

using detail::as_layout;
using detail::as_tiler;
using detail::as_tuple;
using detail::failed;
using detail::is_tuple;
using Value = LayoutValue;
using Arguments = absl::Span<const Value>;

constexpr auto* error = &detail::calculator_error;

// A shape is a tuple, or that of a layout.
IntTuple as_shape(const Value& value) {
  if (const auto* layout = std::get_if<Layout>(&value)) return layout->shape();
  return std::get<IntTuple>(value);
}

bool is_number(const Value& value) {
  const auto* tuple = std::get_if<IntTuple>(&value);
  return tuple != nullptr && tuple->is_int() && !tuple->node().is_basis() &&
         tuple->value().is_constant() && tuple->value().value() >= INT32_MIN &&
         tuple->value().value() <= INT32_MAX;
}

int as_number(const Value& value) {
  return static_cast<int>(std::get<IntTuple>(value).value().value());
}

bool is_swizzle(const Value& value) { return std::holds_alternative<Swizzle>(value); }

bool is_swizzle_or_layout(const Value& value) {
  return is_swizzle(value) || detail::is_layout_like(value);
}
bool is_swizzle_or_tiler(const Value& value) {
  return is_swizzle(value) || detail::is_tiler_like(value);
}

// --- Functions ------------------------------------------------------------------------------

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

// What is wrong with a layout that has none is coshape()'s to say.
Value cosize_of(const Layout& layout) {
  const IntTuple extents = coshape(layout);
  return extents.ok() ? number(size(extents)) : extents;
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

Value recasted(const Value& value, int old_bits, int new_bits) {
  const auto* swizzle = std::get_if<Swizzle>(&value);
  if (swizzle == nullptr) return recast_layout(as_layout(value), old_bits, new_bits);
  std::string fix;
  const std::string what = detail::why_not_recast(*swizzle, old_bits, new_bits, &fix);
  if (!what.empty()) return error(what, fix);
  return recast_layout(*swizzle, old_bits, new_bits);
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

// A function as users read it: "tile_to_shape(layout, shape[, tuple])". Parameters have the names
// of kKinds; those in brackets may be left out, and ... lets the last one come again and again.
struct Function {
  absl::string_view signature;
  Value (*call)(Arguments);

  absl::string_view name() const { return signature.substr(0, signature.find('(')); }
};

// What a parameter's name stands for.
struct Kind {
  absl::string_view name;
  bool (*accepts)(const Value&);
  absl::string_view what;
};
constexpr Kind kKinds[] = {
    {"layout", &detail::is_layout_like, "a layout, or a tuple without _"},
    {"any", &detail::is_layout_like, "a layout, or a tuple without _"},
    {"shape", &detail::is_layout_like, "a shape, or a layout for its shape"},
    {"tiler", &detail::is_tiler_like, "a tiler, a layout or a tuple"},
    {"tuple", &is_tuple, "a tuple"},
    {"coord", &is_tuple, "a coordinate"},
    {"offset", [](const Value& v) { return is_tuple(v) && detail::is_layout_like(v); },
     "a number, or a tuple without _"},
    {"number", &is_number, "a host number of 32 bits"},
    {"inner", &is_swizzle_or_layout, "a swizzle or a layout"},
    {"outer", &is_swizzle_or_tiler, "a tiler, a layout, a tuple or a swizzle"},
};

constexpr Function kFunctions[] = {
    // Making.
    {"make_layout(any[, any, ...])",
     [](Arguments a) -> Value {
       if (a.size() == 1 && is_tuple(a[0])) return make_layout(as_tuple(a[0]));
       if (a.size() == 2 && is_tuple(a[0]) && is_tuple(a[1])) {
         return make_layout(as_tuple(a[0]), as_tuple(a[1]));
       }
       return concatenated(a);
     }},
    {"make_ordered_layout(shape, tuple)",
     [](Arguments a) -> Value { return make_ordered_layout(as_shape(a[0]), as_tuple(a[1])); }},
    {"compact_order(shape, tuple)",
     [](Arguments a) -> Value { return compact_order(as_shape(a[0]), as_tuple(a[1])); }},
    {"make_layout_like(layout)",
     [](Arguments a) -> Value { return make_layout_like(as_layout(a[0])); }},
    {"make_fragment_like(layout)",
     [](Arguments a) -> Value { return make_fragment_like(as_layout(a[0])); }},
    {"make_identity_layout(shape)",
     [](Arguments a) -> Value { return make_identity_layout(as_shape(a[0])); }},
    {"make_composed_layout(inner, offset, layout)", &composed},
    {"make_layout_tv(layout, layout)",
     [](Arguments a) -> Value { return make_layout_tv(as_layout(a[0]), as_layout(a[1])).second; }},
    {"make_swizzle(number, number, number)",
     [](Arguments a) -> Value {
       return evaluate_layout(
           absl::StrCat("S<", as_number(a[0]), ",", as_number(a[1]), ",", as_number(a[2]), ">"));
     }},
    {"recast_layout(inner, number, number)",
     [](Arguments a) -> Value { return recasted(a[0], as_number(a[1]), as_number(a[2])); }},
    {"recast(inner, number, number)",
     [](Arguments a) -> Value { return recasted(a[0], as_number(a[1]), as_number(a[2])); }},
    {"upcast(inner, number)",
     [](Arguments a) -> Value { return recasted(a[0], 1, as_number(a[1])); }},
    {"downcast(inner, number)",
     [](Arguments a) -> Value { return recasted(a[0], as_number(a[1]), 1); }},
    // Questions.
    {"size(any)", [](Arguments a) -> Value { return number(size(as_shape(a[0]))); }},
    {"cosize(layout)", [](Arguments a) -> Value { return cosize_of(as_layout(a[0])); }},
    {"rank(any)", [](Arguments a) -> Value { return number(rank(as_shape(a[0]))); }},
    {"depth(any)", [](Arguments a) -> Value { return number(depth(as_shape(a[0]))); }},
    {"shape(layout)", [](Arguments a) -> Value { return as_shape(a[0]); }},
    {"stride(layout)", [](Arguments a) -> Value { return as_layout(a[0]).stride(); }},
    {"is_static(any)",
     [](Arguments a) -> Value {
       return either(
           a[0], [](const Layout& l) { return number(is_static(l) ? 1 : 0); },
           [](const IntTuple& t) { return number(is_static(t) ? 1 : 0); });
     }},
    {"is_congruent(any, any)", &predicate<&is_congruent>},
    {"is_weakly_congruent(any, any)", &predicate<&is_weakly_congruent>},
    {"is_compatible(any, any)", &predicate<&is_compatible>},
    {"leading_dim(layout)",
     [](Arguments a) -> Value { return number(leading_dim(as_layout(a[0]))); }},
    {"is_major(number, layout)",
     [](Arguments a) -> Value {
       return number(is_major(as_number(a[0]), as_layout(a[1])) ? 1 : 0);
     }},
    {"coshape(layout)", [](Arguments a) -> Value { return coshape(as_layout(a[0])); }},
    {"size_in_bytes(number, layout)",
     [](Arguments a) -> Value {
       const Value elements = cosize_of(as_layout(a[1]));
       return failed(elements) ? elements : number(size_in_bytes(as_number(a[0]), as_layout(a[1])));
     }},
    {"get_swizzle_portion(layout)",
     [](Arguments a) -> Value { return get_swizzle_portion(as_layout(a[0])); }},
    {"get_nonswizzle_portion(layout)",
     [](Arguments a) -> Value { return get_nonswizzle_portion(as_layout(a[0])); }},
    {"has_underscore(tuple)",
     [](Arguments a) -> Value { return number(has_underscore(as_tuple(a[0])) ? 1 : 0); }},
    {"elem_less(tuple, tuple)", &predicate<&elem_less>},
    {"find(tuple, tuple)",
     [](Arguments a) -> Value { return number(find(as_tuple(a[0]), as_tuple(a[1]))); }},
    {"get_divisibility(tuple)",
     [](Arguments a) -> Value { return get_divisibility(as_tuple(a[0])); }},
    // Modes.
    {"get(any, number, ...)", &get_path},
    {"select(any, number, ...)", &select_modes},
    {"front(tuple)", [](Arguments a) -> Value { return front(as_tuple(a[0])); }},
    {"wrap(tuple)", [](Arguments a) -> Value { return wrap(as_tuple(a[0])); }},
    {"unwrap(tuple)", [](Arguments a) -> Value { return unwrap(as_tuple(a[0])); }},
    {"flatten(any)",
     [](Arguments a) -> Value {
       return either(
           a[0], [](const Layout& l) -> Value { return flatten(l); },
           [](const IntTuple& t) -> Value { return flatten(t); });
     }},
    {"flatten_to_tuple(tuple)",
     [](Arguments a) -> Value { return flatten_to_tuple(as_tuple(a[0])); }},
    {"get_leaves(tuple)", [](Arguments a) -> Value { return get_leaves(as_tuple(a[0])); }},
    {"group_modes(any, number, number)",
     [](Arguments a) -> Value {
       return either(
           a[0],
           [&](const Layout& l) -> Value {
             return group_modes(l, as_number(a[1]), as_number(a[2]));
           },
           [&](const IntTuple& t) -> Value {
             return group_modes(t, as_number(a[1]), as_number(a[2]));
           });
     }},
    {"append(any[, any, number])", [](Arguments a) -> Value { return append_value(a, false); }},
    {"prepend(any[, any, number])", [](Arguments a) -> Value { return append_value(a, true); }},
    {"slice(coord, any)",
     [](Arguments a) -> Value {
       return either(
           a[1], [&](const Layout& l) -> Value { return slice(as_tuple(a[0]), l); },
           [&](const IntTuple& t) -> Value { return slice(as_tuple(a[0]), t); });
     }},
    {"dice(coord, tiler)",
     [](Arguments a) -> Value {
       if (const auto* tiler = std::get_if<Tiler>(&a[1])) {
         const Tiler result = dice(as_tuple(a[0]), *tiler);
         return result.ok() ? Value(result) : Value(result.layout());
       }
       return either(
           a[1], [&](const Layout& l) -> Value { return dice(as_tuple(a[0]), l); },
           [&](const IntTuple& t) -> Value { return dice(as_tuple(a[0]), t); });
     }},
    {"slice_and_offset(coord, layout)",
     [](Arguments a) -> Value {
       const auto [layout, offset] = slice_and_offset(as_tuple(a[0]), as_layout(a[1]));
       if (!offset.ok()) return offset;
       return SlicedLayout{layout, offset};
     }},
    {"filter_zeros(layout)", [](Arguments a) -> Value { return filter_zeros(as_layout(a[0])); }},
    {"filter(layout[, tuple])",
     [](Arguments a) -> Value {
       return a.size() == 1 ? filter(as_layout(a[0])) : filter(as_layout(a[0]), as_tuple(a[1]));
     }},
    {"append_ones(tuple[, number])",
     [](Arguments a) -> Value {
       return append_ones(as_tuple(a[0]), a.size() > 1 ? as_number(a[1]) : -1);
     }},
    {"prepend_ones(tuple[, number])",
     [](Arguments a) -> Value {
       return prepend_ones(as_tuple(a[0]), a.size() > 1 ? as_number(a[1]) : -1);
     }},
    {"repeat(tuple, number)",
     [](Arguments a) -> Value { return repeat(as_tuple(a[0]), as_number(a[1])); }},
    {"repeat_as_tuple(tuple, number)",
     [](Arguments a) -> Value { return repeat_as_tuple(as_tuple(a[0]), as_number(a[1])); }},
    {"repeat_like(tuple, tuple)",
     [](Arguments a) -> Value { return repeat_like(as_tuple(a[0]), as_tuple(a[1])); }},
    {"tuple_cat(tuple, tuple)",
     [](Arguments a) -> Value { return tuple_cat(as_tuple(a[0]), as_tuple(a[1])); }},
    {"unflatten(tuple, tuple)", &of_tuples<&unflatten>},
    {"coalesce(layout[, tuple])",
     [](Arguments a) -> Value {
       return a.size() == 1 ? coalesce(as_layout(a[0])) : coalesce(as_layout(a[0]), as_tuple(a[1]));
     }},
    // Numbers.
    {"assume(tuple, number)",
     [](Arguments a) -> Value { return assume(as_tuple(a[0]), as_number(a[1])); }},
    {"product(tuple)", [](Arguments a) -> Value { return number(product(as_tuple(a[0]))); }},
    {"product_each(tuple)", [](Arguments a) -> Value { return product_each(as_tuple(a[0])); }},
    {"product_like(tuple, tuple)", &of_tuples<&product_like>},
    {"round_up(tuple, tuple)", &of_tuples<&round_up>},
    {"crd2crd(coord, shape, shape)",
     [](Arguments a) -> Value { return crd2crd(as_tuple(a[0]), as_shape(a[1]), as_shape(a[2])); }},
    {"increment_coord(coord, shape)",
     [](Arguments a) -> Value { return increment_coord(as_tuple(a[0]), as_shape(a[1])); }},
    {"make_basis_like(shape)",
     [](Arguments a) -> Value { return make_basis_like(as_shape(a[0])); }},
    {"basis_value(tuple)", [](Arguments a) -> Value { return basis_value(as_tuple(a[0])); }},
    {"basis_get(tuple, tuple)", &of_tuples<&basis_get>},
    {"ceil_div(tuple, tuple)", &of_tuples<&ceil_div>},
    {"shape_div(tuple, tuple)", &of_tuples<&shape_div>},
    {"crd2idx(coord, any[, tuple])",
     [](Arguments a) -> Value {
       if (a.size() == 3) return crd2idx(as_tuple(a[0]), as_shape(a[1]), as_tuple(a[2]));
       if (const auto* layout = std::get_if<Layout>(&a[1])) {
         return (*layout)(transform_leaf(as_tuple(a[0]), [](const IntTuple& x) {
           return x.is_underscore() ? IntTuple(0) : x;
         }));
       }
       return crd2idx(as_tuple(a[0]), as_tuple(a[1]));
     }},
    {"idx2crd(coord, shape[, tuple])",
     [](Arguments a) -> Value {
       return a.size() == 2 ? idx2crd(as_tuple(a[0]), as_shape(a[1]))
                            : idx2crd(as_tuple(a[0]), as_shape(a[1]), as_tuple(a[2]));
     }},
    // Algebra.
    {"composition(inner, outer)",
     [](Arguments a) -> Value {
       if (!is_swizzle(a[0])) {
         const Layout layout = as_layout(a[0]);
         return is_swizzle(a[1]) ? composition(layout, std::get<Swizzle>(a[1]))
                                 : composition(layout, as_tiler(a[1]));
       }
       if (detail::is_layout_like(a[1])) {
         return composition(std::get<Swizzle>(a[0]), as_layout(a[1]));
       }
       return error(absl::StrCat("composition of ", to_string(a[0]), " with ", to_string(a[1])),
                    "a swizzle is composed with a layout");
     }},
    {"complement(layout[, shape])",
     [](Arguments a) -> Value {
       return a.size() == 1 ? complement(as_layout(a[0]))
                            : complement(as_layout(a[0]), as_shape(a[1]));
     }},
    {"right_inverse(layout)", &single<&right_inverse>},
    {"left_inverse(layout)", &single<&left_inverse>},
    {"nullspace(layout)", &single<&nullspace>},
    {"max_common_vector(layout, layout)",
     [](Arguments a) -> Value {
       return number(max_common_vector(as_layout(a[0]), as_layout(a[1])));
     }},
    {"max_common_layout(layout, layout)", &paired<&max_common_layout>},
    {"logical_divide(layout, tiler)", &tiled<&logical_divide>},
    {"zipped_divide(layout, tiler)", &tiled<&zipped_divide>},
    {"tiled_divide(layout, tiler)", &tiled<&tiled_divide>},
    {"flat_divide(layout, tiler)", &tiled<&flat_divide>},
    {"cover(layout, tiler)", &tiled<&cover>},
    {"logical_product(layout, tiler)", &tiled<&logical_product>},
    {"zipped_product(layout, tiler)", &tiled<&zipped_product>},
    {"tiled_product(layout, tiler)", &tiled<&tiled_product>},
    {"flat_product(layout, tiler)", &tiled<&flat_product>},
    {"blocked_product(layout, layout)", &paired<&blocked_product>},
    {"raked_product(layout, layout)", &paired<&raked_product>},
    {"tile_to_shape(layout, shape[, tuple])",
     [](Arguments a) -> Value {
       return a.size() == 2 ? tile_to_shape(as_layout(a[0]), as_shape(a[1]))
                            : tile_to_shape(as_layout(a[0]), as_shape(a[1]), as_tuple(a[2]));
     }},
    {"local_tile(layout, tiler, coord[, coord])",
     [](Arguments a) -> Value {
       const Layout layout = as_layout(a[0]);
       return a.size() == 3 ? local_tile(layout, as_tiler(a[1]), as_tuple(a[2]))
                            : local_tile(layout, as_tiler(a[1]), as_tuple(a[2]), as_tuple(a[3]));
     }},
    {"local_partition(layout, layout, coord[, coord])",
     [](Arguments a) -> Value {
       const Layout layout = as_layout(a[0]), threads = as_layout(a[1]);
       return a.size() == 3 ? local_partition(layout, threads, as_tuple(a[2]))
                            : local_partition(layout, threads, as_tuple(a[2]), as_tuple(a[3]));
     }},
    {"make_layout_image_mask(layout, coord, number)",
     [](Arguments a) -> Value {
       return make_layout_image_mask(as_layout(a[0]), as_tuple(a[1]), as_number(a[2]));
     }},
};

// The parameters of a signature: their kinds, how many there have to be, and whether the last
// repeats.
struct Parameters {
  std::vector<const Kind*> kinds;
  size_t required = 0;
  bool repeats = false;
};

Parameters parameters_of(absl::string_view signature) {
  Parameters result;
  bool optional = false;
  const absl::string_view list = signature.substr(signature.find('(') + 1);
  for (absl::string_view part : absl::StrSplit(list, absl::ByAnyChar(", )"), absl::SkipEmpty())) {
    // Brackets stand before what may be left out, and behind the last one.
    while (absl::EndsWith(part, "]")) part.remove_suffix(1);
    const bool opens = absl::EndsWith(part, "[");
    if (opens) part.remove_suffix(1);
    if (part == "...") {
      result.repeats = true;
    } else if (!part.empty()) {
      for (const Kind& kind : kKinds) {
        if (kind.name == part) result.kinds.push_back(&kind);
      }
      if (!optional) result.required = result.kinds.size();
    }
    optional |= opens;
  }
  return result;
}

}  // namespace

LayoutValue detail::call_calculator(absl::string_view name,
                                    absl::Span<const LayoutValue> arguments) {
  const auto* const found =
      std::find_if(std::begin(kFunctions), std::end(kFunctions),
                   [&](const Function& function) { return function.name() == name; });
  if (found == std::end(kFunctions)) {
    return error(absl::StrCat("there is no function '", name, "'"),
                 "heddle layout --functions lists them");
  }
  const Parameters parameters = parameters_of(found->signature);
  const size_t most = parameters.repeats ? SIZE_MAX : parameters.kinds.size();
  if (arguments.size() < parameters.required || arguments.size() > most) {
    return error(absl::StrCat(found->signature, " is called with ", arguments.size(), " arguments"),
                 "give as many as it names");
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (failed(arguments[i])) return arguments[i];
    const Kind& kind = *parameters.kinds[std::min(i, parameters.kinds.size() - 1)];
    if (!kind.accepts(arguments[i])) {
      return error(absl::StrCat("argument ", i + 1, " of ", name, " is ", to_string(arguments[i])),
                   absl::StrCat("it has to be ", kind.what));
    }
  }
  return found->call(arguments);
}

std::vector<std::string> calculator_functions() {
  std::vector<std::string> result;
  for (const Function& function : kFunctions) result.emplace_back(function.signature);
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace heddle
