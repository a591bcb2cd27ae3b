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
  // An argument of the call.
  struct Value {
    const OperationArgument* argument = nullptr;  // its declaration
    TensorShape shape = {};                       // of a tensor
    uint64_t bits = 0;  // of a number, zero-extended, or the place of a choice
  };
  const HostFunction* function = nullptr;  // to call
  std::vector<Value> values = {};          // its arguments, in order
  Sizes sizes = {};                        // every named dimension
  const Operation* operation = nullptr;    // that was bound
  Settings settings = {};                  // all of them
};

// Binds a call: finds the function and every shape. Settings that are not given have their
// defaults. Dimensions come from the inputs, then from `sizes`, then from the operation's example.
// kInvalidArgument where these contradict each other or the declarations in names, element types,
// modes or extents, or are too large. Inputs without a shape get the one that follows.
StatusOr<BoundCall> bind(const Operation& operation, const Settings& given, const Shapes& inputs,
                         const Sizes& sizes = {});

}  // namespace heddle::runtime
