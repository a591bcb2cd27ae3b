// Heddle's products as contenders: the only place of the benchmark that calls kernels/gemm.
#pragma once

#include <functional>
#include <memory>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/gemm/gemm.h"
#include "heddle/kernels/gemm/gemm_stream_k.h"
#include "heddle/kernels/gemm/grouped.h"
#include "heddle/kernels/gemm/multistage.h"
#include "heddle/kernels/gemm/named_epilogue.h"
#include "heddle/kernels/gemm/scaled.h"
#include "heddle/runtime/compile.h"
#include "heddle/runtime/kernel_cache.h"
#include "heddle/runtime/operation/dry_run.h"
#include "heddle/runtime/tuning/tuning_scope.h"
#include "heddle/tools/bench/contender.h"
#include "heddle/tools/bench/gemm/operands.h"

namespace heddle::bench {

// A call of a function of kernels/ on pointers to the operands.
using HeddleCall = std::function<Status(const Stream&, void* const* pointers)>;

// The memory of an operand as a tensor.
template <class T, int Rank>
TensorRef<T, Rank> tensor_at(const PeerTensor& t, void* data) {
  TensorRef<T, Rank> ref;
  ref.data = static_cast<T*>(data);
  for (int mode = 0; mode < Rank; ++mode) {
    ref.extents[mode] = t.extent[mode];
    ref.strides[mode] = t.stride[mode];
  }
  return ref;
}

// Calls by name, besides those of a Tunable.
using NamedCalls = std::vector<std::pair<std::string, HeddleCall>>;

// The calls that solve problems of peers/peer.h, by operation and variant; nullptr where there is none.
class HeddleCalls {
 public:
  explicit HeddleCalls(const PeerProblem& problem) : problem_(problem) {}

  HeddleCall find() const {
    const std::string a = of(kA).dtype, d = of(kD).dtype;
    if (a == "f16" && d == "f16") return of_16_bits<half>();
    if (a == "bf16" && d == "bf16") return of_16_bits<bfloat16>();
    if (a == "tf32" && d == "f32" && is("gemm", "")) return plain<tfloat32, float>();
    if (a == "e4m3" && d == "bf16") return of_8_bits();
    return nullptr;
  }
  // The plain product by stream-K, which gemm() has no workspace for.
  NamedCalls by_stream_k(const runtime::DeviceInfo& device) const {
    const std::string a = of(kA).dtype, d = of(kD).dtype;
    if (!is("gemm", "")) return {};
    if (a == "f16" && d == "f16") return stream_k<half, half>(device);
    if (a == "bf16" && d == "bf16") return stream_k<bfloat16, bfloat16>(device);
    if (a == "tf32" && d == "f32") return stream_k<tfloat32, float>(device);
    if (a == "e4m3" && d == "bf16") return stream_k<float8_e4m3, bfloat16>(device);
    return {};
  }

 private:
  bool is(std::string_view operation, std::string_view variant) const {
    return operation == problem_.operation && variant == problem_.variant;
  }
  const PeerTensor& of(int i) const { return problem_.tensor[i]; }

  // The body whose atoms are swapped, with those that are not the choice for mma.sync.
  static constexpr kernels::MultistageConfig kSwapped[] = {
      {},
      {.wgmma = true, .m = 128, .n = 256, .k = 64, .stages = 4, .rows = 8, .columns = 1},
      {.tma = true,
       .wgmma = true,
       .m = 128,
       .n = 256,
       .k = 64,
       .stages = 4,
       .rows = 8,
       .columns = 1},
  };

  // By a configuration of that body, or the one that it chooses.
  template <class T>
  HeddleCall by_atoms(const kernels::MultistageConfig* config) const {
    return [p = problem_, config](const Stream& stream, void* const* at) {
      return kernels::gemm_multistage_by(
          stream, config != nullptr ? *config : kernels::choose_multistage(stream.device().info()),
          tensor_at<const T, 2>(p.tensor[kA], at[kA]), tensor_at<const T, 2>(p.tensor[kB], at[kB]),
          tensor_at<T, 2>(p.tensor[kD], at[kD]));
    };
  }

