// Launching and compiling kernels: what `launch` and `compile` of dsl/kernel.h mean.
//
//   Status s = row_sum.launch(stream, {.grid = rows, .block = 512}, x, y);
//
//   auto compiled = row_sum.compile(Signature{tensor({kAny, 1024}), tensor({kAny})},
//                                   CompileOptions{.block = {512, 1, 1}, .target = "sm_90a"});
//   std::cout << compiled->ptx() << compiled->report()->registers;
//   Status s = compiled->launch(stream, {.grid = rows, .block = 512}, x, y);
//
// launch() traces, optimises and assembles the kernel the first time that it meets an architecture,
// a block and arguments of a kind (alignment, 32-bit offsets and such, where the kernel asks), and
// loads it once for each device; after that it costs the driver's launch. compile() needs neither
// data nor a GPU; its result runs on any device of its target. Arguments are tested before anything
// runs: numbers that their parameters do not hold, buffers of another device or too small for their
// tensors, and what the kernel itself requires (dsl/contract.h). Whether a GPU's kernels reach memory that is nobody's Buffer
// is asked of launches that need code compiled or loaded.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "heddle/codegen/toolchain/ptxas_report.h"
#include "heddle/dsl/kernel.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/argument.h"
#include "heddle/runtime/buffer.h"
#include "heddle/runtime/compile_options.h"
#include "heddle/runtime/launch_key.h"
#include "heddle/runtime/launch_limits.h"
#include "heddle/runtime/signature.h"
#include "heddle/runtime/stream.h"

namespace heddle::ir {
class Kernel;
class KernelSource;
}  // namespace heddle::ir

namespace heddle::runtime {

struct Compilation;

// A kernel compiled for a signature: each stage to look at, and to launch with arguments that fit.
// Cheap to copy; thread-safe.
class CompiledKernel {
 public:
  // For compile().
  explicit CompiledKernel(std::shared_ptr<const Compilation> compilation);

  // The program as traced and as optimised (ir/kernel.h, ir/text/printer.h).
  const ir::Kernel& trace() const;
  const ir::Kernel& ir() const;
  // The PTX text.
  const std::string& ptx() const;
  // Machine code; empty where CompileOptions::stage stopped before it.
  const std::string& cubin() const;
  // What ptxas said: registers, spills, shared memory. nullptr without machine code.
  const codegen::EntryReport* report() const;
  // Everything, with times and guards (runtime/compile.h).
  const Compilation& compilation() const;

  // Enqueues it. kInvalidArgument where an argument is not what it was compiled for: nothing has
  // run then.
  Status launch(const Stream& stream, const LaunchShape& shape, Arguments arguments) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Compiles a kernel for a signature, without data and without a GPU. Errors: those of the kernel,
// an unknown target, ptxas's.
StatusOr<CompiledKernel> compile(const ir::KernelSource& source, const Signature& signature,
                                 const CompileOptions& options = {});
// Launches a kernel with arguments as data; compiles it first where no variant fits them.
Status launch(const Stream& stream, const ir::KernelSource& source, const LaunchShape& shape,
              Arguments arguments);
// Likewise, of arguments that are known to be of the parameters' kinds and, where `sound`, to be sound; `key` are these arguments.
Status launch_typed(const Stream& stream, const ir::KernelSource& source, const LaunchShape& shape,
                    Arguments arguments, bool sound, const LaunchKey& key);
// Launches a kernel as one of this thread's last launches did, whose arguments were the same (launch_memo.h). False where none did:
// nothing has run then.
bool launch_again(const Stream& stream, const ir::KernelSource& source, const LaunchShape& shape,
                  const LaunchKey& key, Status& status);

// The arguments of a typed launch as words.
template <class... P>
class ArgumentWords {
 public:
  // For a launch on this device.
  ArgumentWords(const Backend* device,
                const typename heddle::detail::ParamTraits<P>::Host&... args) {
    (add<heddle::detail::ParamTraits<P>>(args, device), ...);
  }
  // As data; valid as long as this object.
  LaunchKey key() const { return {{words_, static_cast<size_t>(count_)}, hash_}; }
  // Whether numbers fit their parameters, and buffers are alive and the device's. All else that a launch asks of arguments
  // follows from the words.
  bool valid() const { return valid_; }

 private:
  template <class Traits>
  [[gnu::always_inline]] inline void add(const typename Traits::Host& host, const Backend* device) {
    heddle::detail::ArgumentLeaf leaves[Traits::kLeaves];
    Traits::fill(host, leaves);
    for (const heddle::detail::ArgumentLeaf& leaf : leaves) add_leaf(leaf, device);
  }
  // Inlined, the rank and the kind of each argument are constants.
  [[gnu::always_inline]] inline void add_leaf(const heddle::detail::ArgumentLeaf& leaf,
                                              const Backend* device) {
    words_[count_++] = leaf.bits;
    // Addresses: launches that differ in a number are remembered in one place, which stays in the host's cache.
    if (leaf.rank >= 0) hash_ = (hash_ ^ leaf.bits) * kMultiplier;
    valid_ &= leaf.misfit == heddle::detail::Misfit::kFits;
    if (leaf.extents == nullptr) return;
    for (int dim = 0; dim < leaf.rank; ++dim) {
      words_[count_++] = static_cast<uint64_t>(leaf.extents[dim]);
      words_[count_++] = static_cast<uint64_t>(leaf.strides[dim]);
    }
    words_[count_++] = static_cast<uint64_t>(leaf.capacity_bytes);
    valid_ &= leaf.memory == nullptr || leaf.memory->holds(leaf.allocation, device);
  }

  static constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;
  static constexpr int kMostWords = (0 + ... + heddle::detail::ParamTraits<P>::kWords);

