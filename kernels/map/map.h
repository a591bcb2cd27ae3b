// Maps: a function of elements, applied to all of up to four tensors.
//
//   inline const auto scaled_sum = define_map("scaled_sum", [](Float a, Float b, Float by) { return (a + b) * by; });
//   Status s = scaled_sum(stream, a, b, 0.5f, y);   // y(i, j) = (a(i, j) + b(j)) · 0.5
//
// The last argument is the output, the others are its inputs: tensors, or numbers that stand for all elements. The function
// is a lambda that captures nothing and takes an element of each: of the type that its parameter says, to which
// elements are converted as by cast<>(), or of the tensor's where the parameter is `auto`. What it returns is converted
// to the output's element type.
//
// Any extents and strides. An input is broadcast as numpy does it: its modes are the output's last ones, and along a mode
// where it has one element that stands for all. Modes that can be walked through as one are one, accesses are as wide as
// alignment lets them be, and an input that is dense along another mode than the output (a transposed one) goes
// through shared memory, in tiles that `heddle tune` measures; so the floor is the bytes of all tensors over the memory's bandwidth. The output may be an
// input's memory where both begin at the same address with the same strides and elements of as many bytes.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "heddle/kernels/map/map_kernel.h"
#include "heddle/runtime/heddle.h"

namespace heddle::kernels {
namespace detail {

// What a map makes of an argument that is a number.
template <class A>
struct MapArgument {
  static constexpr bool kIsTensor = false;
  using Element = A;
  template <class Taken>
  using In = Value<Taken>;
  template <class Taken>
  static const A& seen(const A& number, const MapPlan&, size_t) {
    static_assert(std::is_floating_point_v<Taken> || !std::is_floating_point_v<A>,
                  "the map's lambda takes an integer here: give it one");
    return number;
  }
  static void add(const A&, int, absl::InlinedVector<MapTensor, kMapInputs>&) {}
};

template <class T, int kRank>
MapTensor without_type(const TensorRef<T, kRank>& tensor, int argument) {
  static_assert(kRank <= kMapModes, "a map's tensors have one to five modes");
  return {argument,
          reinterpret_cast<uintptr_t>(tensor.data),
          int{sizeof(T)},
          {std::begin(tensor.extents), std::end(tensor.extents)},
          {std::begin(tensor.strides), std::end(tensor.strides)}};
}
// A tensor as the map walks through it; `through`: by way of shared memory.
template <class T, int kRank>
TensorRef<T, kMapModes> with_modes(const TensorRef<T, kRank>& tensor, const MapModes& modes,
                                   const MapModes::Strides& strides, bool through) {
  TensorRef<T, kMapModes> all(reinterpret_cast<T*>(static_cast<uintptr_t>(strides.address)),
                              {1, 1, 1, 1, 1}, {0, 0, 0, 0, 0});
  const int missing = kMapModes - modes.count;
  for (int mode = 0; mode < modes.count; ++mode) {
    all.extents[missing + mode] = modes.extents[mode];
    all.strides[missing + mode] = strides.of[mode];
  }
  if (through) {
    std::swap(all.extents[kMapModes - 1], all.extents[kMapModes - 2]);
    std::swap(all.strides[kMapModes - 1], all.strides[kMapModes - 2]);
  }
  all.memory = tensor.memory, all.allocation = tensor.allocation;
  if (tensor.capacity_bytes >= 0) {
    all.capacity_bytes =
        tensor.capacity_bytes -
        static_cast<int64_t>(strides.address - reinterpret_cast<uintptr_t>(tensor.data));
  }
  return all;
}

// An argument that is a tensor.
template <class T, int kRank>
struct MapArgument<TensorRef<T, kRank>> {
  static constexpr bool kIsTensor = true;
  using Element = std::remove_const_t<T>;
  template <class>
  using In = MapIn<Element>;
  template <class>
  static TensorRef<const Element, kMapModes> seen(const TensorRef<T, kRank>& tensor,
                                                  const MapPlan& plan, size_t number) {
    return with_modes(TensorRef<const Element, kRank>(tensor), plan.modes,
                      plan.modes.inputs[number], plan.deal.reads[number] == MapRead::kThrough);
  }
  static void add(const TensorRef<T, kRank>& tensor, int argument,
                  absl::InlinedVector<MapTensor, kMapInputs>& tensors) {
    tensors.push_back(without_type(tensor, argument));
  }
};

}  // namespace detail

// A map: what define_map() makes.
template <class F>
class Map {
  static_assert(std::is_empty_v<F>, "a map's lambda captures nothing: its values are arguments");