  template <class T>
  HeddleCall of_16_bits() const {
    if (is("gemm", "")) return plain<T, T>();
    if (is("gemm_grouped", "")) {
      return [p = problem_](const Stream& stream, void* const* at) {
        return kernels::gemm_grouped(stream, tensor_at<const T, 2>(p.tensor[kA], at[kA]),
                                     tensor_at<const T, 3>(p.tensor[kB], at[kB]),
                                     tensor_at<T, 2>(p.tensor[kD], at[kD]),
                                     tensor_at<const int32_t, 1>(p.tensor[3], at[3]));
      };
    }
    if (is("gemm_masked", "")) {
      return [p = problem_](const Stream& stream, void* const* at) {
        return kernels::gemm_masked(stream, tensor_at<const T, 3>(p.tensor[kA], at[kA]),
                                    tensor_at<const T, 3>(p.tensor[kB], at[kB]),
                                    tensor_at<T, 3>(p.tensor[kD], at[kD]),
                                    tensor_at<const int32_t, 1>(p.tensor[3], at[3]));
      };
    }
    if (is("gemm", "mma.sync")) return by_atoms<T>(nullptr);
    for (const kernels::MultistageConfig& config : kSwapped) {
      if (is("gemm", config.atoms())) return by_atoms<T>(&config);
    }
    for (int row = 0; row < static_cast<int>(kernels::named_epilogues().size()); ++row) {
      const kernels::NamedEpilogue& epilogue = kernels::named_epilogues()[static_cast<size_t>(row)];
      if (!is("gemm", epilogue.name) || !epilogue.bias || !epilogue.residual) continue;
      return [p = problem_, row](const Stream& stream, void* const* at) {
        return kernels::gemm_with(
            stream, kernels::ChosenEpilogue<T>{.row = row},
            tensor_at<const T, 2>(p.tensor[kA], at[kA]),
            tensor_at<const T, 2>(p.tensor[kB], at[kB]), tensor_at<T, 2>(p.tensor[kD], at[kD]),
            1.0f, 0.0f, TensorRef<const T, 3>(), tensor_at<const float, 1>(p.tensor[3], at[3]),
            kernels::detail::in_batches(tensor_at<const T, 2>(p.tensor[4], at[4])));
      };
    }
    return nullptr;
  }

  HeddleCall of_8_bits() const {
    if (is("gemm", "")) return plain<float8_e4m3, bfloat16>();
    if (is("gemm", "row-scaled")) return scaled<1>();
    if (is("gemm", "block-scaled")) return scaled<2>();
    return nullptr;
  }

  template <class T, class D>
  HeddleCall plain() const {
    return [p = problem_](const Stream& stream, void* const* at) {
      return kernels::gemm(stream, tensor_at<const T, 2>(p.tensor[kA], at[kA]),
                           tensor_at<const T, 2>(p.tensor[kB], at[kB]),
                           tensor_at<D, 2>(p.tensor[kD], at[kD]));
    };
  }

  template <class T, class D>
  NamedCalls stream_k(const runtime::DeviceInfo& device) const {
    const auto batches = [&](auto ref) { return kernels::detail::in_batches(ref); };
    const auto problem =
        kernels::detail::gemm_problem({batches(tensor_at<const T, 2>(of(kA), nullptr)),
                                       batches(tensor_at<const T, 2>(of(kB), nullptr)),
                                       batches(tensor_at<D, 2>(of(kD), nullptr))});
    NamedCalls calls;
    if (!problem.ok()) return calls;
    const auto workspace =
        std::make_shared<kernels::GemmWorkspace>();  // of the benchmark's one stream
    for (const kernels::GemmConfig& config : kernels::gemm_configs(*problem, device)) {
      if (!config.stream_k) continue;
      calls.emplace_back(config.to_string(), [p = problem_, config, workspace](const Stream& stream,
                                                                               void* const* at) {
        if (workspace->blocks == 0) {
          StatusOr<kernels::GemmWorkspace> made = kernels::gemm_workspace(stream);
          if (!made.ok()) return made.status();
          *workspace = *std::move(made);
        }
        return kernels::gemm_stream_k_by(stream, *workspace, config, kernels::PlainSums(),
                                         tensor_at<const T, 2>(p.tensor[kA], at[kA]),
                                         tensor_at<const T, 2>(p.tensor[kB], at[kB]),
                                         tensor_at<D, 2>(p.tensor[kD], at[kD]));
      });
    }
    return calls;
  }

  template <int kFactorRank>
  HeddleCall scaled() const {
    return [p = problem_](const Stream& stream, void* const* at) {
      return kernels::gemm_scaled(stream, tensor_at<const float8_e4m3, 2>(p.tensor[kA], at[kA]),
                                  tensor_at<const float8_e4m3, 2>(p.tensor[kB], at[kB]),
                                  tensor_at<bfloat16, 2>(p.tensor[kD], at[kD]),
                                  tensor_at<const float, kFactorRank>(p.tensor[3], at[3]),
                                  tensor_at<const float, kFactorRank>(p.tensor[4], at[4]));
    };
  }

