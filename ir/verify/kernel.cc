// What concerns the kernel as a whole: how it is launched, what it is given, what it does.

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/analysis/views.h"
#include "heddle/ir/launch/abi.h"
#include "heddle/ir/launch/shared_layout.h"
#include "heddle/ir/verify/verifier_internal.h"
#include "heddle/ir/wording.h"

namespace heddle::ir {
namespace {

constexpr int64_t kMaxBlockThreads = 1024, kMaxResidentThreads = 2048;
constexpr Dim3 kMaxBlock{1024, 1024, 64};
constexpr int64_t kMaxClusterBlocks = 16;

std::string dim3_text(Dim3 d) { return absl::StrCat(d.x, " x ", d.y, " x ", d.z); }

// Whether anybody can see, once the block is gone, that the op has run.
bool has_lasting_effect(const Kernel& kernel, const Op& op) {
  if (has(info(op), kTellsHost)) return true;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const Type type = kernel.type(root_of(kernel, op.operands[i]));
    const bool written = i < 8 && (info(op).effects.writes >> i & 1) != 0;
    if (written && type.is_view() && type.space != Space::kShared &&
        type.space != Space::kSharedCluster && type.space != Space::kLocal) {
      return true;
    }
  }
  return false;
}

void check_launch(Verification& v) {
  const Kernel& kernel = v.kernel();
  const Dim3 block = kernel.block;
  const bool dynamic = block == Dim3{0, 0, 0};
  if (!dynamic &&
      (std::min({block.x, block.y, block.z}) < 1 || block.x > kMaxBlock.x ||
       block.y > kMaxBlock.y || block.z > kMaxBlock.z || block.count() > kMaxBlockThreads)) {
    v.error(
        absl::StrCat("a block of ", dim3_text(block), " threads cannot be launched: it has 1 to ",
                     kMaxBlockThreads, " threads, and at most ", kMaxBlock.z, " in z"),
        std::min({block.x, block.y, block.z}) < 1 ? "give a block at least one thread in x, y and z"
                                                  : "use a smaller block and more of them");
  }
  const Dim3 cluster = kernel.cluster;
  if (std::min({cluster.x, cluster.y, cluster.z}) < 1 || cluster.x > kMaxClusterBlocks ||
      cluster.y > kMaxClusterBlocks || cluster.z > kMaxClusterBlocks ||
      cluster.count() > kMaxClusterBlocks) {
    v.error(absl::StrCat("a cluster of ", dim3_text(cluster),
                         " blocks cannot be launched: it has 1 to ", kMaxClusterBlocks),
            "use a smaller cluster");
  } else if (cluster.count() > 1 && !has(*kernel.target, Feature::kClusters)) {
    Lack lack = lack_of(*kernel.target, Feature::kClusters, "use a cluster of one block");
    v.error(std::move(lack.message), std::move(lack.fix));
  }
  if (kernel.min_blocks < 0 || kernel.min_blocks > kMaxResidentBlocks) {
    v.error(absl::StrCat("no multiprocessor holds ", kernel.min_blocks, " blocks at once"),
            absl::StrCat("ask for 1 to ", kMaxResidentBlocks));
  } else if (kernel.min_blocks * block.count() > kMaxResidentThreads) {
    v.error(absl::StrCat("no multiprocessor holds ", kernel.min_blocks, " blocks of ",
                         block.count(), " threads at once: it has room for ", kMaxResidentThreads),
            "ask for fewer blocks, or launch smaller ones");
  }
}

class KernelCheck {
 public:
  explicit KernelCheck(Verification& v) : v_(v), kernel_(v.kernel()) {}

  void run() {
    const bool ops_are_right = v_.clean();
    check_launch(v_);
    check_params();
    for (const Guard& guard : kernel_.facts()) check_fact(guard);
    if (ops_are_right) check_shared();
    // Passes may find that no store is ever reached: then there is nothing to do, rightly.
    if (v_.stage() == Stage::kTraced) check_effects();
    if (v_.stage() == Stage::kEmittable) check_name();
  }

 private:
  std::string kernel_text() const { return absl::StrCat("kernel '", kernel_.name(), "'"); }

  void check_params() {
    bool right = true;
    for (size_t i = 0; i < kernel_.params().size(); ++i) right &= check_param(i);
    if (kernel_.params().size() != kernel_.region(kernel_.body()).args.size()) {
      v_.error(absl::StrCat(kernel_text(), " has ", counted(kernel_.params().size(), "parameter"),
                            ", but its body is given ",
                            kernel_.region(kernel_.body()).args.size()));
      right = false;
    }
    if (!right) return;
    const int bytes = param_layout(kernel_).bytes;
    if (bytes <= kMaxParamBytes) return;
    v_.error(absl::StrCat("the parameters of ", kernel_text(), " take ", bytes,
                          " bytes, but a launch passes at most ", kMaxParamBytes),
             "pass a pointer to a table instead");
  }

