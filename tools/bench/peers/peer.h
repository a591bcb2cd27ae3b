/* What a peer of Heddle offers to the benchmarks: a shared library in C, loaded at run time, that runs a named
 * operation of a vendor or of another project in the benchmark's process.
 *
 *   const char* error = peer_open("");                  // once
 *   PeerProblem problem = {"gemm", "", 3, {a, b, d}};
 *   PeerPlan* plan;
 *   error = peer_prepare(&problem, &plan);              // NULL, or why this peer lacks the problem
 *   for (int i = 0; i < peer_candidates(plan); ++i)
 *     error = peer_launch(plan, i, pointers, workspace, stream);
 *   peer_release(plan);
 *
 * Operations:
 *   gemm         a (m, k), b (n, k), d (m, n): d = a * b^T, summed in f32; a batch may stand in front. An element
 *                type of tf32 is stored as f32. Variants: "mma.sync" asks for a kernel of instructions that sm_80 has;
 *                "row-scaled" has factors a_scale (m), b_scale (n) behind d; "block-scaled" a_scale (m, k / 128) and
 *                b_scale (n / 128, k / 128), rounded up, where a product of blocks along k counts by both;
 *                "bias_gelu_residual" has bias (n) and residual (m, n): d = gelu(a * b^T + bias) + residual.
 *   gemm_grouped a (m, k), b (groups, n, k), d (m, n), ends (groups): d's rows from ends[g - 1] to ends[g] are those of a
 *                by b[g]^T. The ends, i32, are the same in all launches of a problem and in device memory.
 *   gemm_masked  a (groups, m, k), b (groups, n, k), d (groups, m, n), rows (groups): the first rows[g] rows of d[g].
 *
 * Errors are texts that stay valid until the thread's next call. A library has the functions below, and no other
 * symbol of it is used. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HEDDLE_PEER_ABI 1
#define HEDDLE_PEER_RANK 5
#define HEDDLE_PEER_TENSORS 8

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor: its element type as Heddle spells it (f16, bf16, tf32, f32, e4m3, …), extents, and strides in elements. */
typedef struct {
  const char* dtype;
  int rank;
  int64_t extent[HEDDLE_PEER_RANK];
  int64_t stride[HEDDLE_PEER_RANK];
} PeerTensor;

/* An operation on tensors, which stand in the order that the operation names. */
typedef struct {
  const char* operation;
  const char* variant; /* "": whatever is fastest */
  int tensors;
  PeerTensor tensor[HEDDLE_PEER_TENSORS];
} PeerProblem;

/* A problem that was prepared. */
typedef struct PeerPlan PeerPlan;

/* HEDDLE_PEER_ABI of the library. */
int peer_abi(void);

/* Makes the peer ready on the current device. `options`: "key=value" in lines, of the library's own; "" does. */
const char* peer_open(const char* options);

/* What the results call it: "cublas", and its version: "13.1.0". After peer_open(). */
const char* peer_name(void);
const char* peer_version(void);

/* Prepares a problem. The candidates are ways to solve it, the one that the peer expects to be fastest first; the
 * benchmark times them. */
const char* peer_prepare(const PeerProblem* problem, PeerPlan** plan);
int peer_candidates(const PeerPlan* plan);
const char* peer_candidate(const PeerPlan* plan, int candidate);

/* Bytes of device memory that a launch may want, aligned to 256. */
size_t peer_workspace(const PeerPlan* plan);

/* Enqueues a candidate on a CUstream; pointers to device memory in the order of the tensors. */
const char* peer_launch(PeerPlan* plan, int candidate, void* const* pointers, void* workspace,
                        void* stream);

void peer_release(PeerPlan* plan);

#ifdef __cplusplus
}
#endif
