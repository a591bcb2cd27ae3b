// A call of an operation on tensors of some shapes and strides: what is prepared once and launched often, on any memory.
//
//   StatusOr<PreparedCall> call = PreparedCall::bind(*find_operation("softmax"), {{"dtype", "bf16"}},
//                                                    {{"x", {kBF16, {8192, 4096}}, {4096, 1}}, {"y", …}});
//   Status status = call->compile(device);
//   status = call->with_arguments([&](size_t tensor) { return addresses[tensor]; },
//                                 [&](Arguments arguments) { return call->bound().function->call(stream, arguments); });
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/ahead/warm_list.h"
#include "heddle/runtime/argument.h"
#include "heddle/runtime/device.h"
#include "heddle/runtime/operation/bound_call.h"
#include "heddle/runtime/operation/operation.h"

namespace heddle::runtime {

// The call, with all that follows from shapes, strides and settings.
class PreparedCall {
 public:
  // All tensors of the operation must be given, in any order. kInvalidArgument as bind() of bound_call.h, and where one is missing,
  // given twice, or has not as many strides as extents.
  static StatusOr<PreparedCall> bind(const Operation& operation, const Settings& settings,
                                     absl::Span<const CallTensor> tensors);

  const BoundCall& bound() const { return bound_; }

  // Compiles and loads its kernels for memory that is aligned to 256 bytes and does not overlap. Errors are those of compile_call().
  Status compile(const Device& device) const;

  // Calls use() with the arguments, where the tensor that was given as number i is at address(i).
  template <class Address, class Use>
  auto with_arguments(Address&& address, Use&& use) const {
    absl::InlinedVector<Argument, 8> arguments;
    for (size_t i = 0; i < bound_.values.size(); ++i) {
      const BoundCall::Value& value = bound_.values[i];
      if (places_[i] < 0) {  // of an absent tensor the bits are 0
        arguments.push_back(scalar_argument(value.bits));
        continue;
      }
      arguments.push_back(tensor_argument(
          address(static_cast<size_t>(places_[i])), value.shape.extents.data(), strides_[i].data(),
          static_cast<int>(strides_[i].size()), ir::bytes_of(value.shape.dtype), -1));
    }
    return use(arguments);
  }
  // Likewise for memory as devices allocate it, at addresses that are not to be touched.
  template <class Use>
  auto with_untouched_memory(Use&& use) const {
    const std::vector<uint64_t> addresses = untouched_addresses();
    return with_arguments([&](size_t tensor) { return addresses[tensor]; }, use);
  }

 private:
  explicit PreparedCall(BoundCall bound) : bound_(std::move(bound)) {}
  // Places behind each other.
  std::vector<uint64_t> untouched_addresses() const;

  BoundCall bound_;
  // Of each value:
  std::vector<std::vector<int64_t>> strides_;
  std::vector<int> places_;  // among the tensors that were given; -1: no tensor
};

}  // namespace heddle::runtime

namespace heddle {
using runtime::PreparedCall;
}  // namespace heddle