 public:
  // The name is a literal: a kernel's, as define_kernel() takes it. Maps of one and the same lambda share their kernels.
  constexpr Map(const char* name, SourceLoc loc) : name_(name), loc_(loc) {}

  // Inputs and the output, which is the last: one launch on the stream for each 2^30 elements; none where there are no
  // elements. kInvalidArgument where an input cannot be broadcast to the output, has other strides or elements than an
  // output that begins where it does, or several of the output's elements share a place by a stride of 0.
  template <class... A>
  Status operator()(const Stream& stream, const A&... arguments) const {
    static_assert(sizeof...(A) >= 2, "a map takes inputs and, behind them, the output");
    static_assert(tensors_before<A...>(sizeof...(A) - 1) <= detail::kMapInputs,
                  "a map takes at most four tensors besides its output");
    return run(stream, std::tie(arguments...), std::make_index_sequence<sizeof...(A) - 1>());
  }

 private:
  template <class... A, size_t... i>
  Status run(const Stream& stream, const std::tuple<const A&...>& all,
             std::index_sequence<i...>) const {
    const auto& output = std::get<sizeof...(i)>(all);
    using Output = std::remove_cvref_t<decltype(output)>;
    using Y = typename detail::MapArgument<Output>::Element;
    using Arguments = std::tuple<detail::MapArgument<A>...>;
    using Taken =
        typename detail::Taken<F, typename std::tuple_element_t<i, Arguments>::Element...>::Types;
    static_assert(std::tuple_size_v<Taken> == sizeof...(i),
                  "a map's lambda takes an element of each input");
    absl::InlinedVector<detail::MapTensor, detail::kMapInputs> inputs;
    (std::tuple_element_t<i, Arguments>::add(std::get<i>(all), static_cast<int>(i), inputs), ...);
    StatusOr<detail::MapModes> modes =
        detail::common_modes(name_, inputs, detail::without_type(output, int{sizeof...(i)}));
    if (!modes.ok()) return modes.status();
    return detail::in_slabs(*modes, [&](const detail::MapModes& slab) {
      const DeviceInfo& device = stream.device().info();
      detail::MapPlan plan = detail::plan_tuned_map(name_, slab, device);
      plan.deal.floods = floods_l2(stored_bytes(output), device);
      return kernels_of<Y, typename std::tuple_element_t<i, Arguments>::template In<
                               std::tuple_element_t<i, Taken>>...>(plan.deal)
          .launch(stream, detail::map_shape(plan),
                  std::tuple_element_t<i, Arguments>::template seen<std::tuple_element_t<i, Taken>>(
                      std::get<i>(all), plan, tensors_before<A...>(i))...,
                  detail::with_modes(output, plan.modes, plan.modes.output, false));
    });
  }

  // How many of the first arguments are tensors.
  template <class... A>
  static constexpr size_t tensors_before(size_t count) {
    constexpr bool are_tensors[] = {detail::MapArgument<A>::kIsTensor...};
    size_t tensors = 0;
    for (size_t i = 0; i < count; ++i) tensors += are_tensors[i];
    return tensors;
  }

  template <class Y, class... In>
  const auto& kernels_of(const detail::MapDeal& deal) const {
    static const auto family = kernel_family(
        name_,
        [](Host<detail::MapDeal> how, In... in, Tensor<Y, detail::kMapModes> y) {
          detail::MapKernel<Y, In...>(how, {in...}, y, detail::map_result<F, Y, In...>).run();
        },
        loc_);
    return family(deal);
  }

  const char* name_;
  SourceLoc loc_;
};

// Defines a map. Best a constant at namespace scope.
template <class F>
constexpr Map<F> define_map(const char* name, F, SourceLoc loc = SourceLoc::current()) {
  return Map<F>(name, loc);
}

}  // namespace heddle::kernels
