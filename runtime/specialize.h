// From a signature, or the arguments of a launch, to what tracing is told.
#pragma once

#include <string>

#include "heddle/ir/kernel_source.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/argument.h"
#include "heddle/runtime/signature.h"

namespace heddle::runtime {

// What a signature says of the arguments, for code of a target: for whoever traces a kernel or compiles it by stages
// (compile_source). kInvalidArgument where it does not fit the kernel's parameters.
StatusOr<ir::Specialization> specialize(const ir::KernelSource& source, const Signature& signature,
                                        const ir::Target& target = ir::default_target());

// What the arguments of a launch say, which must be sound.
ir::Specialization specialize(const ir::KernelSource& source, Arguments arguments,
                              const ir::Target& target);

// "kernel 'row_sum' (row_sum.cc:14)"
std::string describe(const ir::KernelSource& source);

}  // namespace heddle::runtime
