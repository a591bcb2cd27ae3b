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
  static constexpr int kWorkspace = -1;
  int tensor = kWorkspace;  // its place in RecordedCall::tensors
  int64_t offset = 0;
};

// One kernel's launch. All numbers of its parameter block are known but addresses and tensor maps.
struct RecordedLaunch {
  struct Address {
    int offset = 0;  // in the block
    RecordedPlace place = {};
  };
  struct Map {
    int offset = 0;          // in the block
    ir::TensorMap map = {};  // but for its address
    RecordedPlace place = {};
  };
  std::shared_ptr<const Compilation> kernel = nullptr;
  LaunchShape shape = {};  // with all shared memory that it has to ask for
  std::vector<std::byte> block = {};
  std::vector<Address> addresses = {};
  std::vector<Map> maps = {};
};
// `count` bytes or 32-bit words.
struct RecordedFill {
  RecordedPlace to = {};
  uint32_t value = 0;
  int unit_bytes = 1;
  int64_t count = 0;
};
// From one place of the device to another.
struct RecordedCopy {
  RecordedPlace to = {}, from = {};
  int64_t bytes = 0;
};
using RecordedStep = std::variant<RecordedLaunch, RecordedFill, RecordedCopy>;

// A tensor of the call.
struct RecordedTensor {
  std::string name;
  TensorShape shape;
  bool written = false;
  int64_t bytes = 0;
  int alignment = 1;  // of its address, in bytes
};

// The steps of a call, in order, and what they need.
struct RecordedCall {
  std::vector<RecordedTensor> tensors;
  std::vector<RecordedStep> steps;
  int64_t workspace_bytes = 0;
  bool may_not_overlap = false;  // code relies on it that the tensors share no memory
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
