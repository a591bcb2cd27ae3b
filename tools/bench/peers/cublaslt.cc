// cuBLAS as a peer (peer.h): the algorithms that cublasLt's heuristics name, 16 at most, and for groups of rows
// cuBLAS's call for groups (cublas_groups.h). Scaled products need headers of CUDA 12.9. The libraries are loaded when
// the peer is opened (cublas_library.h).
#include <cublasLt.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "heddle/tools/bench/peers/cublas_groups.h"
#include "heddle/tools/bench/peers/cublas_library.h"
#include "heddle/tools/bench/peers/peer.h"

namespace {

constexpr int kAlgorithms = 16;
constexpr size_t kWorkspace = size_t{64} << 20;

// The functions in use; each is looked up by its name.
#define CUBLASLT_FUNCTIONS(X)             \
  X(cublasLtCreate)                       \
  X(cublasLtGetVersion)                   \
  X(cublasLtMatmul)                       \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtMatmulAlgoConfigGetAttribute) \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatrixLayoutSetAttribute)     \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy) X(cublasLtMatmulPreferenceSetAttribute)

struct Library {
#define DECLARE(name) decltype(&::name) name = nullptr;
  CUBLASLT_FUNCTIONS(DECLARE)
#undef DECLARE
  cublasLtHandle_t handle = nullptr;
  std::string version;
};

Library library;
std::string open_options;
thread_local std::string error_text;

const char* error(std::string text) {
  error_text = std::move(text);
  return error_text.c_str();
}

const char* failed(const char* what, cublasStatus_t status) {
  return error(std::string(what) + " failed with status " + std::to_string(status));
}

