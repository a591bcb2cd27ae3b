// Compiles and loads what a call of an operation launches, before it runs.
//
//   StatusOr<CompiledCall> compiled = compile_call(device, call, arguments);
//   compiled->launches  // how many launches a call has
#pragma once

#include <memory>
#include <vector>

#include "heddle/ir/status.h"
#include "heddle/runtime/argument.h"
#include "heddle/runtime/compile.h"
#include "heddle/runtime/device.h"
#include "heddle/runtime/operation/bound_call.h"
#include "heddle/runtime/operation/operation.h"

namespace heddle::runtime {

// What a call launches.
struct CompiledCall {
  std::vector<std::shared_ptr<const Compilation>> compilations;  // each once
  int launches = 0;                                              // of one call
};

// Compiles by a dry run, so that memory is not touched; launches with such arguments then find their kernels in the cache.
// What is found is empty where the operation reads results between launches: it compiles while it runs. Errors are those of
// the operation and of compilation.
StatusOr<CompiledCall> compile_call(const Device& device, const HostFunction& function,
                                    Arguments arguments);
// Likewise of an operation; notes the call where the process records its launches (ahead/launch_recorder.h).
StatusOr<CompiledCall> compile_call(const Device& device, const BoundCall& call,
                                    Arguments arguments);

}  // namespace heddle::runtime