  int count_ = 0;
  bool valid_ = true;
  uint64_t hash_ = 0;
  uint64_t words_[kMostWords == 0 ? 1 : kMostWords];
};

// The arguments of a typed launch, leaf by leaf.
template <class... P>
class PackedArguments {
 public:
  // Measures the arguments for a launch on this stream.
  PackedArguments(const Stream& stream,
                  const typename heddle::detail::ParamTraits<P>::Host&... args) {
    const Backend* const device = stream.backend().get();
    Argument* next = arguments_;
    ((next = pack<heddle::detail::ParamTraits<P>>(args, next, device)), ...);
  }
  // As data; valid as long as this object.
  operator Arguments() const { return {arguments_, kLeaves}; }
  // Whether a launch can take all of them.
  bool sound() const {
    bool all = true;
    for (int i = 0; i < kLeaves; ++i) all &= arguments_[i].sound;
    return all;
  }

 private:
  static constexpr int kLeaves = heddle::Kernel<P...>::kLeaves;

  template <class Traits>
  [[gnu::always_inline]] static inline Argument* pack(const typename Traits::Host& host,
                                                      Argument* to, const Backend* device) {
    heddle::detail::ArgumentLeaf leaves[Traits::kLeaves];
    Traits::fill(host, leaves);
    for (const heddle::detail::ArgumentLeaf& leaf : leaves) *to++ = measure(leaf, device);
    return to;
  }
  // Inlined, the rank and the kind of each argument are constants.
  [[gnu::always_inline]] static inline Argument measure(const heddle::detail::ArgumentLeaf& leaf,
                                                        const Backend* device) {
    if (leaf.rank < 0) return scalar_argument(leaf.bits, static_cast<Misfit>(leaf.misfit));
    if (leaf.extents == nullptr) return pointer_argument(leaf.bits);
    Argument tensor = tensor_argument(leaf.bits, leaf.extents, leaf.strides, leaf.rank,
                                      leaf.element_bytes, leaf.capacity_bytes);
    tensor.memory = leaf.memory;
    tensor.allocation = leaf.allocation;
    tensor.sound &= leaf.memory == nullptr || leaf.memory->holds(leaf.allocation, device);
    return tensor;
  }

  Argument arguments_[kLeaves == 0 ? 1 : kLeaves];
};

// CompiledKernel with the kernel's own parameter types.
template <class... P>
class TypedCompiledKernel : public CompiledKernel {
 public:
  // From a compiled kernel of these parameters.
  explicit TypedCompiledKernel(CompiledKernel kernel) : CompiledKernel(std::move(kernel)) {}

  using CompiledKernel::launch;
  // Enqueues it. kInvalidArgument where an argument is not what it was compiled for.
  Status launch(const Stream& stream, const LaunchShape& shape,
                const typename heddle::detail::ParamTraits<P>::Host&... args) const {
    return CompiledKernel::launch(stream, shape, PackedArguments<P...>(stream, args...));
  }
};

}  // namespace heddle::runtime

namespace heddle {

// What Kernel::launch() calls.
template <class... P>
Status launch_kernel(const runtime::Stream& stream, const Kernel<P...>& kernel,
                     const LaunchShape& shape,
                     const typename detail::ParamTraits<P>::Host&... args) {
  if (!kernel.valid()) return runtime::moved_from("a Kernel");
  const runtime::ArgumentWords<P...> words(stream.backend().get(), args...);
  Status status;
  if (words.valid() && runtime::launch_again(stream, kernel.source(), shape, words.key(), status)) {
    return status;
  }
  const runtime::PackedArguments<P...> packed(stream, args...);
  return runtime::launch_typed(stream, kernel.source(), shape, packed, packed.sound(), words.key());
}

// What Kernel::compile() calls.
template <class... P>
StatusOr<runtime::TypedCompiledKernel<P...>> compile_kernel(
    const Kernel<P...>& kernel, const Signature& signature,
    const runtime::CompileOptions& options = {}) {
  if (!kernel.valid()) return runtime::moved_from("a Kernel");
  StatusOr<runtime::CompiledKernel> compiled =
      runtime::compile(kernel.source(), signature, options);
  if (!compiled.ok()) return compiled.status();
  return runtime::TypedCompiledKernel<P...>(*std::move(compiled));
}

namespace runtime {

// A tensor that lies in a buffer's memory.
template <class T, int Rank>
TensorRef<T, Rank> in_buffer(TensorRef<T, Rank> tensor, const Buffer& buffer) {
  tensor.capacity_bytes = static_cast<int64_t>(buffer.size_bytes());
  tensor.memory = buffer.tag();
  if (tensor.memory != nullptr) tensor.allocation = tensor.memory->allocation.load();
  return tensor;
}

}  // namespace runtime

// A buffer as a row-major tensor argument: `as_tensor<float>(buffer, {rows, columns})`. A launch is
// refused where the extents need more than the buffer holds, and where the buffer is another
// device's or was freed.
template <class T, int Rank>
TensorRef<T, Rank> as_tensor(const runtime::Buffer& buffer, const int64_t (&extents)[Rank]) {
  return runtime::in_buffer(TensorRef<T, Rank>(reinterpret_cast<T*>(buffer.address()), extents),
                            buffer);
}
// The same with strides, in elements: `as_tensor<float>(buffer, {columns, rows}, {1, columns})` is the transposed one.
template <class T, int Rank>
TensorRef<T, Rank> as_tensor(const runtime::Buffer& buffer, const int64_t (&extents)[Rank],
                             const int64_t (&strides)[Rank]) {
  return runtime::in_buffer(
      TensorRef<T, Rank>(reinterpret_cast<T*>(buffer.address()), extents, strides), buffer);
}

using runtime::CompiledKernel;

}  // namespace heddle
