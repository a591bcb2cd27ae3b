// The device that tests run on: the one named by --device=NAME on the command line, else by
// HEDDLE_TEST_DEVICE, else the interpreter. The same programs so run with and without a GPU:
//
//   test_runtime --device=cuda:0
//   HEDDLE_TEST_DEVICE=cuda:0 ctest
//
// A device that was asked for and does not open ends the program: a test that was meant for a GPU
// must not pass without one.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/device.h"

namespace heddle {

// "interp", "cuda:0".
inline const std::string& test_device_name() {
  static const std::string& name = *new std::string([] {
    // gtest_main hands its arguments to nobody, so they are read from the kernel.
    std::ifstream arguments("/proc/self/cmdline", std::ios::binary);
    for (std::string argument; std::getline(arguments, argument, '\0');) {
      constexpr char kFlag[] = "--device=";
      if (absl::StartsWith(argument, kFlag)) return argument.substr(sizeof(kFlag) - 1);
    }
    const char* variable = std::getenv("HEDDLE_TEST_DEVICE");
    return std::string(variable != nullptr && *variable != '\0' ? variable : "interp");
  }());
  return name;
}

// Stays open for the whole run, so that tests do not each pay for the context.
inline const Device& test_device() {
  static const Device& device = *new Device([] {
    StatusOr<Device> opened = Device::open(test_device_name());
    if (!opened.ok()) {
      std::fprintf(stderr, "the test device does not open: %s\n",
                   std::string(opened.status().message()).c_str());
      std::exit(1);
    }
    return *std::move(opened);
  }());
  return device;
}

inline bool on_gpu() { return test_device().kind() == runtime::BackendKind::kCuda; }

}  // namespace heddle

// First line of a test that makes no sense on the interpreter.
#define HEDDLE_SKIP_WITHOUT_GPU()                                                        \
  if (!::heddle::on_gpu()) {                                                             \
    GTEST_SKIP() << "needs a GPU: run this program with --device=cuda:0, or ctest with " \
                    "HEDDLE_TEST_DEVICE=cuda:0";                                         \
  }                                                                                      \
  static_assert(true, "needs a semicolon")
