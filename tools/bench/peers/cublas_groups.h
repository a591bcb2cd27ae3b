// Groups of rows by cuBLAS: one call that takes extents of the groups from the host and pointers from device memory.
#pragma once

#include <cublas_v2.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heddle/tools/bench/peers/peer.h"

namespace peer {

class CublasGroups {
 public:
  // Bytes behind a workspace for arrays of pointers.
  static constexpr size_t kArrays = size_t{1} << 20;

  // nullptr, with *why, where there is no such library, or it lacks the call or the element type. `options` are those
  // of peer_open().
  static std::unique_ptr<CublasGroups> make(const PeerProblem& problem, const std::string& options,
                                            std::string* why);
  ~CublasGroups();

  // "" or an error. The workspace has `bytes`, and kArrays behind them. What the groups' rows say is read at the first
  // launch on some pointers.
  std::string launch(void* const* pointers, void* workspace, size_t bytes, void* stream);

 private:
  struct Functions;
  // The arguments of the call for some pointers, of the groups that have rows.
  struct Call {
    std::vector<cublasOperation_t> a_op, b_op;
    std::vector<int> m, n, k, lda, ldb, ldc, size;
    std::vector<float> alpha, beta;
    const void* const* a = nullptr;  // in device memory
    const void* const* b = nullptr;
    void* const* c = nullptr;
  };
  CublasGroups(const PeerProblem& problem, const Functions& functions, cudaDataType_t type)
      : problem_(problem), functions_(functions), type_(type) {}
  std::string fill(void* const* pointers, unsigned char* arrays, Call* call) const;

  PeerProblem problem_;
  const Functions& functions_;
  cudaDataType_t type_;
  cublasHandle_t handle_ = nullptr;
  std::map<std::array<void*, 3>, Call> calls_;
};

}  // namespace peer
