// Finds what others made and Heddle runs: ptxas, the PTX compiler as a library, and the disassemblers.
//
//   StatusOr<ToolLocation> ptxas = find_tool(Tool::kPtxas);
//   if (!ptxas.ok()) return ptxas.status();  // says every place tried, why not, and the cure
//   print(ptxas->path, ptxas->origin, ptxas->version.to_string());
//
// Order: explicit path, environment (tool_variable()), for the disassemblers the folder of the ptxas that is found, a folder `cuda`
// beside the running program (or the shared library that has Heddle), CUDA_HOME, CUDA_PATH, /usr/local/cuda, /usr/local/cuda-*, and for
// programs PATH. Programs lie in a root's bin, libraries in its lib64 or lib. A path that somebody asked for is
// taken or refused, never silently replaced; in the other places whatever will not do is passed
// over. What others could have tampered with is never run.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {

class DiskCache;

enum class Tool {
  kPtxas,
  kPtxLibrary,  // NVIDIA's nvPTXCompiler as a shared library (tools/ptx_library.sh)
  kNvdisasm,
  kCuobjdump,
};

// Of its file: "ptxas", "libnvptxcompiler.so".
absl::string_view tool_name(Tool tool);
// "HEDDLE_PTXAS"
absl::string_view tool_variable(Tool tool);

// As CUDA's programs print it: release 13.0, V13.0.88 is {13, 0, 88}.
struct ToolVersion {
  int major = 0, minor = 0, patch = 0;
  std::string build;  // "cuda_13.0.r13.0/compiler.36424714_0"; empty where not printed

  std::string to_string() const;  // "13.0.88"
  bool operator==(const ToolVersion&) const = default;
};
// By number alone.
std::strong_ordering compare(const ToolVersion& a, const ToolVersion& b);

// The oldest ptxas that will do: the first that knows sm_90a.
inline constexpr int kOldestPtxas[] = {12, 0, 0};

// From what `tool --version` printed; nullopt if it is not that tool's answer.
std::optional<ToolVersion> parse_tool_version(Tool tool, absl::string_view printed);
// Asks `path --version`; or takes what this very file has answered before, where a cache knows it and it is no script. Of the library
// it is major and minor alone.
StatusOr<ToolVersion> read_tool_version(
    Tool tool, const std::string& path,
    std::chrono::milliseconds timeout = std::chrono::seconds(10), DiskCache* cache = nullptr);

// A place that was looked at and why it did not do.
struct ToolAttempt {
  std::string origin;     // as in ToolLocation
  std::string place{};    // a file, or an entry of PATH that names no folder
  std::string problem{};  // "/usr/local/cuda does not exist"
  bool absent = false;    // there is nothing of that name; no reason to wonder
};

// Which file it was: changes when the file is written to or replaced.
struct FileIdentity {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t modified_ns = 0, changed_ns = 0;

  bool operator==(const FileIdentity&) const = default;
  std::string to_string() const;
  static std::optional<FileIdentity> of(const std::string& path);  // nullopt: no such file
};

struct ToolLocation {
  std::string path;                // absolute, checked
  std::string origin;              // "HEDDLE_PTXAS", "CUDA_HOME", "/usr/local/cuda", "PATH", …
  ToolVersion version;             // of assemblers alone
  std::vector<ToolAttempt> tried;  // better places that did not do, in order
  FileIdentity identity;

  // Whether the same file still stands there.
  bool is_unchanged() const { return FileIdentity::of(path) == identity; }
};

// Where to look.
struct ToolSearch {
  std::string explicit_path{};              // an option of the caller; empty = none
  std::string variable{};                   // value of tool_variable(tool); empty = unset
  std::vector<std::string> beside_ptxas{};  // folders that hold programs, looked at first
  struct Root {
    std::string origin, path;  // "/usr/local/cuda-*" = all, newest first
  };
  std::vector<Root> roots{};
  std::string path_variable{};  // value of PATH
  std::chrono::milliseconds version_timeout{10'000};
  DiskCache* cache = nullptr;  // that knows what tools answer; nullptr = none

  // Whether somebody named one file, so that no other will do.
  bool is_request() const { return !explicit_path.empty() || !variable.empty(); }

  // As this process would look.
  static ToolSearch from_environment(Tool tool, absl::string_view explicit_path = {});
};

// Thread-safe. What was found is remembered for the process under everything in `search`, and
// looked for again once the file has changed; what was not found is looked for every time.
//   kInvalidArgument     a relative path was asked for
//   kNotFound            the file asked for does not exist, or no place has one that will do
//   kPermissionDenied    the file asked for, or a folder on the way, can be written by others
//   kFailedPrecondition  the file asked for cannot be run, is no such tool, or is one that is too old
//   or bad
StatusOr<ToolLocation> find_tool(Tool tool, const ToolSearch& search);
StatusOr<ToolLocation> find_tool(Tool tool, absl::string_view explicit_path = {});

}  // namespace heddle::codegen
