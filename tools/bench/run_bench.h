// The main() of benchmarks of kernels on a GPU: `NAME [--only REGEX]`, which prints its figures as JSON.
#pragma once

#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "CLI/CLI.hpp"
#include "heddle/runtime/device.h"
#include "heddle/tools/bench/figures.h"

namespace heddle::bench {

// A function of peers/peer_cub.so beside the program (bench/peers/cub.cu); nullptr where it is not there.
template <class Function>
Function* find_peer(const char* name) {
  const auto path =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "peers/peer_cub.so";
  void* const library = dlopen(path.c_str(), RTLD_NOW);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

// Bench(device, only) of what the expression matches; measure(bench), and then bench.figures().
template <class Bench, class Measure>
int run_bench(const char* name, const char* what, int argc, char** argv, Measure measure) {
  CLI::App app(what);
  std::string only;
  app.add_option("--only", only, "regular expression of what is measured");
  CLI11_PARSE(app, argc, argv);
  const Device device = take(Device::open("cuda:0"));
  Bench bench(device, only);
  measure(bench);
  print_figures(name, argc, argv, device, bench.figures());
  return 0;
}

}  // namespace heddle::bench
