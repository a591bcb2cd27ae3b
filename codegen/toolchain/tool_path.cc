#include "heddle/codegen/toolchain/tool_path.h"

#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "heddle/codegen/environment.h"
#include "heddle/codegen/toolchain/tool_trust.h"

namespace heddle::codegen {
namespace {

struct ToolInfo {
  absl::string_view name, variable;
  CodeFile kind;
  absl::string_view cure;  // where there is none
};

constexpr std::array<ToolInfo, 4> kTools = {{
    {"ptxas", "HEDDLE_PTXAS", CodeFile::kProgram,
     "install the CUDA toolkit, or run 'pip install nvidia-cuda-nvcc'"},
    {"libnvptxcompiler.so", "HEDDLE_PTX_LIBRARY", CodeFile::kLibrary,
     "make it with Heddle's tools/ptx_library.sh"},
    {"nvdisasm", "HEDDLE_NVDISASM", CodeFile::kProgram,
     "install the CUDA toolkit, or run 'pip install nvidia-cuda-nvdisasm'"},
    {"cuobjdump", "HEDDLE_CUOBJDUMP", CodeFile::kProgram,
     "install the CUDA toolkit, or run 'pip install nvidia-cuda-cuobjdump'"},
}};

constexpr char kPath[] = "PATH";
constexpr char kBesidePtxas[] = "beside ptxas";

const ToolInfo& info(Tool tool) { return kTools[static_cast<size_t>(tool)]; }
bool is_assembler(Tool tool) { return tool == Tool::kPtxas || tool == Tool::kPtxLibrary; }

// Of a CUDA toolkit, and what holds code of that kind.
std::vector<absl::string_view> folders_of(CodeFile kind) {
  if (kind == CodeFile::kProgram) return {"bin"};
  return {"lib64", "lib"};
}

// XLA refuses it too.
constexpr int kBadPtxas[] = {12, 3, 103};

ToolVersion version_of(const int (&numbers)[3]) { return {numbers[0], numbers[1], numbers[2], ""}; }

Status check_assembler_version(Tool tool, const std::string& path, const ToolVersion& version) {
  if (compare(version, version_of(kOldestPtxas)) < 0) {
    return FailedPreconditionError(absl::StrCat(path, " is version ", version.to_string(),
                                                ", older than ",
                                                version_of(kOldestPtxas).to_string()));
  }
  ToolVersion bad = version_of(kBadPtxas);
  if (tool == Tool::kPtxLibrary) bad.patch = version.patch;  // which it does not tell
  if (compare(version, bad) == 0) {
    return FailedPreconditionError(
        absl::StrCat(path, " is version ", version.to_string(), ", which is known to be faulty"));
  }
  return OkStatus();
}

StatusOr<ToolLocation> examine(Tool tool, const std::string& path, absl::string_view origin,
                               const ToolSearch& search) {
  if (Status trusted = check_trusted(info(tool).kind, path); !trusted.ok()) return trusted;
  ToolLocation location;
  location.path = path;
  location.origin = std::string(origin);
  // Before the version is read, so that a file replaced in between is found to have changed.
  location.identity = FileIdentity::of(path).value_or(FileIdentity{});
  if (is_assembler(tool)) {
    StatusOr<ToolVersion> version =
        read_tool_version(tool, path, search.version_timeout, search.cache);
    if (!version.ok()) return version.status();
    if (Status status = check_assembler_version(tool, path, *version); !status.ok()) return status;
    location.version = *std::move(version);
  }
  return location;
}

// "cuda-12.9" stands before "cuda-12.10".
std::vector<double> version_numbers(absl::string_view name) {
  std::vector<double> numbers;
  for (absl::string_view part : absl::StrSplit(name, absl::ByAnyChar("-.*"))) {
    double number = 0;
    if (absl::SimpleAtod(part, &number)) numbers.push_back(number);
  }
  return numbers;
}

// A root that ends in '*' becomes every folder that starts so, newest version first.
std::vector<std::string> expand(absl::string_view root) {
  if (!absl::ConsumeSuffix(&root, "*")) return {std::string(root)};
  const std::filesystem::path prefix{std::string(root)};
  std::vector<std::string> found;
  std::error_code error;  // a folder that cannot be listed has nothing for us
  std::filesystem::directory_iterator entry(prefix.parent_path(), error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().string();
    if (absl::StartsWith(path, root)) found.push_back(path);
  }
  std::sort(found.begin(), found.end(), [](const std::string& a, const std::string& b) {
    return std::pair(version_numbers(b), b) < std::pair(version_numbers(a), a);
  });
  return found;
}

// Every place in order; those with a problem are not even looked at.
std::vector<ToolAttempt> candidates(Tool tool, const ToolSearch& search) {
  std::vector<ToolAttempt> result;
  const absl::string_view name = tool_name(tool);
  for (const std::string& folder : search.beside_ptxas) {
    result.push_back({kBesidePtxas, absl::StrCat(folder, "/", name)});
  }
  for (const ToolSearch::Root& root : search.roots) {
    if (root.path.empty()) continue;
    for (const std::string& folder : expand(root.path)) {
      for (absl::string_view inner : folders_of(info(tool).kind)) {
        result.push_back({root.origin, absl::StrCat(folder, "/", inner, "/", name)});
      }
    }
  }
  if (search.path_variable.empty() || info(tool).kind != CodeFile::kProgram) return result;
  for (absl::string_view entry : absl::StrSplit(search.path_variable, ':')) {
    if (absl::StartsWith(entry, "/")) {
      result.push_back({kPath, absl::StrCat(entry, "/", name)});
      continue;
    }
    // The current folder may be anybody's.
    result.push_back({kPath, std::string(entry),
                      entry.empty()
                          ? "an empty entry of PATH is ignored"
                          : absl::StrCat("the relative entry '", entry, "' of PATH is ignored")});
  }
  return result;
}

// Says each thing once: roots are often links to each other, and PATH is long.
Status nothing_found(Tool tool, const std::vector<ToolAttempt>& tried) {
  std::vector<absl::string_view> problems;
  for (const ToolAttempt& attempt : tried) {
    absl::string_view problem = attempt.problem;
    if (attempt.absent && attempt.origin == kPath) problem = "no folder of PATH has it";
    if (!absl::c_linear_search(problems, problem)) problems.push_back(problem);
  }
  return NotFoundError(absl::StrCat(
      tool_name(tool), " was not found; ", info(tool).cure, " and set ", info(tool).variable,
      " to its absolute path (",
      problems.empty() ? "no CUDA folder and no PATH is set" : absl::StrJoin(problems, "; "), ")"));
}

// A path that somebody asked for; `fix`: what to do where it leads nowhere.
StatusOr<ToolLocation> find_requested(Tool tool, const std::string& path, absl::string_view origin,
                                      const ToolSearch& search, absl::string_view fix) {
  StatusOr<ToolLocation> found = examine(tool, path, origin, search);
  if (found.ok()) return found;
  return Status(found.status().code(),
                absl::StrCat(tool_name(tool), " from ", origin, " (", path,
                             ") cannot be used: ", found.status().message(), "; fix: ", fix,
                             " the absolute path of ", tool_name(tool)));
}

StatusOr<ToolLocation> search_everywhere(Tool tool, const ToolSearch& search) {
  if (!search.explicit_path.empty()) {
    return find_requested(tool, search.explicit_path, "the given option", search,
                          "leave the option out, or give it");
  }
  if (!search.variable.empty()) {
    const absl::string_view variable = tool_variable(tool);
    return find_requested(tool, search.variable, variable, search,
                          absl::StrCat("unset ", variable, ", or set it to"));
  }
  std::vector<ToolAttempt> tried;
  for (ToolAttempt& attempt : candidates(tool, search)) {
    if (attempt.problem.empty()) {
      StatusOr<ToolLocation> found = examine(tool, attempt.place, attempt.origin, search);
      if (found.ok()) {
        found->tried = std::move(tried);
        return found;
      }
      attempt.problem = std::string(found.status().message());
      attempt.absent = IsNotFound(found.status());
    }
    tried.push_back(std::move(attempt));
  }
  return nothing_found(tool, tried);
}

// Length-prefixed, so that no two searches share a key.
std::string key_of(Tool tool, const ToolSearch& search) {
  std::string key(tool_name(tool));
  const auto add = [&key](absl::string_view part) {
    absl::StrAppend(&key, " ", part.size(), ":", part);
  };
  add(search.explicit_path);
  add(search.variable);
  add(search.path_variable);
  for (const std::string& folder : search.beside_ptxas) add(folder);
  for (const ToolSearch::Root& root : search.roots) {
    add(root.origin);
    add(root.path);
  }
  return key;
}

class Memory {
 public:
  std::optional<ToolLocation> recall(const std::string& key) {
    std::lock_guard lock(mutex_);
    const auto entry = found_.find(key);
    if (entry == found_.end()) return std::nullopt;
    return entry->second;
  }
  void remember(const std::string& key, const ToolLocation& location) {
    std::lock_guard lock(mutex_);
    found_.insert_or_assign(key, location);
  }

