// What passes look for, in kernels as they come to them. A shape that few random kernels have is one that the fuzzer
// says little of.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/ir/kernel.h"

namespace heddle::fuzz {

// The shapes that are looked for: divisions whose results are used, by what, of how many bits; loops that widen-loops
// splits, by whose trips they are and how large the elements; loops dealt out that it leaves alone.
std::vector<std::string> known_shapes();
// Those that a kernel has; of loops, behind the default pipeline's first passes.
std::set<std::string> shapes_of(const ir::Kernel& kernel);

}  // namespace heddle::fuzz
