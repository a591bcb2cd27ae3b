// Extents that have names, or that are declared as numbers, become requirements of the launch:
//
//   define_kernel("gemm(a[m, k], b[k, n], c[m, n])", …)       of every launch
//   tensor({sym("m"), kAny})                                  of one signature
//
// They are `require` ops in front of the kernel's own, so that the pass equal-extents knows them as it knows those that a kernel's
// author writes, and a launch that breaks one is refused in the same way.
#pragma once

#include "absl/types/span.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/kernel_source.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/argument.h"

namespace heddle::runtime {

// Adds them to a traced kernel: of its parameters as declared, and of the arguments that it was traced for (one a parameter, or none).
void require_named_extents(ir::Kernel& kernel, absl::Span<const ir::ParamInfo> params,
                           absl::Span<const ir::Specialization::Argument> arguments);

// Whether the arguments, which are of the parameters' kinds, have the extents that are declared as numbers: what would be refused
// behind a compilation is so in front of it.
Status check_declared_numbers(const ir::KernelSource& source, Arguments arguments);

}  // namespace heddle::runtime
