#include "heddle/runtime/ahead/prepared_call.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/operation/compile_call.h"

namespace heddle::runtime {
namespace {

constexpr uint64_t kAlignment = 256;  // of what devices allocate
constexpr uint64_t kFirstAddress = uint64_t{1} << 40;

}  // namespace

StatusOr<PreparedCall> PreparedCall::bind(const Operation& operation, const Settings& settings,
                                          absl::Span<const CallTensor> tensors) {
  Shapes shapes;
  for (const CallTensor& tensor : tensors) {
    if (tensor.strides.size() != tensor.shape.extents.size()) {
      return InvalidArgumentError(absl::StrCat(
          "tensor '", tensor.name, "' has ",
          ir::counted(static_cast<int64_t>(tensor.shape.extents.size()), "extent"), " and ",
          ir::counted(static_cast<int64_t>(tensor.strides.size()), "stride")));
    }
    if (!shapes.emplace(tensor.name, tensor.shape).second) {
      return InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "' is given twice"));
    }
  }
  StatusOr<BoundCall> bound = runtime::bind(operation, settings, shapes);
  if (!bound.ok()) return bound.status();
  PreparedCall call(*std::move(bound));
  for (const BoundCall::Value& value : call.bound_.values) {
    call.places_.push_back(-1);
    call.strides_.emplace_back();
    if (!value.argument->is_tensor()) continue;
    const auto given = absl::c_find_if(
        tensors, [&](const CallTensor& tensor) { return tensor.name == value.argument->name; });
    if (given == tensors.end()) {
      return InvalidArgumentError(absl::StrCat("kernel '", operation.name(), "' needs the tensor '",
                                               value.argument->name, "', ", describe(value.shape)));
    }
    call.places_.back() = static_cast<int>(given - tensors.begin());
    call.strides_.back() = given->strides;
  }
  return call;
}

std::vector<uint64_t> PreparedCall::untouched_addresses() const {
  // No more tensors are given than there are values.
  std::vector<uint64_t> addresses(places_.size(), kFirstAddress);
  uint64_t next = kFirstAddress;
  with_arguments([&](size_t tensor) { return addresses[tensor]; },
                 [&](absl::Span<const Argument> arguments) {
                   for (size_t i = 0; i < arguments.size(); ++i) {
                     if (places_[i] < 0) continue;
                     const Argument& argument = arguments[i];
                     const auto up = [](uint64_t bytes) {
                       return (bytes + kAlignment - 1) & ~(kAlignment - 1);
                     };
                     next += up(argument.bits - argument.begin);
                     addresses[static_cast<size_t>(places_[i])] = next;
                     next += up(argument.end - argument.bits) + kAlignment;
                   }
                 });
  return addresses;
}

Status PreparedCall::compile(const Device& device) const {
  return with_untouched_memory([&](absl::Span<const Argument> arguments) {
    return compile_call(device, bound_, arguments).status();
  });
}

}  // namespace heddle::runtime
