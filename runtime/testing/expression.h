// What a value is computed from, on one line: for `stores:` of filetests (filetest.h).
#pragma once

#include <string>

#include "heddle/ir/kernel.h"

namespace heddle::filetest {

// Ops by mnemonic with their operands, "add(%a, 7)", %a a parameter or what a region is given; types
// where nothing else says them, "convert.i64(%a)"; numbers of the op behind #, "extract#3(%v)". Vectors of
// one constant are "5.0...".
std::string expression(const ir::Kernel& kernel, ir::ValueId value);

}  // namespace heddle::filetest
