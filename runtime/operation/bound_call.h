// One call of an operation: the function, the shapes and the numbers that its settings and inputs
// decide.
//
//   StatusOr<BoundCall> call = bind(*find_operation("row_sum"), settings, {{"x", {kF32, {8, 9}}}});
//   call->values[1].shape.extents  // {8}, of y
#pragma once

#include <string>
#include <vector>

#include "heddle/ir/status.h"
#include "heddle/runtime/operation/operation.h"

namespace heddle::runtime {

// One call, with everything that the settings and the shapes of the inputs decide.
struct BoundCall {
  struct Value {
    const OperationArgument* argument = nullptr;
    TensorShape shape = {};  // of a tensor
    uint64_t bits = 0;       // a number
  };
  const HostFunction* function = nullptr;
  std::vector<Value> values = {};  // in the function's order
  Sizes sizes = {};
};

// Finds the function and every shape. Settings that are not given have their defaults. Dimensions
// are what the inputs have, or `sizes` say, or the operation's example. kInvalidArgument where these
// contradict each other or the declarations, in names, element types, modes or extents, or are too
// large. A tensor without a shape gets the one that follows.
StatusOr<BoundCall> bind(const Operation& operation, const Settings& given, const Shapes& inputs,
                         const Sizes& sizes = {});

}  // namespace heddle::runtime