  // Never destroyed: another static object's destructor may still compile a kernel.
  static Memory& of_process() {
    static Memory& memory = *new Memory;
    return memory;
  }

 private:
  std::mutex mutex_;
  absl::flat_hash_map<std::string, ToolLocation> found_;
};

// The folder of ptxas, and of what it links to.
std::vector<std::string> folders_of_ptxas() {
  const StatusOr<ToolLocation> ptxas = find_tool(Tool::kPtxas);
  if (!ptxas.ok()) return {};
  const std::filesystem::path path = ptxas->path;
  std::vector<std::string> folders = {path.parent_path().string()};
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  if (!error && target.parent_path() != path.parent_path()) {
    folders.push_back(target.parent_path().string());
  }
  return folders;
}

// The file of the shared library that holds this code; empty where the program itself does.
std::string own_library() {
  std::string file;
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* result) {
        const auto here = reinterpret_cast<uintptr_t>(&own_library);
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const auto& part = object->dlpi_phdr[i];
          if (part.p_type != PT_LOAD || here - (object->dlpi_addr + part.p_vaddr) >= part.p_memsz) {
            continue;
          }
          *static_cast<std::string*>(result) = object->dlpi_name;
          return 1;
        }
        return 0;
      },
      &file);
  return file;
}

// Empty where there is none: few programs bring CUDA along, and nobody wants to read of the others.
std::string cuda_beside_program() {
  std::error_code error;
  const std::string library = own_library();
  const auto file = std::filesystem::canonical(library.empty() ? "/proc/self/exe" : library, error);
  if (error) return "";
  const std::filesystem::path folder = file.parent_path() / "cuda";
  return std::filesystem::is_directory(folder, error) ? folder.string() : "";
}

