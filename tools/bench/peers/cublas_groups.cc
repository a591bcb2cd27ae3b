#include "heddle/tools/bench/peers/cublas_groups.h"

#include <cstdint>
#include <cstring>

#include "heddle/tools/bench/peers/cublas_library.h"

namespace peer {

// The functions in use; each is looked up by its name.
#define CUBLAS_FUNCTIONS(X) \
  X(cublasCreate_v2)        \
  X(cublasDestroy_v2)       \
  X(cublasSetStream_v2)     \
  X(cublasSetWorkspace_v2)  \
  X(cublasGetVector)        \
  X(cublasSetVector)        \
  X(cublasGemmGroupedBatchedEx)

struct CublasGroups::Functions {
#define DECLARE(name) decltype(&::name) name = nullptr;
  CUBLAS_FUNCTIONS(DECLARE)
#undef DECLARE

  std::string load(const std::string& options) {
    std::string why;
    void* const loaded = load_library("libcublas", options.c_str(), &why);
    if (loaded == nullptr) return why;
#define LOAD(function)                                                          \
  function = reinterpret_cast<decltype(&::function)>(dlsym(loaded, #function)); \
  if (function == nullptr) return "libcublas has no function " #function;
    CUBLAS_FUNCTIONS(LOAD)
#undef LOAD
    return "";
  }
};

std::unique_ptr<CublasGroups> CublasGroups::make(const PeerProblem& problem,
                                                 const std::string& options, std::string* why) {
  const std::string operation = problem.operation, type = problem.tensor[0].dtype;
  if (operation != "gemm_grouped" && operation != "gemm_masked") {
    *why = "no operation " + operation;
  } else if ((type != "f16" && type != "bf16") || type != problem.tensor[2].dtype) {
    *why = "groups of an element type that cuBLAS lacks";
  }
  static Functions functions;
  static const std::string missing = functions.load(options);
  if (why->empty()) *why = missing;
  if (!why->empty()) return nullptr;
  auto made = std::unique_ptr<CublasGroups>(
      new CublasGroups(problem, functions, type == "f16" ? CUDA_R_16F : CUDA_R_16BF));
  if (functions.cublasCreate_v2(&made->handle_) == CUBLAS_STATUS_SUCCESS) return made;
  *why = "cublasCreate failed";
  return nullptr;
}

CublasGroups::~CublasGroups() {
  if (handle_ != nullptr) functions_.cublasDestroy_v2(handle_);
}

// d = a * b^T. The library counts columns first, so that row-major d is its transpose, b * a^T.
std::string CublasGroups::fill(void* const* pointers, unsigned char* arrays, Call* call) const {
  const PeerTensor &a = problem_.tensor[0], &b = problem_.tensor[1], &d = problem_.tensor[2];
  const auto groups = static_cast<size_t>(b.extent[0]);
  std::vector<int32_t> counts(groups);
  if (functions_.cublasGetVector(static_cast<int>(groups), sizeof(int32_t), pointers[3], 1,
                                 counts.data(), 1) != CUBLAS_STATUS_SUCCESS)
    return "cublasGetVector failed";
  constexpr int64_t kBytes = 2;  // of an element
  std::vector<void*> all[3];
  int64_t end = 0;
  for (size_t g = 0; g < groups; ++g) {
    const bool masked = a.rank == 3;
    const int64_t first = masked ? 0 : end, group = masked ? static_cast<int64_t>(g) : 0;
    end = counts[g];
    if (end == first) continue;
    const auto at = [&](int i, const PeerTensor& t, int64_t matrix, int64_t row) {
      const int64_t place = (t.rank == 3 ? matrix * t.stride[0] : 0) + row * t.stride[t.rank - 2];
      all[i].push_back(static_cast<unsigned char*>(pointers[i]) + kBytes * place);
    };
    at(0, a, group, first);
    at(1, b, static_cast<int64_t>(g), 0);
    at(2, d, group, first);
    call->a_op.push_back(CUBLAS_OP_T);
    call->b_op.push_back(CUBLAS_OP_N);
    call->m.push_back(static_cast<int>(b.extent[1]));
    call->n.push_back(static_cast<int>(end - first));
    call->k.push_back(static_cast<int>(b.extent[2]));
    call->lda.push_back(static_cast<int>(b.stride[1]));
    call->ldb.push_back(static_cast<int>(a.stride[a.rank - 2]));
    call->ldc.push_back(static_cast<int>(d.stride[d.rank - 2]));
    call->size.push_back(1);
    call->alpha.push_back(1);
    call->beta.push_back(0);
  }
  const size_t used = all[0].size();
  for (int i = 0; i < 3; ++i) {
    void* const to = arrays + static_cast<size_t>(i) * used * sizeof(void*);
    if (functions_.cublasSetVector(static_cast<int>(used), sizeof(void*), all[i].data(), 1, to,
                                   1) != CUBLAS_STATUS_SUCCESS)
      return "cublasSetVector failed";
  }
  const auto array = [&](size_t i) { return arrays + i * used * sizeof(void*); };
  call->b = reinterpret_cast<const void* const*>(array(0));
  call->a = reinterpret_cast<const void* const*>(array(1));
  call->c = reinterpret_cast<void* const*>(array(2));
  return "";
}

std::string CublasGroups::launch(void* const* pointers, void* workspace, size_t bytes,
                                 void* stream) {
  const auto [at, is_new] = calls_.try_emplace({pointers[0], pointers[1], pointers[2]});
  Call& call = at->second;
  if (is_new) {
    const size_t of_call = 3 * sizeof(void*) * static_cast<size_t>(problem_.tensor[1].extent[0]);
    if (calls_.size() * of_call > kArrays) return "too many sets of pointers";
    std::string why =
        fill(pointers,
             static_cast<unsigned char*>(workspace) + bytes + (calls_.size() - 1) * of_call, &call);
    if (!why.empty()) {
      calls_.erase(at);
      return why;
    }
  }
  cublasStatus_t status = functions_.cublasSetStream_v2(handle_, static_cast<cudaStream_t>(stream));
  if (status == CUBLAS_STATUS_SUCCESS)
    status = functions_.cublasSetWorkspace_v2(handle_, workspace, bytes);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = functions_.cublasGemmGroupedBatchedEx(
        handle_, call.a_op.data(), call.b_op.data(), call.m.data(), call.n.data(), call.k.data(),
        call.alpha.data(), call.a, type_, call.lda.data(), call.b, type_, call.ldb.data(),
        call.beta.data(), call.c, type_, call.ldc.data(), static_cast<int>(call.m.size()),
        call.size.data(), CUBLAS_COMPUTE_32F);
  }
  return status == CUBLAS_STATUS_SUCCESS
             ? ""
             : "cublasGemmGroupedBatchedEx failed with status " + std::to_string(status);
}

}  // namespace peer
