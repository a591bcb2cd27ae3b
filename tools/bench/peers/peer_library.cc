#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "heddle/tools/bench/contender.h"

namespace heddle::bench {
namespace {

struct Functions {
  decltype(&::peer_abi) abi;
  decltype(&::peer_open) open;
  decltype(&::peer_name) name;
  decltype(&::peer_version) version;
  decltype(&::peer_prepare) prepare;
  decltype(&::peer_candidates) candidates;
  decltype(&::peer_candidate) candidate;
  decltype(&::peer_workspace) workspace;
  decltype(&::peer_launch) launch;
  decltype(&::peer_release) release;
};

template <class F>
bool find(void* library, const char* name, F* function) {
  *function = reinterpret_cast<F>(dlsym(library, name));
  return *function != nullptr;
}

class PeerPrepared : public Prepared {
 public:
  PeerPrepared(const Functions& peer, PeerPlan* plan) : peer_(peer), plan_(plan) {}
  ~PeerPrepared() override { peer_.release(plan_); }

  std::vector<std::string> candidates() const override {
    std::vector<std::string> names;
    for (int i = 0; i < peer_.candidates(plan_); ++i) names.emplace_back(peer_.candidate(plan_, i));
    return names;
  }
  size_t workspace() const override { return peer_.workspace(plan_); }
  Status launch(int candidate, void* const* pointers, void* workspace,
                const Stream& stream) override {
    const char* why = peer_.launch(plan_, candidate, pointers, workspace,
                                   reinterpret_cast<void*>(stream.handle()));
    return why == nullptr ? OkStatus() : InternalError(why);
  }

 private:
  const Functions& peer_;
  PeerPlan* plan_;
};

class Peer : public Contender {
 public:
  explicit Peer(const Functions& functions) : peer_(functions) {}
  std::string name() const override { return peer_.name(); }
  std::string version() const override { return peer_.version(); }
  StatusOr<std::unique_ptr<Prepared>> prepare(const PeerProblem& problem) override {
    PeerPlan* plan = nullptr;
    if (const char* why = peer_.prepare(&problem, &plan); why != nullptr)
      return UnimplementedError(why);
    return std::make_unique<PeerPrepared>(peer_, plan);
  }

 private:
  Functions peer_;
};

}  // namespace

// The library stays loaded: its kernels do as well.
StatusOr<std::unique_ptr<Contender>> open_peer(const std::string& library,
                                               const std::string& options) {
  void* loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) return NotFoundError(dlerror());
  Functions peer{};
  if (!find(loaded, "peer_abi", &peer.abi) || !find(loaded, "peer_open", &peer.open) ||
      !find(loaded, "peer_name", &peer.name) || !find(loaded, "peer_version", &peer.version) ||
      !find(loaded, "peer_prepare", &peer.prepare) ||
      !find(loaded, "peer_candidates", &peer.candidates) ||
      !find(loaded, "peer_candidate", &peer.candidate) ||
      !find(loaded, "peer_workspace", &peer.workspace) ||
      !find(loaded, "peer_launch", &peer.launch) || !find(loaded, "peer_release", &peer.release)) {
    return InvalidArgumentError(absl::StrCat(library, " lacks a function of peers/peer.h"));
  }
  if (peer.abi() != HEDDLE_PEER_ABI) {
    return InvalidArgumentError(absl::StrCat(library, " was built for version ", peer.abi(),
                                             " of peers/peer.h, this program for ",
                                             HEDDLE_PEER_ABI));
  }
  if (const char* why = peer.open(options.c_str()); why != nullptr) {
    return FailedPreconditionError(absl::StrCat(library, ": ", why));
  }
  return std::make_unique<Peer>(peer);
}

}  // namespace heddle::bench
