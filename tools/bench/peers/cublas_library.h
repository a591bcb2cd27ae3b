// Where libraries of CUDA are found: the one that is named, or the first of those in the loader's path, below CUDA's
// usual folders and in Python's wheels of CUDA.
#pragma once

#include <dlfcn.h>
#include <glob.h>

#include <cstring>
#include <string>
#include <vector>

namespace peer {

// Where a library, such as "libcublasLt", may be, in order. `options` may have a line "library=PATH" with
// libcublasLt's path; others lie beside it.
inline std::vector<std::string> places(const std::string& library, const char* options) {
  constexpr char kOption[] = "library=", kNamed[] = "libcublasLt";
  if (const char* at = std::strstr(options, kOption); at != nullptr) {
    at += sizeof(kOption) - 1;
    std::string path(at, std::strcspn(at, "\n"));
    if (const size_t name = path.rfind(kNamed); name != std::string::npos)
      path.replace(name, sizeof(kNamed) - 1, library);
    return {path};
  }
  std::vector<std::string> found;
  for (const char* const version : {".so.13", ".so.12", ".so"}) found.push_back(library + version);
  for (const char* folder :
       {"/usr/local/cuda*/lib64/", "/usr/local/cuda*/lib/", "/usr/local/cuda*/targets/*/lib/",
        "/usr/lib/python3*/*-packages/nvidia/cu*/lib/",
        "/usr/local/lib/python3*/*-packages/nvidia/cu*/lib/",
        "/opt/*/lib/python3*/*-packages/nvidia/cu*/lib/"}) {
    glob_t matches{};
    if (glob((folder + library + ".so*").c_str(), 0, nullptr, &matches) == 0) {
      found.insert(found.end(), matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
    }
    globfree(&matches);
  }
  return found;
}

// The library; nullptr with *why where it is nowhere.
inline void* load_library(const std::string& library, const char* options, std::string* why) {
  for (const std::string& place : places(library, options)) {
    if (void* const loaded = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return loaded;
    if (why->empty()) *why = dlerror();
  }
  *why = "no " + library + " was found (" + *why + "); name libcublasLt with --cublaslt PATH";
  return nullptr;
}

}  // namespace peer
