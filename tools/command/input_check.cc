#include "heddle/tools/command/input_check.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/wording.h"

namespace heddle::tools {
namespace {

using runtime::OperationArgument;
using runtime::Role;
using runtime::TensorShape;

std::string called(const ChosenKernel& kernel) {
  return absl::StrCat("kernel '", kernel.operation->name(), "'");
}

Status wrong_type(const ChosenKernel& kernel, const OperationArgument& argument,
                  const TensorShape& shape) {
  const absl::string_view wanted = ir::info(shape.dtype).name;
  const absl::string_view taken =
      ir::info(kernel.operation->element_type(argument, kernel.settings)).name;
  std::string takes = absl::StrCat(taken, "; fix: convert the file");
  for (const runtime::Setting& setting : kernel.operation->spec().settings) {
    if (setting.name != argument.type) continue;
    takes = absl::c_linear_search(setting.choices, wanted)
                ? absl::StrCat(taken, "; fix: --set ", setting.name, "=", wanted,
                               ", or convert the file")
                : absl::StrCat(absl::StrJoin(setting.choices, ", "), "; fix: convert the file");
  }
  return InvalidArgumentError(absl::StrCat("'", argument.name, "' is ", describe(shape), ", and ",
                                           called(kernel), " takes ", takes));
}

// One input: that there is such an argument, its element type and modes.
Status check_input(const ChosenKernel& kernel, const std::string& name, const TensorShape& shape) {
  const OperationArgument* const argument = kernel.operation->find(name);
  if (argument == nullptr) {
    return InvalidArgumentError(absl::StrCat(
        called(kernel), " has no parameter '", name, "'; it has ",
        absl::StrJoin(kernel.operation->arguments(), ", ",
                      [](std::string* out, const OperationArgument& a) { out->append(a.name); })));
  }
  if (argument->role == Role::kNumber) {
    return InvalidArgumentError(absl::StrCat("'", name, "' is a number of ", called(kernel),
                                             ", not an input; fix: --set ", name, "=..."));
  }
  if (argument->role == Role::kOutput) {
    return InvalidArgumentError(
        absl::StrCat("'", name, "' is an output of ", called(kernel), ", not an input"));
  }
  if (shape.dtype != kernel.operation->element_type(*argument, kernel.settings)) {
    return wrong_type(kernel, *argument, shape);
  }
  const size_t modes = argument->dimensions.size();
  if (shape.extents.size() == modes) return OkStatus();
  return InvalidArgumentError(
      absl::StrCat("'", name, "' is ", describe(shape), ", and ", called(kernel),
                   " takes a tensor of ", ir::counted(static_cast<int64_t>(modes), "mode"),
                   ", not of ", shape.extents.size(), "; fix: reshape what is in the file"));
}

}  // namespace

std::string describe(const TensorShape& shape) {
  return absl::StrCat(ir::info(shape.dtype).name, "[", absl::StrJoin(shape.extents, ", "), "]");
}

Status check_inputs(const ChosenKernel& kernel, const runtime::Shapes& inputs) {
  for (const auto& [name, shape] : inputs) {
    if (Status s = check_input(kernel, name, shape); !s.ok()) return s;
  }
  for (const OperationArgument& argument : kernel.operation->arguments()) {
    if (!argument.is_read() || inputs.count(argument.name) != 0) continue;
    return InvalidArgumentError(absl::StrCat(called(kernel), " needs the input '", argument.name,
                                             "'; fix: --in ", argument.name, "=FILE"));
  }
  return OkStatus();
}

}  // namespace heddle::tools
