// The compiled variants of one kernel, attached to its KernelSource: found without a lock, added
// under one.
//
// A variant fits a launch when device, block and cluster are the same and its guards come out as
// they did when it was traced. Only facts that tracing or a pass read are guards, so most kernels
// have one variant or two. Devices of one target share compilations, which each of them loads: eight
// equal GPUs cost one trace and one run of ptxas.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "heddle/ir/kernel_source.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/executable.h"

namespace heddle::runtime {

class KernelCache final : public ir::KernelSource::Attachment {
 public:
  // The kernel's cache, made when it is first asked for.
  static KernelCache& of(const ir::KernelSource& source);
  ~KernelCache() override;

  // nullptr where no variant fits.
  const Executable* find(const Backend* backend, const LaunchShape& shape,
                         Arguments arguments) const;
  // The variant for these arguments, loaded and where need be compiled. Kernels of one source are
  // compiled one at a time; a mistake is reported to every caller anew.
  StatusOr<const Executable*> find_or_compile(const ir::KernelSource& source,
                                              const std::shared_ptr<Backend>& backend,
                                              const LaunchShape& shape, Arguments arguments);
  // The kernel's number: no other one of the process has it or ever gets it, as an address may.
  uint64_t kernel_id() const { return kernel_id_; }
  // Variants, and how many compilations they share.
  int size() const;
  int compilations() const;

 private:
  struct Variant {
    std::unique_ptr<Executable> executable;
    Dim3 block;
    Dim3 cluster;
    const ir::Target* target;
    Variant* next;
  };
  struct Wanted;

  // The compilation of a variant that fits but for its device; nullptr: none.
  std::shared_ptr<const Compilation> find_compilation(const Wanted& wanted) const;
  // Why no variant of the device is what is wanted, for the log: of the one that is nearest, what is different.
  std::string why_none_fits(const Wanted& wanted) const;

  static uint64_t next_kernel_id();

  const uint64_t kernel_id_ = next_kernel_id();
  std::atomic<Variant*> newest_{nullptr};
  std::mutex adding_;
};

}  // namespace heddle::runtime
