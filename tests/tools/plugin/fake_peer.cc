// A peer of the benchmarks (tools/bench/peers/peer.h) that adds nothing: it says what it was asked for. Built with
// another ABI too.
#include <cstring>
#include <string>

#include "heddle/tools/bench/peers/peer.h"

struct PeerPlan {
  int64_t rows;
};

namespace {
std::string text;
const char* said(std::string what) {
  text = std::move(what);
  return text.c_str();
}
}  // namespace

extern "C" {

int peer_abi(void) { return FAKE_PEER_ABI; }
const char* peer_open(const char* options) {
  return std::strcmp(options, "fail=1") == 0 ? said("no such device") : nullptr;
}
const char* peer_name(void) { return "fake"; }
const char* peer_version(void) { return "1.2"; }
const char* peer_prepare(const PeerProblem* problem, PeerPlan** plan) {
  if (std::strcmp(problem->operation, "gemm") != 0) {
    return said(std::string("no operation ") + problem->operation);
  }
  *plan = new PeerPlan{problem->tensor[0].extent[0]};
  return nullptr;
}
int peer_candidates(const PeerPlan*) { return 2; }
const char* peer_candidate(const PeerPlan*, int candidate) {
  return candidate == 0 ? "wide" : "narrow";
}
size_t peer_workspace(const PeerPlan* plan) { return static_cast<size_t>(plan->rows); }
const char* peer_launch(PeerPlan*, int candidate, void* const* pointers, void*, void*) {
  if (candidate == 1) return said("too narrow");
  *static_cast<int*>(pointers[0]) = 7;
  return nullptr;
}
void peer_release(PeerPlan* plan) { delete plan; }

}  // extern "C"
