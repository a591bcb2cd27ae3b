// Records what a device makes of every op:
//
//   record_vectors [--device=cuda:0] --out=FILE
//
// tests/vectors/h200.vectors is such a recording, made on an H200.
#include <cstdio>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "heddle/runtime/device.h"
#include "vectors/case.h"
#include "vectors/device_run.h"
#include "vectors/recording.h"

namespace heddle::vectors {
namespace {

// Recorded at a time.
constexpr size_t kPortion = 128;

std::string describe(const Device& device) {
  const DeviceInfo& info = device.info();
  return absl::StrCat(device.name(), ", ", info.name, ", compute capability ", info.compute_major,
                      ".", info.compute_minor, ", CUDA ", info.driver_version / 1000, ".",
                      info.driver_version % 1000 / 10);
}

StatusOr<Recording> record(const std::string& device_name, absl::Span<const Case> cases) {
  const StatusOr<Device> device = Device::open(device_name);
  if (!device.ok()) return device.status();
  Recording recording;
  recording.device = describe(*device);
  for (size_t at = 0; at < cases.size(); at += kPortion) {
    const absl::Span<const Case> portion = cases.subspan(at, kPortion);
    std::vector<std::vector<Column>> inputs;
    for (const Case& c : portion) inputs.push_back(inputs_for(c));
    StatusOr<std::vector<Column>> results = run_on(*device, portion, inputs);
    if (!results.ok()) return results.status();
    for (size_t i = 0; i < portion.size(); ++i) {
      recording.cases[portion[i].name] = {checksum(inputs[i]), std::move((*results)[i])};
    }
  }
  return recording;
}

int run(int argc, char** argv) {
  std::string device_name = "cuda:0", path;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--device=")) {
      device_name = std::string(argument);
    } else if (absl::ConsumePrefix(&argument, "--out=")) {
      path = std::string(argument);
    } else {
      path.clear();
      break;
    }
  }
  if (path.empty()) {
    std::fputs("usage: record_vectors [--device=cuda:0] --out=FILE\n", stderr);
    return 2;
  }
  const std::vector<Case> cases = all_cases();
  const StatusOr<Recording> recording = record(device_name, cases);
  if (!recording.ok()) {
    std::fprintf(stderr, "record_vectors: %s\n", recording.status().ToString().c_str());
    return 1;
  }
  size_t vectors = 0;
  for (const auto& [name, recorded] : recording->cases) vectors += recorded.results.size();
  const std::string text = to_text(*recording, cases);
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) {
    std::fprintf(stderr, "record_vectors: cannot write %s\n", path.c_str());
    return 1;
  }
  std::printf("%zu cases, %zu vectors, %zu bytes, from %s\n", recording->cases.size(), vectors,
              text.size(), recording->device.c_str());
  return 0;
}

}  // namespace
}  // namespace heddle::vectors

int main(int argc, char** argv) { return heddle::vectors::run(argc, argv); }
