#include "heddle/runtime/ahead/prepared_call.h"

#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/operation/compile_call.h"

namespace heddle::runtime {
namespace {

constexpr uint64_t kAlignment = 256;  // of what devices allocate
constexpr uint64_t kFirstAddress = uint64_t{1} << 40;

// Whether two elements of the modes lie at one place: by a step in one mode that is none, or by steps in two that cancel
// out. Of what takes steps in three or more it says nothing.
bool overlaps_itself(const CallTensor& tensor) {
  const auto can_step = [&](size_t mode, uint64_t steps) {
    return static_cast<uint64_t>(tensor.shape.extents[mode]) > steps;
  };
  const auto stride = [&](size_t mode) {
    const int64_t signed_stride = tensor.strides[mode];
    return signed_stride < 0 ? uint64_t{0} - static_cast<uint64_t>(signed_stride)
                             : static_cast<uint64_t>(signed_stride);
  };
  for (size_t i = 0; i < tensor.strides.size(); ++i) {
    if (!can_step(i, 1)) continue;
    if (stride(i) == 0) return true;
    for (size_t j = 0; j < i; ++j) {
      const uint64_t common = std::gcd(stride(i), stride(j));
      if (can_step(i, stride(j) / common) && can_step(j, stride(i) / common)) return true;
    }
  }
  return false;
}

// Of a tensor that the operation writes.
Status check_written(const Operation& operation, const CallTensor& tensor) {
  const std::vector<int64_t>& extents = tensor.shape.extents;
  const bool empty = absl::c_any_of(extents, [](int64_t extent) { return extent <= 0; });
  if (empty || !overlaps_itself(tensor)) return OkStatus();
  return InvalidArgumentError(absl::StrCat(
      "'", tensor.name, "' has extents [", absl::StrJoin(extents, ", "), "] and strides [",
      absl::StrJoin(tensor.strides, ", "), "], by which elements share memory, and kernel '",
      operation.name(), "' writes it; fix: give a tensor whose elements lie apart"));
}

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
                                               value.argument->name, "', ", describe(value.shape),
                                               "; fix: describe it, too"));
    }
    if (value.argument->is_written()) {
      if (Status s = check_written(operation, *given); !s.ok()) return s;
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
