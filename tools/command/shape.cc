#include "heddle/tools/command/shape.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "heddle/ir/wording.h"

namespace heddle::tools {
namespace {

// The named dimensions of a kernel: those of its outputs, then those of its inputs. Those that a setting says are left
// out.
std::vector<std::string> dimensions_of(const ChosenKernel& kernel) {
  std::vector<std::string> names;
  for (const bool written : {true, false}) {
    for (const runtime::OperationArgument* argument :
         kernel.operation->arguments(kernel.settings)) {
      if (argument->is_written() != written) continue;
      for (const auto& dimension : argument->dimensions) {
        if (!dimension.name.empty() && kernel.settings.count(dimension.name) == 0 &&
            !absl::c_linear_search(names, dimension.name)) {
          names.push_back(dimension.name);
        }
      }
    }
  }
  return names;
}

}  // namespace

StatusOr<runtime::Sizes> parse_shape(const std::string& option, const ChosenKernel& kernel,
                                     const std::string& text) {
  const std::vector<std::string> names = dimensions_of(kernel);
  const std::string form =
      absl::StrCat(absl::StrJoin(names, "x"), ", or ", absl::StrJoin(names, "=N,"), "=N");
  runtime::Sizes sizes = kernel.sizes;
  const bool named = absl::StrContains(text, '=');
  const std::vector<std::string> words = absl::StrSplit(text, named ? ',' : 'x');
  if (!named && words.size() != names.size()) {
    return InvalidArgumentError(absl::StrCat(
        option, ": '", text, "' has ", ir::counted(static_cast<int64_t>(words.size()), "number"),
        "; kernel '", kernel.operation->name(), "' takes ", form));
  }
  for (size_t i = 0; i < words.size(); ++i) {
    const std::vector<std::string> parts = absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    const std::string name = named ? parts[0] : names[i];
    int64_t size = 0;
    if (parts.size() != (named ? 2u : 1u) || !absl::SimpleAtoi(parts.back(), &size) || size < 1 ||
        kernel.operation->spec().sizes.count(name) == 0) {
      return InvalidArgumentError(absl::StrCat(option, ": '", words[i], "' in '", text,
                                               "' is no size; kernel '", kernel.operation->name(),
                                               "' takes ", form, ", each from 1 up"));
    }
    sizes[name] = size;
  }
  return sizes;
}

std::string shape_text(const ChosenKernel& kernel, const runtime::Sizes& sizes) {
  return absl::StrJoin(dimensions_of(kernel), "x", [&](std::string* out, const std::string& name) {
    absl::StrAppend(out, sizes.find(name)->second);
  });
}

}  // namespace heddle::tools
