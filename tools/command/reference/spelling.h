// How an op is written in C++.
#pragma once

#include <string>

#include "heddle/ir/op_info.h"

namespace heddle::tools {

struct Spelling {
  std::string text;      // empty: there is none
  std::string why_none;  // empty too: spellings.def forgot the op
};

// What spellings.def says; an elementwise op of which it says nothing is a function of the mnemonic's name:
// "dp2a_lo(a, b, c)" for dp2a.lo.
Spelling spelling_of(ir::Opcode opcode);

}  // namespace heddle::tools
