// One kernel of the CUTLASS peer: the row HEDDLE_ROW of cutlass_gemm.def, as the function row_<number>().
#include <cute/tensor.hpp>
#include <cutlass/cutlass.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm_universal.h>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

#include "cutlass_gemm.h"

namespace peer {
namespace {

using Bf16 = cutlass::bfloat16_t;
using F16 = cutlass::half_t;
using F32 = float;
using Tf32 = cutlass::tfloat32_t;
using E4m3 = cutlass::float_e4m3_t;
using Rows = cutlass::layout::RowMajor;
using Columns = cutlass::layout::ColumnMajor;
using Cooperative = cutlass::gemm::KernelTmaWarpSpecializedCooperative;
using PingPong = cutlass::gemm::KernelTmaWarpSpecializedPingpong;
using CooperativeFp8 = cutlass::gemm::KernelTmaWarpSpecializedCooperativeFP8FastAccum;
using PingPongFp8 = cutlass::gemm::KernelTmaWarpSpecializedPingpongFP8FastAccum;
using EpilogueCooperative = cutlass::epilogue::TmaWarpSpecializedCooperative;
using EpilogueWarp = cutlass::epilogue::TmaWarpSpecialized;
using Persistent = cutlass::gemm::PersistentScheduler;
using StreamK = cutlass::gemm::StreamKScheduler;

template <class T>
constexpr const char* kName = nullptr;
template <>
constexpr const char* kName<Bf16> = "bf16";
template <>
constexpr const char* kName<F16> = "f16";
template <>
constexpr const char* kName<F32> = "f32";
template <>
constexpr const char* kName<Tf32> = "tf32";
template <>
constexpr const char* kName<E4m3> = "e4m3";

template <class Gemm>
class BoundGemm : public Bound {
 public:
  static std::unique_ptr<Bound> make(const typename Gemm::Arguments& arguments, void* workspace, cudaStream_t stream,
                                     const char** error) {
    auto bound = std::make_unique<BoundGemm>();
    cutlass::Status status = Gemm::can_implement(arguments);
    if (status == cutlass::Status::kSuccess) status = bound->gemm_.initialize(arguments, workspace, stream);
    if (status == cutlass::Status::kSuccess) return bound;
    *error = cutlass::cutlassGetStatusString(status);
    return nullptr;
  }
  const char* run(cudaStream_t stream) override {
    const cutlass::Status status = gemm_.run(stream);
    return status == cutlass::Status::kSuccess ? nullptr : cutlass::cutlassGetStatusString(status);
  }

 private:
  Gemm gemm_;
};

// A kernel of TMA and wgmma, built from collectives.
template <class T, class D, class LayoutA, class LayoutB, class Tile, class Cluster, class Mainloop, class Epilogue,
          class Scheduler>
struct Sm90 {
  static constexpr int kAlign = 16 / sizeof(T), kAlignD = 16 / sizeof(D);
  using CollectiveEpilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, Rows, kAlignD, D, Rows, kAlignD,
      Epilogue>::CollectiveOp;
  using CollectiveMainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, T, LayoutA, kAlign, T, LayoutB, kAlign, float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
          sizeof(typename CollectiveEpilogue::SharedStorage))>,
      Mainloop>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, CollectiveMainloop,
                                                      CollectiveEpilogue, Scheduler>;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

  template <class Stride>
  static Stride stride(int64_t leading, int64_t batch) {
    Stride made{};
    if constexpr (cute::is_static<decltype(cute::get<0>(made))>::value) {
      cute::get<1>(made) = leading;
    } else {
      cute::get<0>(made) = leading;
    }
    cute::get<2>(made) = batch;
    return made;
  }