const char* load(const char* options) {
  std::string why;
  void* const loaded = peer::load_library("libcublasLt", options, &why);
  if (loaded == nullptr) return error(why);
#define LOAD(name)                                                          \
  library.name = reinterpret_cast<decltype(&::name)>(dlsym(loaded, #name)); \
  if (library.name == nullptr) return error("libcublasLt has no function " #name);
  CUBLASLT_FUNCTIONS(LOAD)
#undef LOAD
  return nullptr;
}

struct DataType {
  const char* name;
  cudaDataType_t type;
  cublasComputeType_t compute;  // of products of this type
};
constexpr DataType kTypes[] = {
    {"f16", CUDA_R_16F, CUBLAS_COMPUTE_32F},
    {"bf16", CUDA_R_16BF, CUBLAS_COMPUTE_32F},
    {"f32", CUDA_R_32F, CUBLAS_COMPUTE_32F},
    {"tf32", CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
    {"e4m3", CUDA_R_8F_E4M3, CUBLAS_COMPUTE_32F},
    {"e5m2", CUDA_R_8F_E5M2, CUBLAS_COMPUTE_32F},
};

const DataType* type_of(const char* name) {
  for (const DataType& type : kTypes) {
    if (std::strcmp(type.name, name) == 0) return &type;
  }
  return nullptr;
}

// Objects of the library that are destroyed with their plan.
template <class T>
using Owned = std::unique_ptr<T, cublasStatus_t (*)(T*)>;
using Layout = Owned<std::remove_pointer_t<cublasLtMatrixLayout_t>>;
using Desc = Owned<std::remove_pointer_t<cublasLtMatmulDesc_t>>;

// A tensor's last two modes as cublasLt sees them: columns below each other.
struct Matrix {
  Layout layout{nullptr, nullptr};
  bool transposed = false;  // rows are contiguous, so that the library sees the transpose

  const char* make(const PeerTensor& t, const DataType& type) {
    const int rows = t.rank - 2, columns = t.rank - 1;
    transposed = t.stride[columns] == 1;
    if (!transposed && t.stride[rows] != 1) return error("neither rows nor columns are contiguous");
    const int contiguous = transposed ? columns : rows, other = transposed ? rows : columns;
    cublasLtMatrixLayout_t made = nullptr;
    cublasStatus_t status = library.cublasLtMatrixLayoutCreate(
        &made, type.type, static_cast<uint64_t>(t.extent[contiguous]),
        static_cast<uint64_t>(t.extent[other]), t.stride[other]);
    if (status != CUBLAS_STATUS_SUCCESS) return failed("cublasLtMatrixLayoutCreate", status);
    layout = Layout(made, library.cublasLtMatrixLayoutDestroy);
    if (t.rank == 3) {
      const auto batch = static_cast<int32_t>(t.extent[0]);
      status = library.cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                        &batch, sizeof(batch));
      if (status == CUBLAS_STATUS_SUCCESS) {
        status = library.cublasLtMatrixLayoutSetAttribute(
            made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &t.stride[0], sizeof(t.stride[0]));
      }
      if (status != CUBLAS_STATUS_SUCCESS)
        return failed("cublasLtMatrixLayoutSetAttribute", status);
    }
    return nullptr;
  }
};

// How a variant of a product is asked for: modes of the factors of a and b, where they are scaled, and of the
// library's sums. The library's first operand is b.
struct Variant {
  const char* name;
  bool scaled;
  int32_t a, b;
  int8_t fast_sums;  // of 8-bit floats
};
constexpr Variant kVariants[] = {
    {"", false, 0, 0, 1},
#if CUBLAS_VERSION >= 120900
    {"row-scaled", true, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F,
     CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F, 1},
    {"block-scaled", true, CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
     CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F, 0},
#endif
};

const Variant* variant_of(const char* name) {
  for (const Variant& variant : kVariants) {
    if (std::strcmp(variant.name, name) == 0) return &variant;
  }
  return nullptr;
}

// Factors as the library takes them: a's contiguous along m, b's along k in lines of whole 16 bytes.
bool takes_factors(const PeerTensor& a, const PeerTensor& b) {
  if (a.rank == 1) return a.stride[0] == 1 && b.stride[0] == 1;
  return a.stride[0] == 1 && a.stride[1] == a.extent[0] && b.stride[1] == 1 &&
         b.stride[0] == (b.extent[1] + 3) / 4 * 4;
}

}  // namespace

struct PeerPlan {
  std::unique_ptr<peer::CublasGroups> groups;  // alone, of groups of rows
  bool scaled = false;
  Desc desc{nullptr, nullptr};
  Matrix a, b, d;
  std::array<cublasLtMatmulHeuristicResult_t, kAlgorithms> results;
  std::vector<std::string> names;
};

namespace {

std::string algorithm_name(const cublasLtMatmulAlgo_t& algorithm) {
  std::string name;
  for (const auto& [what, attribute] : {std::pair{"algorithm ", CUBLASLT_ALGO_CONFIG_ID},
                                        {", tile ", CUBLASLT_ALGO_CONFIG_TILE_ID},
                                        {", stages ", CUBLASLT_ALGO_CONFIG_STAGES_ID},
                                        {", split-K ", CUBLASLT_ALGO_CONFIG_SPLITK_NUM}}) {
    int32_t value = 0;
    size_t written = 0;
    library.cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof(value),
                                                 &written);
    name += what + std::to_string(value);
  }
  return name;
}

// d = a * b^T. Where the library counts columns first, row-major d is its transpose, b * a^T: b is its first operand.
const char* prepare(const PeerProblem& problem, PeerPlan& plan) {
  const DataType *a = type_of(problem.tensor[0].dtype), *b = type_of(problem.tensor[1].dtype),
                 *d = type_of(problem.tensor[2].dtype);
  if (a == nullptr || b == nullptr || d == nullptr)
    return error("an element type that cublasLt lacks");
  for (const auto& [matrix, tensor, type] : {std::tuple{&plan.a, &problem.tensor[0], a},
                                             {&plan.b, &problem.tensor[1], b},
                                             {&plan.d, &problem.tensor[2], d}}) {
    if (const char* why = matrix->make(*tensor, *type); why != nullptr) return why;
  }
  if (!plan.d.transposed) return error("d's rows are not contiguous");
  cublasLtMatmulDesc_t desc = nullptr;
  cublasStatus_t status = library.cublasLtMatmulDescCreate(&desc, a->compute, CUDA_R_32F);
  if (status != CUBLAS_STATUS_SUCCESS) return failed("cublasLtMatmulDescCreate", status);
  plan.desc = Desc(desc, library.cublasLtMatmulDescDestroy);
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    if (status != CUBLAS_STATUS_SUCCESS) return;
    status = library.cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof(value));
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, plan.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, plan.a.transposed ? CUBLAS_OP_N : CUBLAS_OP_T);
  const Variant& variant = *variant_of(problem.variant);
  if (a->type == CUDA_R_8F_E4M3 || a->type == CUDA_R_8F_E5M2)
    set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, variant.fast_sums);
  plan.scaled = variant.scaled;
#if CUBLAS_VERSION >= 120900
  if (variant.scaled) {
    if (!takes_factors(problem.tensor[3], problem.tensor[4]))
      return error("factors that lie otherwise than cublasLt takes them");
    set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, variant.b);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, variant.a);
    // The heuristics look whether there are factors, and not at them.
    const void* const some = reinterpret_cast<const void*>(uintptr_t{256});
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, some);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, some);
  }
