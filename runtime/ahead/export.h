// Writes recorded calls as C: sources that need a C compiler and NVIDIA's driver, and nothing of Heddle.
//
//   const ExportedSources sources = export_calls("my_softmax", {"rows", "columns"}, plans).value();
//   // my_softmax.c holds machine code and all; my_softmax.h declares
//   //   int my_softmax(void* stream, const float* x, float* y, int64_t rows, int64_t columns,
//   //                  void* workspace, size_t workspace_bytes);
//
// A plan is a call for one architecture and one choice of sizes. What is called chooses among them by the GPU and the sizes, loads
// machine code when it is first needed, and enqueues the steps.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "heddle/ir/status.h"
#include "heddle/ir/target.h"
#include "heddle/runtime/ahead/recorded_call.h"
#include "heddle/runtime/operation/operation.h"

namespace heddle::runtime {

// One way to run the operation.
struct ExportedPlan {
  const ir::Target* target = nullptr;  // what it was recorded for
  Sizes sizes = {};                    // of every named dimension
  RecordedCall call = {};              // its steps
};

// Texts of files. The headers have no names but those that begin with the library's.
struct ExportedSources {
  std::string header;      // for C: NAME.h
  std::string cpp_header;  // for C++: NAME.hpp, which includes it
  std::string source;      // NAME.c
  std::string tvm_ffi;     // NAME_tvm_ffi.c, where it is asked for
};

// What is exported besides the function in C.
struct ExportOptions {
  bool tvm_ffi = false;  // the same function in the form of TVM-FFI: the symbol __tvm_ffi_NAME
};

// Whether a function and its files can have this name: kInvalidArgument where they cannot.
Status check_exported_name(absl::string_view name);

// Exports plans of one operation under one choice of settings; `sizes` are the named dimensions in the order of the function's
// parameters. kInvalidArgument for names that C or C++ do not take, and for plans of different tensors; with TVM-FFI, also where
// the sizes do not follow from the shapes of the tensors.
StatusOr<ExportedSources> export_calls(absl::string_view name, absl::Span<const std::string> sizes,
                                       absl::Span<const ExportedPlan> plans,
                                       const ExportOptions& options = {});

}  // namespace heddle::runtime

namespace heddle {
using runtime::export_calls;
using runtime::ExportedPlan;
using runtime::ExportedSources;
using runtime::ExportOptions;
}  // namespace heddle