  static typename Gemm::Arguments arguments(const Problem& problem, const Pointers& at, int swizzle) {
    typename Gemm::Arguments made{};
    made.mode = cutlass::gemm::GemmUniversalMode::kGemm;
    made.problem_shape = {problem.m, problem.n, problem.k, problem.batch};
    made.mainloop.ptr_A = static_cast<decltype(made.mainloop.ptr_A)>(at.a);
    made.mainloop.dA = stride<decltype(made.mainloop.dA)>(problem.lda, problem.batch_a);
    made.mainloop.ptr_B = static_cast<decltype(made.mainloop.ptr_B)>(at.b);
    made.mainloop.dB = stride<decltype(made.mainloop.dB)>(problem.ldb, problem.batch_b);
    made.epilogue.thread.alpha = 1;
    made.epilogue.thread.beta = 0;
    made.epilogue.ptr_D = static_cast<D*>(at.d);
    made.epilogue.dD = stride<decltype(made.epilogue.dD)>(problem.ldd, problem.batch_d);
    made.hw_info = cutlass::KernelHardwareInfo::make_kernel_hardware_info<Kernel>(0);
    made.scheduler.max_swizzle_size = 1 << (2 * swizzle);  // 1, 4
    return made;
  }
  static size_t workspace(const Problem& problem) { return Gemm::get_workspace_size(arguments(problem, {}, 0)); }
  static std::unique_ptr<Bound> bind(const Problem& problem, const Pointers& at, int swizzle, cudaStream_t stream,
                                     const char** error) {
    return BoundGemm<Gemm>::make(arguments(problem, at, swizzle), at.workspace, stream, error);
  }
  static Row row(const char* name) {
    return {name,
            kName<T>,
            kName<D>,
            std::is_same_v<LayoutA, Rows>,
            std::is_same_v<LayoutB, Columns>,
            /*mma_sync=*/false,
            /*swizzles=*/2,
            workspace,
            bind};
  }
};

// A kernel of cp.async and mma.sync, as for sm_80.
template <class T, class LayoutA, class LayoutB, class Tile, class Warp, int kStages>
struct Sm80 {
  static constexpr int kAlign = 16 / sizeof(T);
  using Gemm = cutlass::gemm::device::GemmUniversal<
      T, LayoutA, T, LayoutB, T, Rows, float, cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80, Tile, Warp,
      cutlass::gemm::GemmShape<16, 8, 16>, cutlass::epilogue::thread::LinearCombination<T, kAlign, float, float>,
      cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<8>, kStages, kAlign, kAlign>;

  static typename Gemm::Arguments arguments(const Problem& problem, const Pointers& at) {
    const bool batched = problem.batch > 1;
    return {batched ? cutlass::gemm::GemmUniversalMode::kBatched : cutlass::gemm::GemmUniversalMode::kGemm,
            {problem.m, problem.n, problem.k},
            problem.batch,
            {1.0f, 0.0f},
            at.a,
            at.b,
            at.d,
            at.d,
            problem.batch_a,
            problem.batch_b,
            problem.batch_d,
            problem.batch_d,
            problem.lda,
            problem.ldb,
            problem.ldd,
            problem.ldd};
  }
  static size_t workspace(const Problem& problem) { return Gemm::get_workspace_size(arguments(problem, {})); }
  static std::unique_ptr<Bound> bind(const Problem& problem, const Pointers& at, int, cudaStream_t stream,
                                     const char** error) {
    return BoundGemm<Gemm>::make(arguments(problem, at), at.workspace, stream, error);
  }
  static Row row(const char* name) {
    return {name,
            kName<T>,
            kName<T>,
            std::is_same_v<LayoutA, Rows>,
            std::is_same_v<LayoutB, Columns>,
            /*mma_sync=*/true,
            /*swizzles=*/1,
            workspace,
            bind};
  }
};

template <int... kExtents>
using Tile = cute::Shape<cute::Int<kExtents>...>;
template <int kM, int kN>
using Cluster = cute::Shape<cute::Int<kM>, cute::Int<kN>, cute::_1>;
template <int... kExtents>
using GemmTile = cutlass::gemm::GemmShape<kExtents...>;

template <int kNumber>
struct Entry;

#define HEDDLE_UNWRAP(...) __VA_ARGS__
#define SM90(number, title, T, D, A, B, tile, cluster, mainloop, epilogue, scheduler)                       \
  template <>                                                                                               \
  struct Entry<number> {                                                                                    \
    using Kernel = Sm90<T, D, A, B, Tile<HEDDLE_UNWRAP tile>, Cluster<HEDDLE_UNWRAP cluster>, mainloop,     \
                        epilogue, scheduler>;                                                               \
    static constexpr const char* kTitle = title;                                                            \
  };
#define SM80(number, title, T, A, B, tile, warp, stages)                                                    \
  template <>                                                                                               \
  struct Entry<number> {                                                                                    \
    using Kernel = Sm80<T, A, B, GemmTile<HEDDLE_UNWRAP tile>, GemmTile<HEDDLE_UNWRAP warp>, stages>;       \
    static constexpr const char* kTitle = title;                                                            \
  };
#include "cutlass_gemm.def"

}  // namespace

template <int kNumber>
Row made_row() {
  return Entry<kNumber>::Kernel::row(Entry<kNumber>::kTitle);
}
template Row made_row<HEDDLE_ROW>();

}  // namespace peer
