// One kernel of the CUTLASS peer: the row HEDDLE_ROW of cutlass_gemm.def, as the function row_<number>().
#include <cute/tensor.hpp>
#include <cutlass/cutlass.h>
#include <cutlass/detail/blockwise_scale_layout.hpp>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm_universal.h>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

#include <cstring>
#include <vector>

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
using CooperativeGroups = cutlass::gemm::KernelPtrArrayTmaWarpSpecializedCooperative;
using PingPongGroups = cutlass::gemm::KernelPtrArrayTmaWarpSpecializedPingpong;
using EpilogueCooperativeGroups = cutlass::epilogue::PtrArrayTmaWarpSpecializedCooperative;
using EpiloguePingPongGroups = cutlass::epilogue::PtrArrayTmaWarpSpecializedPingpong;
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

// Strides of a matrix; a batch may have none.
template <class Stride>
Stride stride(int64_t leading, int64_t batch) {
  Stride made{};
  if constexpr (cute::is_static<decltype(cute::get<0>(made))>::value) {
    cute::get<1>(made) = leading;
  } else {
    cute::get<0>(made) = leading;
  }
  if constexpr (!cute::is_static<decltype(cute::get<2>(made))>::value) cute::get<2>(made) = batch;
  return made;
}

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
            "gemm",
            "",
            kName<T>,
            kName<D>,
            std::is_same_v<LayoutA, Rows>,
            std::is_same_v<LayoutB, Columns>,
            /*swizzles=*/2,
            workspace,
            bind};
  }
};

// The same of e4m3 into bf16, with factors for blocks of 128 along k, of single rows of A and of 128 columns of B.
template <class Tile, class Cluster>
struct Sm90Blocks {
  using Factors = cutlass::detail::Sm90BlockwiseScaleConfig<1, 128, 128, cute::GMMA::Major::MN, cute::GMMA::Major::K>;
  using CollectiveEpilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, Rows, 8, Bf16, Rows, 8,
      EpilogueCooperative>::CollectiveOp;
  using CollectiveMainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, E4m3,
      cute::tuple<Rows, decltype(Factors::deduce_layoutSFA())>, 16, E4m3,
      cute::tuple<Columns, decltype(Factors::deduce_layoutSFB())>, 16, float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
          sizeof(typename CollectiveEpilogue::SharedStorage))>,
      cutlass::gemm::KernelTmaWarpSpecializedCooperativeFP8Blockwise>::CollectiveOp;
  using Kernel =
      cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, CollectiveMainloop, CollectiveEpilogue>;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

  static typename Gemm::Arguments arguments(const Problem& problem, const Pointers& at) {
    typename Gemm::Arguments made{};
    made.mode = cutlass::gemm::GemmUniversalMode::kGemm;
    made.problem_shape = {problem.m, problem.n, problem.k, 1};
    made.mainloop.ptr_A = static_cast<const E4m3*>(at.a);
    made.mainloop.dA = stride<decltype(made.mainloop.dA)>(problem.lda, 0);
    made.mainloop.ptr_B = static_cast<const E4m3*>(at.b);
    made.mainloop.dB = stride<decltype(made.mainloop.dB)>(problem.ldb, 0);
    made.mainloop.ptr_SFA = static_cast<const float*>(at.more[0]);
    made.mainloop.layout_SFA = Factors::tile_atom_to_shape_SFA(made.problem_shape);
    made.mainloop.ptr_SFB = static_cast<const float*>(at.more[1]);
    made.mainloop.layout_SFB = Factors::tile_atom_to_shape_SFB(made.problem_shape);
    made.epilogue.thread.alpha = 1;
    made.epilogue.thread.beta = 0;
    made.epilogue.ptr_D = static_cast<Bf16*>(at.d);
    made.epilogue.dD = stride<decltype(made.epilogue.dD)>(problem.ldd, 0);
    made.hw_info = cutlass::KernelHardwareInfo::make_kernel_hardware_info<Kernel>(0);
    return made;
  }
  static size_t workspace(const Problem& problem) { return Gemm::get_workspace_size(arguments(problem, {})); }
  static std::unique_ptr<Bound> bind(const Problem& problem, const Pointers& at, int, cudaStream_t stream,
                                     const char** error) {
    return BoundGemm<Gemm>::make(arguments(problem, at), at.workspace, stream, error);
  }
  static Row row(const char* name) {
    return {name, "gemm", "block-scaled", kName<E4m3>, kName<Bf16>, true, true, /*swizzles=*/1, workspace, bind};
  }
};

