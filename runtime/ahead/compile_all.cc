#include "heddle/runtime/ahead/compile_all.h"

#include "absl/strings/str_cat.h"
#include "heddle/runtime/ahead/run_all_internal.h"
#include "heddle/runtime/specialize.h"

namespace heddle::runtime {

std::vector<StatusOr<CompiledKernel>> compile_all(absl::Span<const CompileJob> jobs,
                                                  const CompileAllOptions& options) {
  const auto run = [&](int i) -> StatusOr<CompiledKernel> {
    if (jobs[i].source == nullptr) {
      return InvalidArgumentError(absl::StrCat("job ", i, " of compile_all() has no kernel"));
    }
    return compile(*jobs[i].source, jobs[i].signature, jobs[i].options);
  };
  const auto name = [&](int i) {
    return jobs[i].source != nullptr ? describe(*jobs[i].source) : absl::StrCat("job ", i);
  };
  return run_all<CompiledKernel>(static_cast<int>(jobs.size()), options, run, name);
}

std::vector<StatusOr<CompiledCall>> compile_all_calls(const Device& device,
                                                      absl::Span<const CompileCallJob> jobs,
                                                      const CompileAllOptions& options) {
  const auto run = [&](int i) -> StatusOr<CompiledCall> {
    if (jobs[i].function == nullptr) {
      return InvalidArgumentError(
          absl::StrCat("job ", i, " of compile_all_calls() has no function"));
    }
    return compile_call(device, *jobs[i].function, jobs[i].arguments);
  };
  const auto name = [&](int i) { return jobs[i].name; };
  return run_all<CompiledCall>(static_cast<int>(jobs.size()), options, run, name);
}

}  // namespace heddle::runtime
