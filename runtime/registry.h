// Kernels by name: how the heddle command, or any program with the same flags, finds kernels that
// it was not written for.
//
// A line beside the kernel registers it:
//
//   const auto saxpy = define_kernel("saxpy(x, y, a)", …);
//   const Registered registered_saxpy({.name = "saxpy",
//                                      .summary = "y = a * x + y",
//                                      .variant = [](const Settings&) -> absl::StatusOr<Variant> {
//                                        return Variant{&saxpy.source(),
//                                                       {tensor({kAny}), tensor({kAny}), scalar()},
//                                                       {.block = {256, 1, 1}}};
//                                      }});
//
// `heddle dump` needs `variant`; `heddle run` also `plan`, and with --check `reference`.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "heddle/ir/kernel_source.h"
#include "heddle/runtime/compile.h"
#include "heddle/runtime/launch_config.h"
#include "heddle/runtime/signature.h"

namespace heddle::runtime {

// A choice that a kernel offers: `--set dtype=bf16`.
struct Setting {
  std::string name = {};
  std::string help = {};
  std::string default_value = {};
  std::vector<std::string> choices = {};  // empty: any text, judged by the kernel
};

// The values of an entry's settings: every one that it offers, and no other.
using Settings = std::map<std::string, std::string, std::less<>>;

// A kernel and what it is compiled for.
struct Variant {
  const ir::KernelSource* source = nullptr;
  Signature signature = {};
  CompileOptions options = {};
};

struct TensorShape {
  ir::Scalar dtype = ir::Scalar::kNone;
  std::vector<int64_t> extents = {};  // row-major
};

// One launch: the kernel, what each of its parameters is given, and the shape. A parameter that is
// no input is an output: allocated with this shape and written by the kernel.
struct LaunchPlan {
  struct Parameter {
    std::string name = {};
    bool output = false;
    bool is_scalar = false;
    TensorShape shape = {};    // tensors
    uint64_t scalar_bits = 0;  // scalars
  };
  const ir::KernelSource* source = nullptr;
  std::vector<Parameter> parameters = {};  // in the kernel's order
  LaunchConfig config = {};
};

// Host tensors by parameter name, every element as a double.
struct HostValues {
  TensorShape shape = {};
  std::vector<double> values = {};
};
// What an output should be, and how far each element may be from it.
struct Expected {
  std::vector<double> values = {};
  std::vector<double> tolerance = {};
};

struct KernelEntry {
  std::string name = {};
  std::string summary = {};
  std::vector<Setting> settings = {};
  // Which kernel these settings choose, with the signature that is usual for it.
  std::function<absl::StatusOr<Variant>(const Settings&)> variant = {};
  // How to launch it on inputs of these shapes, by parameter name. Empty: the tool cannot run it.
  std::function<absl::StatusOr<LaunchPlan>(const Settings&,
                                           const std::map<std::string, TensorShape>& inputs)>
      plan = {};
  // Outputs by parameter name, computed in double precision. Empty: nothing to check against.
  std::function<absl::StatusOr<std::map<std::string, Expected>>(
      const Settings&, const std::map<std::string, HostValues>& inputs)>
      reference = {};
};

// Adds an entry while it lives; made as a constant beside the kernel. A second entry of one name
// replaces the first, as a plug-in's does.
class Registered {
 public:
  explicit Registered(KernelEntry entry);
  ~Registered();
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

 private:
  const KernelEntry* entry_;
};

// All entries by name, and the one of a name (nullptr: none). They stay while their program or
// plug-in is loaded.
std::vector<const KernelEntry*> registered_kernels();
const KernelEntry* find_kernel(absl::string_view name);

// An entry's settings with `given` filled in. kInvalidArgument names an unknown setting or value,
// and what there is.
absl::StatusOr<Settings> resolve_settings(const KernelEntry& entry,
                                          const std::map<std::string, std::string>& given);

}  // namespace heddle::runtime

namespace heddle {
using runtime::KernelEntry;
using runtime::LaunchPlan;
using runtime::Registered;
using runtime::Settings;
using runtime::TensorShape;
using runtime::Variant;
}  // namespace heddle
