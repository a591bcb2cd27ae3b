#include "heddle/tools/command/inputs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "heddle/tools/elements.h"

namespace heddle::tools {
namespace {

using ir::Scalar;

// The element type that the kernel takes; kNone where there is no such input.
Scalar taken_type(const ChosenKernel& kernel, const std::string& name) {
  const runtime::OperationArgument* const argument = kernel.operation->find(name, kernel.settings);
  if (argument == nullptr || !argument->is_tensor()) return Scalar::kNone;
  return kernel.operation->element_type(*argument, kernel.settings);
}

// Every element rounded to a float type.
StatusOr<HostArray> rounded(const HostArray& array, Scalar float_type) {
  StatusOr<HostArray> made = HostArray::allocate({float_type, array.shape.extents});
  if (!made.ok()) return made;
  from_doubles(float_type, to_doubles(array.shape.dtype, array.bytes()), made->bytes());
  return made;
}

}  // namespace

StatusOr<HostArrays> read_inputs(const ChosenKernel& kernel, const Assignments& files) {
  HostArrays inputs;
  for (const auto& [name, path] : files) {
    StatusOr<HostArray> array = read_npy(path);
    if (!array.ok()) return array.status();
    const Scalar taken = taken_type(kernel, name), there = array->shape.dtype;
    std::string how;
    if (there == Scalar::kF32 && ir::is_float(taken) && !numpy_has_float(taken)) {
      array = rounded(*array, taken);
      if (!array.ok()) return array.status();
      how = absl::StrCat(", rounded from ", ir::info(there).name);
    } else if (taken != Scalar::kNone && same_in_numpy(there, taken)) {
      array->shape.dtype = taken;
    }
    absl::PrintF("%-14s %s from %s%s\n", name, describe(array->shape), path, how);
    inputs[name] = *std::move(array);
  }
  return inputs;
}

}  // namespace heddle::tools
