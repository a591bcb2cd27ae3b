// The kernels of a product on Hopper as families: one for each element type, result type, way of walking
// over tiles, loop, epilogue and configuration, made when it is first asked for. Internal to the kernels.
#pragma once

#include <type_traits>

#include "heddle/kernels/gemm/hopper.h"

namespace heddle::kernels {
namespace hopper {

// An epilogue as what tells kernels apart: there is one kernel of those without a value.
template <class Epilogue>
struct EpilogueValue {
  Epilogue epilogue;  // the lambda or the struct
  friend bool operator==(const EpilogueValue& x, const EpilogueValue& y) {
    if constexpr (std::is_empty_v<Epilogue>) return true;
    if constexpr (!std::is_empty_v<Epilogue>) return x.epilogue == y.epilogue;
  }
};

// The kernels of tiles, a loop and an epilogue. Their parameters are a, b and d, then those of the tiles
// (`Of`), of the loop (`By`) and of the epilogue.
template <class Tiles, class Loop, class Epilogue, class TileParameters, class LoopParameters,
          class... Args>
struct Family;
// With the lists of parameters taken apart.
template <class Tiles, class Loop, class Epilogue, class... Of, class... By, class... Args>
struct Family<Tiles, Loop, Epilogue, Parameters<Of...>, Parameters<By...>, Args...> {
  // The kernel of a configuration, for elements of T into D; made when it is first asked for.
  template <class T, class D>
  static const auto& kernel(const GemmConfig& config, const Epilogue& epilogue) {
    static const auto kernels = kernel_family(
        sizeof...(Of) != 0 ? Tiles::kName : Loop::kName,
        [](Host<GemmConfig> c, Host<EpilogueValue<Epilogue>> e, Tensor<const T, 3> a,
           Tensor<const T, 3> b, Tensor<D, 3> d, Of... of, By... by, Args... args) {
          // The kernel before may have written what says where tiles lie, and how they are summed.
          if (sizeof...(Of) + sizeof...(By) != 0) grid_dependency_wait();
          gemm_body(c, Tiles(c, b, d, of...), Loop{by...}, e.epilogue, a, b, d, args...);
        });
    return kernels(config, EpilogueValue<Epilogue>{epilogue});
  }
};

}  // namespace hopper

// The kernels of an epilogue: d = epilogue(a * b^T), where a is (m, k, batch), b (n, k, batch) and d
// (m, n, batch); then what the tiles and the loop take, and `Args`, the epilogue's own parameters.
template <class Tiles, class Loop, class T, class D, class Epilogue, class... Args>
const auto& hopper_gemm(const GemmConfig& config, const Epilogue& epilogue = Epilogue()) {
  using Family =
      hopper::Family<Tiles, Loop, Epilogue, typename Tiles::Takes, typename Loop::Takes, Args...>;
  return Family::template kernel<T, D>(config, epilogue);
}

}  // namespace heddle::kernels
