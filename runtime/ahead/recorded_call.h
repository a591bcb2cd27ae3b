// A call of an operation as the steps that it enqueues, for sizes that are known: what can be run without the operation's host
// function. Made by a dry run, without data and without a GPU.
//
//   StatusOr<RecordedCall> call = record_call(bound, info_of(*ir::find_target("sm_90a")), {.target = "sm_90a"});
//   for (const RecordedStep& step : call->steps) …            // a launch, a fill or a copy
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "heddle/ir/launch/tensor_map.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/compile.h"
#include "heddle/runtime/device_info.h"
#include "heddle/runtime/launch_limits.h"
#include "heddle/runtime/operation/bound_call.h"

namespace heddle::runtime {

// Memory that a step uses: so many bytes behind the first of a tensor, or of the workspace.
struct RecordedPlace {
  // In the place of a tensor.
  static constexpr int kWorkspace = -1;
  int tensor = kWorkspace;  // its place in RecordedCall::tensors
  int64_t offset = 0;       // in bytes
};

// One kernel's launch. All numbers of its parameter block are known but addresses and tensor maps.
struct RecordedLaunch {
  // An address in the block.
  struct Address {
    int offset = 0;            // in the block
    RecordedPlace place = {};  // what it is of
  };
  // A tensor map in the block.
  struct Map {
    int offset = 0;            // in the block
    ir::TensorMap map = {};    // but for its address
    RecordedPlace place = {};  // and this
  };
  std::shared_ptr<const Compilation> kernel = nullptr;  // what runs
  LaunchShape shape = {};               // with all shared memory that it has to ask for
  std::vector<std::byte> block = {};    // of parameters
  std::vector<Address> addresses = {};  // to be written into it
  std::vector<Map> maps = {};           // likewise
};
// `count` bytes or 32-bit words.
struct RecordedFill {
  RecordedPlace to = {};  // the first of them
  uint32_t value = 0;     // of each
  int unit_bytes = 1;     // 1 or 4
  int64_t count = 0;      // how many
};
// From one place of the device to another.
struct RecordedCopy {
  RecordedPlace to = {}, from = {};  // the first bytes
  int64_t bytes = 0;                 // how many
};
using RecordedStep = std::variant<RecordedLaunch, RecordedFill, RecordedCopy>;

// A tensor of the call.
struct RecordedTensor {
  std::string name;      // as the operation declares it
  TensorShape shape;     // row-major
  bool read = true;      // what the call finds in it matters
  bool written = false;  // by the call
  int64_t bytes = 0;     // of all elements
  int alignment = 1;     // of its address, in bytes
  // How its extents follow from the sizes, mode by mode; empty: they are what `shape` says.
  std::vector<OperationArgument::Dimension> dimensions = {};
};

// The steps of a call, in order, and what they need. Tensors share no memory, but for those that are only read: host functions and
// kernels may have chosen by that.
struct RecordedCall {
  std::vector<RecordedTensor> tensors;  // in the order of the arguments
  std::vector<RecordedStep> steps;      // in the order in which they run
  int64_t workspace_bytes = 0;          // of scratch memory
  int multiprocessors = 0;              // of the device that grids are for
};

// Records a call on a device like `info`, and compiles its kernels for `options.target`; `options` may set all else but stage, block
// and cluster. kUnimplemented where the operation needs its host: it reads results, or copies from the host. Other errors are those of
// the operation and of compilation.
StatusOr<RecordedCall> record_call(const BoundCall& call, const DeviceInfo& info,
                                   const CompileOptions& options);

}  // namespace heddle::runtime

namespace heddle {
using runtime::record_call;
using runtime::RecordedCall;
}  // namespace heddle
