// The rows of ops.def as a constant: what op_info.cc serves at run time, and what tables over opcodes are
// checked against at compile time (op_table_internal.h). Reading them takes a compiler half a second, so few files
// include it.
#pragma once

#include <iterator>

#include "heddle/ir/op_row.h"

namespace heddle::ir::rows {

constexpr OpInfo kOps[] = {
#define HEDDLE_OP(name, mnemonic, ...) make_info(mnemonic, __VA_ARGS__),
#define HEDDLE_ELEMENTWISE(name, mnemonic, ...) make_info(mnemonic, __VA_ARGS__, kPure),
#include "heddle/ir/ops.def"
};
static_assert(std::size(kOps) == kOpcodeCount);

}  // namespace heddle::ir::rows