#endif
  if (status != CUBLAS_STATUS_SUCCESS) return failed("cublasLtMatmulDescSetAttribute", status);

  cublasLtMatmulPreference_t preference = nullptr;
  status = library.cublasLtMatmulPreferenceCreate(&preference);
  if (status != CUBLAS_STATUS_SUCCESS) return failed("cublasLtMatmulPreferenceCreate", status);
  const Owned<std::remove_pointer_t<cublasLtMatmulPreference_t>> owned(
      preference, library.cublasLtMatmulPreferenceDestroy);
  library.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &kWorkspace, sizeof(kWorkspace));
  int count = 0;
  status = library.cublasLtMatmulAlgoGetHeuristic(
      library.handle, desc, plan.b.layout.get(), plan.a.layout.get(), plan.d.layout.get(),
      plan.d.layout.get(), preference, kAlgorithms, plan.results.data(), &count);
  if (status != CUBLAS_STATUS_SUCCESS) return failed("cublasLtMatmulAlgoGetHeuristic", status);
  for (int i = 0; i < count; ++i)
    plan.names.push_back(algorithm_name(plan.results[static_cast<size_t>(i)].algo));
  return count == 0 ? error("cublasLt's heuristics name no algorithm") : nullptr;
}

}  // namespace

extern "C" {

int peer_abi(void) { return HEDDLE_PEER_ABI; }

const char* peer_open(const char* options) {
  open_options = options;
  if (const char* why = load(options); why != nullptr) return why;
  const size_t version = library.cublasLtGetVersion();
  library.version = std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) +
                    "." + std::to_string(version % 100);
  const cublasStatus_t status = library.cublasLtCreate(&library.handle);
  return status == CUBLAS_STATUS_SUCCESS ? nullptr : failed("cublasLtCreate", status);
}

const char* peer_name(void) { return "cublas"; }

const char* peer_version(void) { return library.version.c_str(); }

const char* peer_prepare(const PeerProblem* problem, PeerPlan** plan) {
  if (std::strcmp(problem->operation, "gemm") != 0) {
    auto of_groups = std::make_unique<PeerPlan>();
    std::string why;
    of_groups->groups = peer::CublasGroups::make(*problem, open_options, &why);
    if (of_groups->groups == nullptr) return error(why);
    of_groups->names = {"cublasGemmGroupedBatchedEx"};
    *plan = of_groups.release();
    return nullptr;
  }
  if (variant_of(problem->variant) == nullptr)
    return error(std::string("no variant ") + problem->variant);
  auto made = std::make_unique<PeerPlan>();
  if (const char* why = prepare(*problem, *made); why != nullptr) return why;
  *plan = made.release();
  return nullptr;
}

int peer_candidates(const PeerPlan* plan) { return static_cast<int>(plan->names.size()); }

const char* peer_candidate(const PeerPlan* plan, int candidate) {
  return plan->names[static_cast<size_t>(candidate)].c_str();
}

size_t peer_workspace(const PeerPlan*) { return kWorkspace + peer::CublasGroups::kArrays; }

const char* peer_launch(PeerPlan* plan, int candidate, void* const* pointers, void* workspace,
                        void* stream) {
  if (plan->groups != nullptr) {
    std::string why = plan->groups->launch(pointers, workspace, kWorkspace, stream);
    return why.empty() ? nullptr : error(std::move(why));
  }
  const float one = 1, zero = 0;
  if (plan->scaled) {
    for (const auto& [attribute, pointer] :
         {std::pair{CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, pointers[4]},
          {CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, pointers[3]}}) {
      const cublasStatus_t status = library.cublasLtMatmulDescSetAttribute(
          plan->desc.get(), attribute, &pointer, sizeof(pointer));
      if (status != CUBLAS_STATUS_SUCCESS) return failed("cublasLtMatmulDescSetAttribute", status);
    }
  }
  const cublasStatus_t status = library.cublasLtMatmul(
      library.handle, plan->desc.get(), &one, pointers[1], plan->b.layout.get(), pointers[0],
      plan->a.layout.get(), &zero, pointers[2], plan->d.layout.get(), pointers[2],
      plan->d.layout.get(), &plan->results[static_cast<size_t>(candidate)].algo, workspace,
      kWorkspace, static_cast<cudaStream_t>(stream));
  return status == CUBLAS_STATUS_SUCCESS ? nullptr : failed("cublasLtMatmul", status);
}

void peer_release(PeerPlan* plan) { delete plan; }

}  // extern "C"
