// host_function(): from a typed host function to one that takes its arguments as data.
//
//   Status scale(const Stream&, float factor, const TensorRef<float, 1>& x);
//   const HostFunction erased = host_function(scale);
//
//   const Argument arguments[] = {scalar_argument(bits), tensor_argument(address, extents, ...)};
//   Status status = erased.call(stream, arguments);
//
// A tensor that need not be there is a std::optional<TensorRef>, and an enumeration a choice (operation.h).
// Of an overloaded function the type says which one: host_function<Status(const Stream&, …)>(f).
// A class with one call operator, such as a lambda, will do as well.
#pragma once

#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "heddle/dsl/kernel.h"
#include "heddle/runtime/operation/operation.h"

namespace heddle::runtime {

// Conversion of a parameter of a host function: how it is declared, and how it is made of data.
// Numbers, enumerations and TensorRefs have one.
template <class P>
struct HostParameter {
  static_assert(std::is_arithmetic_v<P> || std::is_enum_v<P>,
                "a host function's parameters are const Stream&, then TensorRef<T, Rank>, "
                "std::optional of one, numbers and enumerations");
  // The parameter as data.
  static HostFunction::Parameter declare() {
    if constexpr (std::is_enum_v<P>) return {};
    if constexpr (!std::is_enum_v<P>) return {heddle::detail::scalar_of<P>(), -1, true};
  }
  // The value of an argument.
  static P from(const Argument& argument) {
    P number;
    std::memcpy(&number, &argument.bits, sizeof(P));  // little-endian, as every host of CUDA is
    return number;
  }
};

// A parameter that is a tensor.
template <class T, int Rank>
struct HostParameter<TensorRef<T, Rank>> {
  // The type of the parameter, and the parameter as data.
  using Ref = TensorRef<T, Rank>;
  static_assert(!Ref::kOfStructs, "a host function's tensors have elements of one scalar type");
  static HostFunction::Parameter declare() {
    return {heddle::detail::scalar_of<std::remove_const_t<T>>(), Rank, std::is_const_v<T>};
  }
  // The tensor of an argument.
  static Ref from(const Argument& argument) {
    Ref ref;
    ref.data = reinterpret_cast<T*>(argument.bits);
    for (int mode = 0; mode < Rank; ++mode) {
      ref.extents[mode] = argument.extents[mode];
      ref.strides[mode] = argument.strides[mode];
    }
    ref.capacity_bytes = argument.capacity_bytes;
    ref.memory = argument.memory;
    ref.allocation = argument.allocation;
    return ref;
  }
};

// A parameter that is a tensor or nothing.
template <class T, int Rank>
struct HostParameter<std::optional<TensorRef<T, Rank>>> {
  // The tensor's parameter.
  using Tensor = HostParameter<TensorRef<T, Rank>>;
  static HostFunction::Parameter declare() {
    HostFunction::Parameter parameter = Tensor::declare();
    parameter.optional = true;
    return parameter;
  }
  // The tensor of an argument, unless it is absent_argument().
  static std::optional<TensorRef<T, Rank>> from(const Argument& argument) {
    if (argument.rank < 0) return std::nullopt;
    return Tensor::from(argument);
  }
};

// What host_function() calls.
template <class F, class... P>
HostFunction erase_host_function(F function, std::type_identity<Status(const Stream&, P...)>) {
  const auto call = [function]<size_t... I>(const Stream& stream, Arguments arguments,
                                            std::index_sequence<I...>) {
    return function(stream, HostParameter<std::remove_cvref_t<P>>::from(arguments[I])...);
  };
  return HostFunction({HostParameter<std::remove_cvref_t<P>>::declare()...},
                      [call](const Stream& stream, Arguments arguments) {
                        return call(stream, arguments, std::index_sequence_for<P...>());
                      });
}

// The type of a call operator without its class.
template <class C, class R, class... P>
std::type_identity<R(P...)> call_type(R (C::*)(P...) const);

// A HostFunction from a function, or an object with one call operator, of `const Stream&`,
// TensorRefs, numbers and enumerations that returns a Status.
template <class F>
requires(std::is_function_v<F>) HostFunction host_function(F* function) {
  return erase_host_function(function, std::type_identity<F>());
}
template <class F>
requires(std::is_class_v<F>) HostFunction host_function(F function) {
  return erase_host_function(std::move(function), decltype(call_type(&F::operator()))());
}

}  // namespace heddle::runtime

namespace heddle {
using runtime::host_function;
}  // namespace heddle
