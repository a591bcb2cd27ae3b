// Builds and calls libraries that calls are exported to.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "codegen/toolchain/tool_testing.h"
#include "gtest/gtest.h"
#include "heddle/runtime/ahead/export.h"

// First line of a test that builds one.
#define HEDDLE_NEEDS_C_COMPILERS()                                                         \
  if (std::system("cc --version > /dev/null 2>&1 && c++ --version > /dev/null 2>&1") != 0) \
  GTEST_SKIP() << "SKIPPED: needs a C and a C++ compiler"

namespace heddle::runtime {

// A library of that name, and its functions. It stays loaded, as what it has allocated is its own.
class ExportedLibrary {
 public:
  // `cpp` is C++ that is linked into it.
  ExportedLibrary(const std::string& name, const ExportedSources& sources,
                  absl::string_view cpp = "")
      : name_(name) {
    const codegen::TempDir folder;
    const std::string stem = folder.file(name),
                      library = folder.file(absl::StrCat("lib", name, ".so"));
    codegen::write_file(stem + ".h", sources.header);
    codegen::write_file(stem + ".hpp", sources.cpp_header);
    codegen::write_file(stem + ".c", sources.source);
    codegen::write_file(stem + ".cc", cpp);
    std::vector<std::string> sources_of_c = {stem};
    if (!sources.tvm_ffi.empty()) {
      sources_of_c.push_back(stem + "_tvm_ffi");
      codegen::write_file(sources_of_c.back() + ".c", sources.tvm_ffi);
    }
    constexpr char kFlags[] = " -Wall -Wextra -Werror -O0 -fPIC ";
    std::string command, objects;
    for (const std::string& source : sources_of_c) {
      absl::StrAppend(&command, "cc -std=c99", kFlags,
                      "-Wno-unused-function -Wno-missing-field-initializers -c -o ", source, ".o ",
                      source, ".c && ");
      absl::StrAppend(&objects, " ", source, ".o");
    }
    absl::StrAppend(&command, "c++ -std=c++11", kFlags, "-shared -o ", library, " ", stem, ".cc",
                    objects, " -ldl -lpthread");
    EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT: a test's own command
    handle_ = dlopen(library.c_str(), RTLD_NOW);
    EXPECT_NE(handle_, nullptr) << dlerror();
  }
  ExportedLibrary(const ExportedLibrary&) = delete;
  ExportedLibrary& operator=(const ExportedLibrary&) = delete;

  // Calls the function of its name and this ending. Arguments that are left over are zero, and nobody reads them.
  int64_t call(const std::string& ending, const std::vector<uint64_t>& arguments) const {
    std::array<uint64_t, 16> a{};
    std::copy(arguments.begin(), arguments.end(), a.begin());
    using Function =
        int (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
    const auto entry = reinterpret_cast<Function>(dlsym(handle_, (name_ + ending).c_str()));
    return entry(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12],
                 a[13], a[14], a[15]);
  }
  int64_t call(const std::vector<uint64_t>& arguments) const { return call("", arguments); }
  int64_t workspace_bytes(const std::vector<uint64_t>& sizes) const {
    return call("_workspace_bytes", sizes);
  }
  // A function or a variable of that name; nullptr where there is none.
  void* symbol(const std::string& name) const { return dlsym(handle_, name.c_str()); }
  std::string error() const {
    return reinterpret_cast<const char* (*)()>(dlsym(handle_, (name_ + "_error").c_str()))();
  }

 private:
  const std::string name_;
  void* handle_ = nullptr;
};

}  // namespace heddle::runtime
