// Heddle's gemm as a contender: the only place of the benchmark that calls kernels/gemm.h.
#pragma once

#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/gemm/gemm.h"
#include "heddle/tools/bench/contender.h"

namespace heddle::bench {

class HeddleGemm : public Contender {
 public:
  std::string name() const override { return "heddle"; }
  std::string version() const override { return ""; }
  StatusOr<std::unique_ptr<Prepared>> prepare(const PeerProblem& problem) override {
    const PeerTensor &a = problem.tensor[0], &b = problem.tensor[1], &d = problem.tensor[2];
    if (*problem.variant != 0)
      return UnimplementedError(absl::StrCat("gemm has no variant ", problem.variant));
    if (a.stride[1] != 1 || b.stride[1] != 1)
      return UnimplementedError("gemm takes a and b contiguous along k");
    if (std::strcmp(a.dtype, d.dtype) == 0 && std::strcmp(b.dtype, d.dtype) == 0) {
      if (std::strcmp(a.dtype, "f16") == 0) return std::make_unique<Product<half>>(d, a.extent[1]);
      if (std::strcmp(a.dtype, "bf16") == 0)
        return std::make_unique<Product<bfloat16>>(d, a.extent[1]);
    }
    return UnimplementedError(absl::StrCat("gemm takes no ", a.dtype));
  }

 private:
  template <class T>
  class Product : public Prepared {
   public:
    Product(const PeerTensor& d, int64_t k) : m_(d.extent[0]), n_(d.extent[1]), k_(k) {}
    std::vector<std::string> candidates() const override { return {"default"}; }
    size_t workspace() const override { return 0; }
    Status launch(int, void* const* pointers, void*, const Stream& stream) override {
      return kernels::gemm(stream,
                           TensorRef<const T, 2>(static_cast<const T*>(pointers[0]), {m_, k_}),
                           TensorRef<const T, 2>(static_cast<const T*>(pointers[1]), {n_, k_}),
                           TensorRef<T, 2>(static_cast<T*>(pointers[2]), {m_, n_}));
    }

   private:
    int64_t m_, n_, k_;
  };
};

}  // namespace heddle::bench
