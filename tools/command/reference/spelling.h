// How an op is written in C++.
#pragma once

#include "heddle/ir/op_info.h"

namespace heddle::tools {

struct Spelling {
  const char* text = nullptr;      // nullptr: there is none
  const char* why_none = nullptr;  // nullptr too: spellings.def forgot the op
};

Spelling spelling_of(ir::Opcode opcode);

}  // namespace heddle::tools