  const PeerProblem& problem_;
};

// With `tunes` every configuration is a candidate, else the default choice alone. A contender for the product
// without what a variant adds is "plain".
class HeddleGemm : public Contender {
 public:
  HeddleGemm(const Device& device, bool tunes, bool plain)
      : device_(device), tunes_(tunes), plain_(plain) {}
  std::string name() const override { return plain_ ? "plain" : "heddle"; }
  std::string version() const override { return ""; }
  bool is_plain() const override { return plain_; }
  StatusOr<std::unique_ptr<Prepared>> prepare(const PeerProblem& problem) override {
    PeerProblem solved = problem;
    if (plain_) {
      if (std::string_view(problem.variant) != "bias_gelu_residual") {
        return UnimplementedError("a product alone is compared with those of epilogues");
      }
      solved.variant = "";
    }
    HeddleCall call = HeddleCalls(solved).find();
    if (call == nullptr) {
      return UnimplementedError(absl::StrCat(problem.operation, " has no variant '",
                                             problem.variant, "' of ", problem.tensor[kA].dtype));
    }
    auto prepared = std::make_unique<Call>(device_, std::move(call), tunes_);
    if (Status s = prepared->look(); !s.ok()) return s;
    if (tunes_) prepared->add(HeddleCalls(solved).by_stream_k(device_.info()));
    return prepared;
  }

 private:
  class Call : public Prepared {
   public:
    Call(const Device& device, HeddleCall call, bool tunes)
        : device_(device), call_(std::move(call)), tunes_(tunes) {}

    // Compiles what is launched, and finds out what there is to choose from.
    Status look() {
      const runtime::TuningScope scope;
      const Device dry = open_dry_run(device_.info(), [&](const DryLaunch& launch) -> Status {
        const StatusOr<const runtime::Executable*> executable =
            runtime::KernelCache::of(*launch.source)
                .find_or_compile(*launch.source, device_.backend(), launch.shape, launch.arguments);
        if (!executable.ok()) return executable.status();
        times_ += (*executable)->shared_compilation()->times;
        return OkStatus();
      });
      // No address counts but for its alignment, and that no two operands overlap.
      void* pointers[HEDDLE_PEER_TENSORS];
      for (uintptr_t i = 0; i < HEDDLE_PEER_TENSORS; ++i) {
        pointers[i] = reinterpret_cast<void*>((i + 1) << 40);
      }
      if (Status s = call_(dry.default_stream(), pointers); !s.ok()) return s;
      if (!scope.asked().empty()) problem_ = scope.asked()[0];
      return OkStatus();
    }
    std::vector<std::string> candidates() const override {
      if (problem_.candidates.empty()) return {"its only configuration"};
      if (!tunes_) return {problem_.model};
      std::vector<std::string> names = problem_.candidates;
      for (const auto& [name, call] : more_) names.push_back(name);
      return names;
    }
    // Further candidates.
    void add(NamedCalls calls) { more_ = std::move(calls); }
    size_t workspace() const override { return 0; }
    std::map<std::string, double> notes() const override {
      if (times_.ptxas == 0) return {};
      const double to_ptx = times_.trace + times_.passes + times_.emit;
      return {{"to_ptx_ms", to_ptx * 1e-3},
              {"ptxas_ms", times_.ptxas * 1e-3},
              {"compile_ms", (to_ptx + times_.assemble) * 1e-3}};
    }
    // In a TuningScope of the program.
    Status launch(int candidate, void* const* pointers, void*, const Stream& stream) override {
      const size_t tuned = problem_.candidates.size(), i = static_cast<size_t>(candidate);
      if (tunes_ && tuned > 0 && i >= tuned) return more_[i - tuned].second(stream, pointers);
      if (tunes_ && tuned > 0) {
        runtime::TuningScope::current()->use(problem_, problem_.candidates[i]);
      }
      return call_(stream, pointers);
    }

   private:
    const Device& device_;
    HeddleCall call_;
    bool tunes_;
    runtime::TuningProblem problem_;
    NamedCalls more_;
    runtime::StageTimes times_;
  };

  Device device_;
  bool tunes_, plain_;
};

}  // namespace heddle::bench
