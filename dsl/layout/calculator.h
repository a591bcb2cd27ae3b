// Expressions of layouts in CuTe's notation, as `heddle layout` takes them.
//
//   evaluate("zipped_divide((9,(4,8)):(59,(13,1)), <3:3,(2,4):(1,8)>)");
//       // "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))"
//   evaluate("((4,8):(8,1))((2,3))");                       // "19": a layout at a coordinate
//
// Literals: 4, (4,(2,2)), shape:stride, ? and ?{div=8} for numbers that are not known yet, 1@0 for
// basis strides, _, tilers <4:1,8,_>, swizzles S<3,4,3>, compositions S<3,4,3> o 0 o (8,8):(8,1).
// Calls are the functions of layout.h and int_tuple.h by name (see calculator_functions()). A tuple
// stands for the compact layout of that shape where a layout is wanted.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "heddle/dsl/layout/layout.h"

namespace heddle {

// What slice_and_offset() gives; no other function takes it.
struct SlicedLayout {
  Layout layout;    // the modes that the coordinate leaves whole
  IntTuple offset;  // the index of what it fixes

  std::string to_string() const;  // "((8):(1),16)"
};

// What an expression can give.
using LayoutValue = std::variant<IntTuple, Layout, Tiler, Swizzle, SlicedLayout>;

// Evaluates an expression. Where it is wrong, an IntTuple that is not ok() and says why.
LayoutValue evaluate_layout(std::string_view expression);
// The same as text: "error: …" where it is wrong.
std::string evaluate(std::string_view expression);
// A result as text.
std::string to_string(const LayoutValue& value);

// Reads a layout or a tuple that is written out. The result is not ok() where the text is none.
Layout parse_layout(std::string_view text);
IntTuple parse_int_tuple(std::string_view text);

// The functions that expressions may call: "composition(layout, tiler)", by name.
std::vector<std::string> calculator_functions();

}  // namespace heddle