int64_t nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

absl::string_view tool_name(Tool tool) { return info(tool).name; }
absl::string_view tool_variable(Tool tool) { return info(tool).variable; }

std::optional<FileIdentity> FileIdentity::of(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileIdentity{status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_size),
                      nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

std::string FileIdentity::to_string() const {
  return absl::StrCat("device ", device, ", inode ", inode, ", ", size, " bytes, written ",
                      modified_ns, ", changed ", changed_ns);
}

ToolSearch ToolSearch::from_environment(Tool tool, absl::string_view explicit_path) {
  ToolSearch search;
  search.explicit_path = std::string(explicit_path);
  search.variable = environment_variable(info(tool).variable.data());
  if (!is_assembler(tool)) search.beside_ptxas = folders_of_ptxas();
  search.roots.push_back({"the folder 'cuda' beside the program", cuda_beside_program()});
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    search.roots.push_back({name, environment_variable(name)});
  }
  for (const char* root : {"/usr/local/cuda", "/usr/local/cuda-*"}) {
    search.roots.push_back({root, root});
  }
  search.path_variable = environment_variable(kPath);
  return search;
}

StatusOr<ToolLocation> find_tool(Tool tool, const ToolSearch& search) {
  const std::string key = key_of(tool, search);
  if (std::optional<ToolLocation> known = Memory::of_process().recall(key);
      known.has_value() && known->is_unchanged()) {
    return *std::move(known);
  }
  StatusOr<ToolLocation> found = search_everywhere(tool, search);
  if (found.ok()) Memory::of_process().remember(key, *found);
  return found;
}

StatusOr<ToolLocation> find_tool(Tool tool, absl::string_view explicit_path) {
  return find_tool(tool, ToolSearch::from_environment(tool, explicit_path));
}

}  // namespace heddle::codegen
