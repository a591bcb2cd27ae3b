// What the benchmarks share: ending at the first error, and printing what was measured.
#pragma once

#include <errno.h>  // program_invocation_short_name

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>

#include "heddle/ir/status.h"
#include "heddle/runtime/device.h"
#include "nlohmann/json.hpp"

namespace heddle::bench {

inline void check(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name,
               std::string(status.message()).c_str());
  std::exit(2);
}

template <class T>
T take(StatusOr<T> value) {
  check(value.status());
  return *std::move(value);
}

// The kernel's driver; "" without one.
inline std::string driver_version() {
  std::string version;
  std::ifstream file("/sys/module/nvidia/version");
  std::getline(file, version);
  return version;
}

inline std::string today() {
  const std::time_t now = std::time(nullptr);
  char date[16];
  std::strftime(date, sizeof(date), "%Y-%m-%d", std::gmtime(&now));
  return date;
}

// One JSON object on standard output: on what, when and how the figures were made, and they.
inline void print_figures(const char* benchmark, int argc, char** argv, const Device& device,
                          const nlohmann::ordered_json& figures) {
  std::string command = benchmark;
  for (int i = 1; i < argc; ++i) command += std::string(" ") + argv[i];
  const int cuda = device.info().driver_version;  // the newest that the driver speaks
  const std::string cuda_version =
      cuda == 0 ? "" : std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
  const nlohmann::ordered_json result = {{"gpu", device.info().name}, {"driver", driver_version()},
                                         {"cuda", cuda_version},      {"date", today()},
                                         {"command", command},        {"benchmark", benchmark},
                                         {"figures", figures}};
  std::printf("%s\n", result.dump(2).c_str());
}

}  // namespace heddle::bench
