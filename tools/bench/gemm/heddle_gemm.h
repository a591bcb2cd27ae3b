// Heddle's gemm as a contender: the only place of the benchmark that calls kernels/gemm.h.
#pragma once

#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/gemm/gemm_stream_k.h"
#include "heddle/tools/bench/contender.h"

namespace heddle::bench {

// With `tunes` every configuration is a candidate, else the default choice alone.
class HeddleGemm : public Contender {
 public:
  HeddleGemm(const Device& device, bool tunes) : device_(device), tunes_(tunes) {}
  std::string name() const override { return "heddle"; }
  std::string version() const override { return ""; }
  StatusOr<std::unique_ptr<Prepared>> prepare(const PeerProblem& problem) override {
    const std::string a = problem.tensor[0].dtype, d = problem.tensor[2].dtype;
    if (*problem.variant != 0) {
      return UnimplementedError(absl::StrCat("gemm has no variant ", problem.variant));
    }
    if (a == "f16" && d == "f16") return product<half, half>(problem);
    if (a == "bf16" && d == "bf16") return product<bfloat16, bfloat16>(problem);
    if (a == "tf32" && d == "f32") return product<tfloat32, float>(problem);
    if (a == "e4m3" && d == "bf16") return product<float8_e4m3, bfloat16>(problem);
    return UnimplementedError(absl::StrCat("gemm takes no ", a, " into ", d));
  }

 private:
  template <class T, class D>
  class Product : public Prepared {
   public:
    Product(const kernels::GemmProblem& problem, std::vector<kernels::GemmConfig> configs,
            const runtime::DeviceInfo& device)
        : problem_(problem), configs_(std::move(configs)), device_(device) {}
    std::vector<std::string> candidates() const override {
      std::vector<std::string> names;
      for (const kernels::GemmConfig& config : configs_) names.push_back(config.to_string());
      return names;
    }
    size_t workspace() const override { return 0; }
    Status launch(int candidate, void* const* pointers, void*, const Stream& stream) override {
      const kernels::GemmConfig& config = configs_[static_cast<size_t>(candidate)];
      const auto operand = [](void* data, int64_t rows, int64_t k, Major major) {
        const bool along_k = major == Major::k;
        return TensorRef<const T, 3>(static_cast<const T*>(data), {rows, k, 1},
                                     {along_k ? k : 1, along_k ? 1 : rows, rows * k});
      };
      const int64_t m = problem_.m, n = problem_.n, k = problem_.k;
      const auto a = operand(pointers[0], m, k, problem_.a);
      const auto b = operand(pointers[1], n, k, problem_.b);
      const TensorRef<D, 3> d(static_cast<D*>(pointers[2]), {m, n, 1}, {n, 1, m * n});
      const LaunchShape shape = kernels::gemm_shape(config, problem_, device_);
      if (!config.stream_k) {
        return kernels::detail::launch_config<kernels::BatchTiles, kernels::PlainLoop>(
            stream, config, shape, kernels::PlainSums(), a, b, d);
      }
      // The benchmark has one stream.
      if (workspace_.blocks == 0) {
        StatusOr<kernels::GemmWorkspace> made = kernels::gemm_workspace(stream);
        if (!made.ok()) return made.status();
        workspace_ = *std::move(made);
      }
      return kernels::detail::launch_stream_k(stream, workspace_, config, shape,
                                              kernels::PlainSums(), a, b, d);
    }

   private:
    kernels::GemmProblem problem_;
    std::vector<kernels::GemmConfig> configs_;
    const runtime::DeviceInfo& device_;
    kernels::GemmWorkspace workspace_;
  };

  template <class T, class D>
  std::unique_ptr<Prepared> product(const PeerProblem& of) const {
    const runtime::DeviceInfo& device = device_.info();
    const PeerTensor &a = of.tensor[0], &b = of.tensor[1];
    const auto major = [](const PeerTensor& x) { return x.stride[1] == 1 ? Major::k : Major::mn; };
    const kernels::GemmProblem problem{.m = a.extent[0],
                                       .n = b.extent[0],
                                       .k = a.extent[1],
                                       .a = major(a),
                                       .b = major(b),
                                       .element_bytes = sizeof(T),
                                       .result_bytes = sizeof(D)};
    return std::make_unique<Product<T, D>>(
        problem,
        tunes_ ? kernels::gemm_configs(problem, device)
               : std::vector<kernels::GemmConfig>{kernels::choose_gemm(problem, device)},
        device);
  }

  Device device_;
  bool tunes_;
};

}  // namespace heddle::bench
