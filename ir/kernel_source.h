// The seam between a front end that traces kernels and the runtime that compiles and launches them.
//
// A front end (dsl/kernel.h, or a file of textual IR) gives a KernelSource; whoever compiles asks
// it for the program under a Specialization. Neither side sees the other.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "heddle/ir/diagnostic.h"
#include "heddle/ir/kernel.h"

namespace heddle::ir {

// What an author declares of an extent: `a[m, 128]`.
struct DeclaredExtent {
  std::string name = {};      // extents of one name are equal; empty: it has none
  int64_t number = kDynamic;  // the extent, where it is always the same
  bool operator==(const DeclaredExtent&) const = default;
};

// A parameter as its author declared it.
struct ParamInfo {
  std::string name;
  Type type;
  bool unbounded = false;                    // a raw pointer
  std::vector<DeclaredExtent> extents = {};  // one a mode; empty: nothing is declared
};

// What is known of the arguments and the launch when a kernel is traced.
struct Specialization {
  struct Argument {
    // Views: an extent or stride in elements, or kDynamic; empty means all are dynamic.
    absl::InlinedVector<int64_t, 4> extents;
    absl::InlinedVector<int64_t, 4> strides;
    // Extents of one name are equal, whatever their parameters; "" is none, and no names at all are none.
    std::vector<std::string> names = {};
  };
  Dim3 block{0, 0, 0};  // {0, 0, 0}: dynamic
  Dim3 cluster{1, 1, 1};
  const Target* target = &default_target();
  std::vector<Argument> arguments;  // one a parameter
  std::vector<Guard> facts;         // what holds of the arguments
};

struct TraceResult {
  Kernel kernel;
  // Mistakes of the author that only a front end sees; whoever asked for the trace verifies it.
  Diagnostics diagnostics = {};
  // Tracing was given up: the kernel ends somewhere, and is not to be verified.
  bool abandoned = false;
};

class KernelSource {
 public:
  KernelSource() = default;
  KernelSource(const KernelSource&) = delete;
  KernelSource& operator=(const KernelSource&) = delete;
  virtual ~KernelSource() { delete attachment_.load(); }

  virtual const std::string& name() const = 0;
  virtual SourceLine place() const = 0;  // where it is defined
  virtual absl::Span<const ParamInfo> params() const = 0;
  // Runs the author's code once. Thread-safe.
  virtual TraceResult trace(const Specialization& specialization) const = 0;

  // What the program follows from, beside the specialisation and what the author's code may read elsewhere: code, by an address that
  // no other kernel has, in the image of a program or library; and values that it was given. nullopt: not known.
  struct Origin {
    const void* code = nullptr;
    std::string values = {};
  };
  virtual std::optional<Origin> origin() const { return std::nullopt; }

  // What the runtime keeps with a kernel: its compiled variants. A kernel's identity is this
  // object.
  class Attachment {
   public:
    virtual ~Attachment() = default;
  };
  Attachment* attachment() const { return attachment_.load(std::memory_order_acquire); }
  // Attaches the first one offered; returns the one that is attached.
  Attachment* attach(std::unique_ptr<Attachment> offered) const {
    Attachment* expected = nullptr;
    if (attachment_.compare_exchange_strong(expected, offered.get())) return offered.release();
    return expected;
  }

 private:
  mutable std::atomic<Attachment*> attachment_{nullptr};
};

}  // namespace heddle::ir