  bool check_param(size_t index) {
    const Param& param = kernel_.params()[index];
    const Type type = kernel_.type(param.value);
    if (type.is_scalar()) return true;
    const auto which = [&] { return absl::StrCat("parameter ", v_.name(param.value)); };
    const bool view = type.is_view() && !type.slot &&
                      (type.space == Space::kGlobal || type.space == Space::kConst ||
                       type.space == Space::kParam);
    if (!view) {
      v_.error(absl::StrCat(which(), " is ", to_string(type),
                            ", but a launch passes scalars and views of global memory"));
      return false;
    }
    if (param.extents.size() != type.rank || param.strides.size() != type.rank) {
      v_.error(absl::StrCat(which(), " has ", counted(type.rank, "mode"), ", but ",
                            counted(param.extents.size(), "extent"), " and ",
                            counted(param.strides.size(), "stride")));
      return false;
    }
    for (const int64_t extent : param.extents) {
      if (extent >= 0 || extent == kDynamic) continue;
      v_.error(absl::StrCat(which(), " has an extent of ", extent));
      return false;
    }
    return true;
  }

  void check_fact(const Guard& guard) {
    const FactInfo& fact = info(guard.fact.kind);
    if (guard.fact.param >= kernel_.params().size()) {
      v_.error(absl::StrCat("the fact '", fact.name, "' is about parameter ", guard.fact.param,
                            ", but there are ", kernel_.params().size()));
      return;
    }
    const ValueId param = kernel_.params()[guard.fact.param].value;
    const Type type = kernel_.type(param);
    if (type.is_view() && guard.fact.dim < std::max<int>(1, type.rank)) {
      return check_fact_value(guard, param);
    }
    v_.error(absl::StrCat("the fact '", fact.name, "' is about mode ",
                          static_cast<int>(guard.fact.dim), " of ", v_.name(param), ", which is ",
                          to_string(type)));
  }

  void check_fact_value(const Guard& guard, ValueId param) {
    const FactInfo& fact = info(guard.fact.kind);
    constexpr struct {
      absl::string_view must_be;
      bool (*admits)(int64_t);
    } kValues[] = {
        {"a power of two", [](int64_t v) { return v > 0 && (v & (v - 1)) == 0; }},
        {"0 or 1", [](int64_t v) { return v == 0 || v == 1; }},
        {"an extent, or -1 where it is not known", [](int64_t v) { return v >= -1; }},
    };
    const auto& values = kValues[static_cast<size_t>(fact.values)];
    if (values.admits(guard.value)) return;
    v_.error(absl::StrCat("the fact '", fact.name, "' of ", v_.name(param), " is ", guard.value,
                          ", but must be ", values.must_be));
  }

  void check_shared() {
    const int64_t total = shared_layout(kernel_).bytes;
    if (total <= kernel_.target->shared_bytes) return;
    v_.error(absl::StrCat(kernel_text(), " has ", total, " bytes of shared arrays, but a block on ",
                          kernel_.target->name, " has at most ", kernel_.target->shared_bytes),
             "use smaller tiles or fewer stages");
  }

  void check_effects() {
    bool lasting = false;
    kernel_.walk([&](OpId id) { lasting |= has_lasting_effect(kernel_, kernel_.op(id)); });
    if (lasting) return;
    v_.error(
        absl::StrCat(kernel_text(), " has no side effects: nothing that it computes is stored"),
        "store the result into a tensor parameter");
  }

  // What PTX calls an identifier, so that the entry keeps the kernel's name.
  void check_name() {
    const std::string& name = kernel_.name();
    const bool word = std::all_of(name.begin(), name.end(), [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$';
    });
    const bool begins = !name.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(name[0]));
    if (word && begins) return;
    v_.error(absl::StrCat(kernel_text(), " cannot keep its name in PTX"),
             "name it with letters, digits and underscores, not starting with a digit");
  }

  Verification& v_;
  const Kernel& kernel_;
};

}  // namespace

void verify_kernel(Verification& v) { KernelCheck(v).run(); }

Diagnostics verify_launch(const Kernel& kernel) {
  Verification v(kernel, Stage::kTraced);
  check_launch(v);
  return v.take();
}

}  // namespace heddle::ir
