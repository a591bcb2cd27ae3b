// Heddle's gemm as a contender: the only place of the benchmark that calls kernels/gemm.h.
#pragma once

#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/gemm/gemm.h"
#include "heddle/kernels/gemm/hopper.h"
#include "heddle/tools/bench/contender.h"

namespace heddle::bench {

// With `tunes` every configuration is a candidate, else the default choice alone.
class HeddleGemm : public Contender {
 public:
  HeddleGemm(const Device& device, bool tunes) : device_(device), tunes_(tunes) {}
  std::string name() const override { return "heddle"; }
  std::string version() const override { return ""; }
  StatusOr<std::unique_ptr<Prepared>> prepare(const PeerProblem& problem) override {
    const PeerTensor &a = problem.tensor[0], &b = problem.tensor[1], &d = problem.tensor[2];
    if (*problem.variant != 0)
      return UnimplementedError(absl::StrCat("gemm has no variant ", problem.variant));
    if (a.stride[1] != 1 || b.stride[1] != 1)
      return UnimplementedError("gemm takes a and b contiguous along k");
    if (std::strcmp(a.dtype, d.dtype) == 0 && std::strcmp(b.dtype, d.dtype) == 0) {
      if (std::strcmp(a.dtype, "f16") == 0) return product<half>(d, a.extent[1]);
      if (std::strcmp(a.dtype, "bf16") == 0) return product<bfloat16>(d, a.extent[1]);
    }
    return UnimplementedError(absl::StrCat("gemm takes no ", a.dtype));
  }

 private:
  template <class T>
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
      const auto [m, n, k, batches, bytes, result_bytes] = problem_;
      const kernels::GemmConfig& config = configs_[static_cast<size_t>(candidate)];
      return kernels::hopper_gemm<T>(config).launch(
          stream, kernels::gemm_shape(config, problem_, device_),
          TensorRef<const T, 3>(static_cast<const T*>(pointers[0]), {m, k, 1}, {k, 1, m * k}),
          TensorRef<const T, 3>(static_cast<const T*>(pointers[1]), {n, k, 1}, {k, 1, n * k}),
          TensorRef<T, 3>(static_cast<T*>(pointers[2]), {m, n, 1}, {n, 1, m * n}));
    }

   private:
    kernels::GemmProblem problem_;
    std::vector<kernels::GemmConfig> configs_;
    const runtime::DeviceInfo& device_;
  };

  template <class T>
  std::unique_ptr<Prepared> product(const PeerTensor& d, int64_t k) const {
    const runtime::DeviceInfo& device = device_.info();
    const kernels::GemmProblem problem{
        .m = d.extent[0], .n = d.extent[1], .k = k, .element_bytes = sizeof(T)};
    return std::make_unique<Product<T>>(
        problem,
        tunes_ ? kernels::gemm_configs(problem, device)
               : std::vector<kernels::GemmConfig>{kernels::choose_gemm(problem, device)},
        device);
  }

  Device device_;
  bool tunes_;
};

}  // namespace heddle::bench
