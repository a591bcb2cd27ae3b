// The text by which define_kernel() is told a kernel's name and those of its parameters:
//
//   "scale"                               the name alone
//   "scale(x, y, a)"                      and a name for each parameter
//   "gemm(a[m, k], b[k, n], c[m, n])"     and for extents: those of one name are equal
//   "norm(x[?, 1024], y, n, ...)"         ?: it has no name; a number: it is always that; ...: the rest has no names
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/kernel_source.h"

namespace heddle::detail {

// What such a text says.
struct KernelDeclaration {
  struct Param {
    std::string name;
    std::vector<ir::DeclaredExtent> extents;
  };
  std::string name;
  std::vector<Param> params;
  bool names_all = true;  // "(x, ...)" leaves those behind x without
  std::string mistake;    // what is wrong with it; empty: nothing
};

KernelDeclaration parse_kernel_declaration(absl::string_view text);

// Hands names and extents on to a kernel's parameters. What is wrong: another number of parameters, or of extents, or an extent with the
// name of a parameter that is no integer. Empty where nothing is.
std::string declare_params(const KernelDeclaration& declaration, absl::Span<ir::ParamInfo> params);

}  // namespace heddle::detail
