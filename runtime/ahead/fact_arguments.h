// From facts of arguments to arguments that have them: no memory stands behind these, and no launch may be given them, but a kernel is
// compiled for them as for those of the launch that had the facts.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "heddle/ir/kernel_source.h"
#include "heddle/ir/status.h"
#include "heddle/ir/target.h"
#include "heddle/runtime/argument.h"

namespace heddle::runtime {

// Arguments, and the extents and strides that they point to.
class FactArguments {
 public:
  // Arguments of a kernel with these parameters, such that all_facts() gives these facts, in any order. kInvalidArgument names a fact
  // that is missing, that is none of these parameters', or that does not go with the others.
  static StatusOr<FactArguments> of(absl::Span<const ir::ParamInfo> params,
                                    absl::Span<const ir::Guard> facts, const ir::Target& target);

  FactArguments(FactArguments&&) = default;
  FactArguments& operator=(FactArguments&&) = default;

  // They live as long as this object.
  Arguments arguments() const { return arguments_; }

 private:
  FactArguments() = default;
  // One parameter's, to which the arguments point.
  struct Layout {
    std::vector<int64_t> extents, strides;
  };
  std::vector<Layout> layouts_;
  std::vector<Argument> arguments_;
};

}  // namespace heddle::runtime