// The same of groups of rows, each with a pointer of its own. What the groups' rows say is read when it is bound.
template <class T, class Tile, class Cluster, class Mainloop, class Epilogue>
struct Sm90Groups {
  static constexpr int kAlign = 16 / sizeof(T);
  using Shape = cutlass::gemm::GroupProblemShape<cute::Shape<int, int, int>>;
  using CollectiveEpilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, Rows*, kAlign, T, Rows*, kAlign,
      Epilogue>::CollectiveOp;
  using CollectiveMainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, T, Rows*, kAlign, T, Columns*, kAlign, float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
          sizeof(typename CollectiveEpilogue::SharedStorage))>,
      Mainloop>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape, CollectiveMainloop, CollectiveEpilogue>;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;
  using StrideA = typename Kernel::InternalStrideA;
  using StrideB = typename Kernel::InternalStrideB;
  using StrideD = typename Kernel::InternalStrideD;
  using Extents = typename Shape::UnderlyingProblemShape;

  // Arrays of the groups in one allocation of device memory.
  class Groups : public Bound {
   public:
    ~Groups() override { cudaFree(memory_); }
    const char* fill(const Problem& problem, const Pointers& at) {
      const auto count = static_cast<size_t>(problem.batch);
      std::vector<int32_t> rows(count);
      if (cudaMemcpy(rows.data(), at.more[0], count * sizeof(int32_t), cudaMemcpyDeviceToHost) != cudaSuccess)
        return "the groups' rows cannot be read";
      std::vector<Extents> extents;
      std::vector<const void*> a, b, d;
      int64_t end = 0;
      for (size_t g = 0; g < count; ++g) {
        const int64_t first = problem.masked ? 0 : end;
        end = rows[g];
        extents.push_back({static_cast<int>(end - first), problem.n, problem.k});
        const auto group = static_cast<int64_t>(g);
        a.push_back(static_cast<const T*>(at.a) + group * problem.batch_a + first * problem.lda);
        b.push_back(static_cast<const T*>(at.b) + group * problem.batch_b);
        d.push_back(static_cast<const T*>(at.d) + group * problem.batch_d + first * problem.ldd);
      }
      std::vector<unsigned char> all;
      const auto append = [&](const auto& values) {
        const size_t place = (all.size() + 255) / 256 * 256, bytes = values.size() * sizeof(values[0]);
        all.resize(place + bytes);
        std::memcpy(all.data() + place, values.data(), bytes);
        return place;
      };
      const size_t places[] = {append(extents),
                               append(a),
                               append(std::vector<StrideA>(count, stride<StrideA>(problem.lda, 0))),
                               append(b),
                               append(std::vector<StrideB>(count, stride<StrideB>(problem.ldb, 0))),
                               append(d),
                               append(std::vector<StrideD>(count, stride<StrideD>(problem.ldd, 0)))};
      if (cudaMalloc(&memory_, all.size()) != cudaSuccess ||
          cudaMemcpy(memory_, all.data(), all.size(), cudaMemcpyHostToDevice) != cudaSuccess)
        return "there is no memory for the groups";
      const auto array = [&](int i) { return static_cast<void*>(static_cast<unsigned char*>(memory_) + places[i]); };
      arguments = made(problem.batch);
      arguments.problem_shape.problem_shapes = static_cast<Extents*>(array(0));
      arguments.mainloop.ptr_A = static_cast<decltype(arguments.mainloop.ptr_A)>(array(1));
      arguments.mainloop.dA = static_cast<decltype(arguments.mainloop.dA)>(array(2));
      arguments.mainloop.ptr_B = static_cast<decltype(arguments.mainloop.ptr_B)>(array(3));
      arguments.mainloop.dB = static_cast<decltype(arguments.mainloop.dB)>(array(4));
      arguments.epilogue.ptr_D = static_cast<decltype(arguments.epilogue.ptr_D)>(array(5));
      arguments.epilogue.dD = static_cast<decltype(arguments.epilogue.dD)>(array(6));
      return nullptr;
    }
    const char* run(cudaStream_t stream) override { return gemm->run(stream); }

    typename Gemm::Arguments arguments{};
    std::unique_ptr<Bound> gemm;

   private:
    void* memory_ = nullptr;
  };

  static typename Gemm::Arguments made(int groups) {
    typename Gemm::Arguments made{};
    made.mode = cutlass::gemm::GemmUniversalMode::kGrouped;
    made.problem_shape = {groups, nullptr, nullptr};
    made.epilogue.thread.alpha = 1;
    made.epilogue.thread.beta = 0;
    made.hw_info = cutlass::KernelHardwareInfo::make_kernel_hardware_info<Kernel>(0);
    return made;
  }
  static size_t workspace(const Problem& problem) { return Gemm::get_workspace_size(made(problem.batch)); }
  static std::unique_ptr<Bound> bind(const Problem& problem, const Pointers& at, int, cudaStream_t stream,
                                     const char** error) {
    auto groups = std::make_unique<Groups>();
    *error = groups->fill(problem, at);
    if (*error != nullptr) return nullptr;
    groups->gemm = BoundGemm<Gemm>::make(groups->arguments, at.workspace, stream, error);
    if (groups->gemm == nullptr) return nullptr;
    return groups;
  }
  static Row row(const char* name) {
    return {name, "gemm_grouped gemm_masked", "", kName<T>, kName<T>, true, true, /*swizzles=*/1, workspace, bind};
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
            "gemm",
            "mma.sync",
            kName<T>,
            kName<T>,
            std::is_same_v<LayoutA, Rows>,
            std::is_same_v<LayoutB, Columns>,
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
#define SM90_BLOCKS(number, title, tile, cluster)                                                           \
  template <>                                                                                               \
  struct Entry<number> {                                                                                    \
    using Kernel = Sm90Blocks<Tile<HEDDLE_UNWRAP tile>, Cluster<HEDDLE_UNWRAP cluster>>;                    \
    static constexpr const char* kTitle = title;                                                            \
  };
#define SM90_GROUPS(number, title, T, tile, cluster, mainloop, epilogue)                                    \
  template <>                                                                                               \
  struct Entry<number> {                                                                                    \
    using Kernel = Sm90Groups<T, Tile<HEDDLE_UNWRAP tile>, Cluster<HEDDLE_UNWRAP cluster>, mainloop, epilogue>; \
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
