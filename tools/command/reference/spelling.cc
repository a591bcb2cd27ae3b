#include "heddle/tools/command/reference/spelling.h"

namespace heddle::tools {

// An op that stands there twice does not compile.
Spelling spelling_of(ir::Opcode opcode) {
  using ir::Opcode;
  switch (opcode) {
#define HEDDLE_SPELLING(op, text) \
  case Opcode::k##op:             \
    return {text, nullptr};
#define HEDDLE_NO_SPELLING(op, why) \
  case Opcode::k##op:               \
    return {nullptr, why};
#include "heddle/tools/command/reference/spellings.def"
    default:
      return {};
  }
}

}  // namespace heddle::tools
