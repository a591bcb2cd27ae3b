// An op's example (tests/filetests/ops/) as other operands and shapes would have it, for tests that take
// each op through the emitter in all of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "heddle/ir/builder.h"
#include "heddle/ir/kernel.h"
#include "support/op_files.h"

namespace heddle::codegen {

// Operands that are loaded or parameters become constants.
void make_constant(ir::Kernel& kernel, ir::OpId id);

// Whether the op has a T, and all of its data are scalars.
bool can_widen(const ir::Kernel& kernel, ir::OpId id);
// It computes vectors or fragments, `shape` says which, of what were scalars; all elements are stored.
void widen(ir::Kernel& kernel, ir::OpId id, ir::Type shape);

// Kernels one after the other in as few as can be: each kernel costs ptxas milliseconds.
class MergedKernels {
 public:
  void add(const ir::Kernel& kernel);
  // Called "k0" and on.
  std::vector<ir::Kernel> take();

 private:
  struct Group {
    std::vector<std::string> params, bodies;
  };
  void finish(const std::string& launch, Group& group);

  int count_ = 0;
  std::map<std::string, Group> groups_;  // by how they are launched
  std::vector<ir::Kernel> done_;
};

}  // namespace heddle::codegen
