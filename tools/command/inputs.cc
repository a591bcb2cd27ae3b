#include "heddle/tools/command/inputs.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "heddle/ir/wording.h"
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

// A tensor whose elements were rounded to a float type, and of how many it has no number nearby.
struct Rounded {
  HostArray array;
  int64_t beyond = 0;
};
StatusOr<Rounded> rounded(const HostArray& array, Scalar float_type) {
  StatusOr<HostArray> made = HostArray::allocate({float_type, array.shape.extents});
  if (!made.ok()) return made.status();
  const std::vector<double> from = to_doubles(array.shape.dtype, array.bytes());
  from_doubles(float_type, from, made->bytes());
  const std::vector<double> to = to_doubles(float_type, made->bytes());
  int64_t beyond = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    const bool large = std::abs(from[i]) > 1 && from[i] != to[i];
    beyond += large && !(std::abs(to[i] - from[i]) < std::abs(from[i]) / 8);
  }
  return Rounded{*std::move(made), beyond};
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
      StatusOr<Rounded> made = rounded(*array, taken);
      if (!made.ok()) return made.status();
      how = absl::StrCat(", rounded from ", ir::info(there).name);
      if (made->beyond > 0) {
        absl::StrAppend(&how, ", ", ir::counted(made->beyond, "element"), " beyond its range");
      }
      array = std::move(made->array);
    } else if (taken != Scalar::kNone && same_in_numpy(there, taken)) {
      array->shape.dtype = taken;
    }
    absl::PrintF("%-14s %s from %s%s\n", name, describe(array->shape), path, how);
    inputs[name] = *std::move(array);
  }
  return inputs;
}

}  // namespace heddle::tools
