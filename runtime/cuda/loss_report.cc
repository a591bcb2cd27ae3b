#include "heddle/runtime/cuda/loss_report.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/cuda/errors.h"
#include "nlohmann/json.hpp"

extern char** environ;

namespace heddle::runtime::cuda {
namespace {

using Json = nlohmann::ordered_json;

// Besides HEDDLE_*: what decides about devices and launches.
constexpr const char* kOthersVariables[] = {"CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING",
                                            "CUDA_MODULE_LOADING", "NVIDIA_VISIBLE_DEVICES"};

std::string hex(uint64_t number) { return absl::StrCat("0x", absl::Hex(number)); }

std::string utc_time(const char* format) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[64] = {};
  std::strftime(text, sizeof(text), format, &parts);
  return text;
}

Json environment() {
  Json variables = Json::object();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == absl::string_view::npos || !absl::StartsWith(text, "HEDDLE_")) continue;
    variables[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  for (const char* name : kOthersVariables) {
    if (const char* value = std::getenv(name)) variables[name] = value;
  }
  return variables;
}

std::string program() {
  char path[4096] = {};
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  return std::string(path, length > 0 ? static_cast<size_t>(length) : 0);
}

uint64_t bits_at(const std::vector<std::byte>& block, int offset, int bytes) {
  uint64_t bits = 0;
  const auto from = static_cast<size_t>(offset), count = static_cast<size_t>(bytes);
  if (from + count <= block.size()) std::memcpy(&bits, block.data() + from, count);
  return bits;
}

// A scalar as a number where JSON has it, and as bits.
Json scalar(const ir::Type& type, uint64_t bits, int bytes) {
  const ir::Scalar element = type.scalar;
  Json json = {{"bits", hex(bits)}};
  if (element == ir::Scalar::kF32) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    json["value"] = absl::StrFormat("%.9g", value);
  } else if (element == ir::Scalar::kF64) {
    json["value"] = absl::StrFormat("%.17g", std::bit_cast<double>(bits));
  } else if (ir::is_signed(element)) {
    const int unused = 64 - 8 * bytes;
    json["value"] = static_cast<int64_t>(bits << unused) >> unused;
  } else if (ir::is_integer(element)) {
    json["value"] = bits;
  }
  return json;
}

Json with_dynamic(const absl::InlinedVector<int64_t, 4>& known) {
  Json json = Json::array();
  for (const int64_t value : known) json.push_back(value == ir::kDynamic ? Json() : Json(value));
  return json;
}

Json arguments(const KernelParameters& parameters, const std::vector<std::byte>& block,
               std::vector<uint64_t>& addresses) {
  Json list = Json::array();
  for (const KernelParameters::Parameter& parameter : parameters.parameters) {
    Json json = {{"name", parameter.name}, {"type", ir::to_string(parameter.type)}};
    if (!parameter.extents.empty()) json["extents"] = with_dynamic(parameter.extents);
    if (!parameter.strides.empty()) json["strides"] = with_dynamic(parameter.strides);
    list.push_back(std::move(json));
  }
  for (const ir::ParamSlot& slot : parameters.slots) {
    if (slot.param < 0 || static_cast<size_t>(slot.param) >= list.size()) continue;
    const auto at = static_cast<size_t>(slot.param);
    Json& json = list[at];
    const uint64_t bits = bits_at(block, slot.offset, slot.bytes);
    const auto dim = static_cast<size_t>(slot.dim);
    switch (slot.kind) {
      case ir::SlotKind::kScalar:
        json.update(scalar(parameters.parameters[at].type, bits, slot.bytes));
        break;
      case ir::SlotKind::kAddress:
        json["address"] = hex(bits);
        addresses.push_back(bits);
        break;
      case ir::SlotKind::kExtent:
        json["extents"][dim] = static_cast<int64_t>(bits);
        break;
      case ir::SlotKind::kStride:
        json["strides"][dim] = static_cast<int64_t>(bits);
        break;
    }
  }
  return list;
}

// The block of a kernel that nobody has described.
Json words(const std::vector<std::byte>& block) {
  Json list = Json::array();
  for (size_t at = 0; at < block.size(); at += sizeof(uint64_t)) {
    const size_t bytes = std::min(sizeof(uint64_t), block.size() - at);
    list.push_back(hex(bits_at(block, static_cast<int>(at), static_cast<int>(bytes))));
  }
  return list;
}

// `unfinished`: null where it is not known.
Json of_launch(const LaunchRecord& record, const Json& unfinished) {
  return {{"order", record.ticket},
          {"kernel", record.site.kernel()},
          {"file", record.site.file()},
          {"line", record.site.line()},
          {"stream", hex(static_cast<uint64_t>(record.stream))},
          {"unfinished", unfinished},
          {"grid", ir::to_string(record.shape.grid)},
          {"block", ir::to_string(record.shape.block)},
          {"cluster", ir::to_string(record.shape.cluster)},
          {"dynamic_shared_bytes", record.shape.shared_bytes}};
}

Json of_function(const FunctionAttributes& attributes) {
  return {{"registers_per_thread", attributes.registers},
          {"local_bytes_per_thread", attributes.local_bytes},
          {"static_shared_bytes", attributes.static_shared_bytes},
          {"max_threads_per_block", attributes.max_threads_per_block}};
}

Json of_device(const Loss& loss) {
  const DeviceInfo& info = *loss.info;
  return {{"name", loss.device},
          {"gpu", info.name},
          {"compute_capability", absl::StrCat(info.compute_major, ".", info.compute_minor)},
          {"multiprocessors", info.sm_count},
          {"memory_bytes", info.total_memory},
          {"cuda_version_of_driver",
           absl::StrCat(info.driver_version / 1000, ".", info.driver_version % 1000 / 10)}};
}

// Writes a new file that its user alone may read. Gives 0 or the system's error.
int write_new(const std::string& path, const std::string& text) {
  const int file =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return errno;
  int error = 0;
  for (size_t done = 0; done < text.size() && error == 0;) {
    const ssize_t written = ::write(file, text.data() + done, text.size() - done);
    if (written > 0) {
      done += static_cast<size_t>(written);
    } else if (written == 0 || errno != EINTR) {
      error = written == 0 ? ENOSPC : errno;
    }
  }
  if (close(file) != 0 && error == 0) error = errno;
  if (error != 0) unlink(path.c_str());
  return error;
}

}  // namespace

std::unique_ptr<LossReporter> LossReporter::from_environment() {
  const char* folder = std::getenv("HEDDLE_REPORT_DIR");
  if (folder == nullptr || *folder == '\0') return nullptr;
  return std::make_unique<LossReporter>(folder);
}

void LossReporter::launched(const LaunchRecord& launch, const FunctionAttributes& attributes,
                            std::shared_ptr<const KernelParameters> parameters, const void* block,
                            size_t bytes) {
  const auto* from = static_cast<const std::byte*>(block);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (launches_.size() >= kLaunches) launches_.pop_front();
  launches_.push_back(
      {launch, attributes, std::move(parameters),
       bytes == 0 ? std::vector<std::byte>() : std::vector<std::byte>(from, from + bytes)});
}

void LossReporter::refused(uint64_t ticket) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto is_it = [&](const Launch& launch) { return launch.record.ticket == ticket; };
  launches_.erase(std::remove_if(launches_.begin(), launches_.end(), is_it), launches_.end());
}

void LossReporter::allocated(DeviceAddress address, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  memory_[address] = bytes;
}

void LossReporter::freed(DeviceAddress address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = memory_.find(address);
  if (found == memory_.end()) return;
  if (freed_.size() >= kFreed) freed_.pop_front();
  freed_.push_back({address, found->second});
  memory_.erase(found);
}

std::string LossReporter::text_of(const Loss& loss) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  Json report = {{"time", utc_time("%Y-%m-%dT%H:%M:%SZ")},
                 {"program", program()},
                 {"process", getpid()},
                 {"error",
                  {{"call", call_name(loss.call)},
                   {"code", loss.code},
                   {"name", loss.name},
                   {"text", loss.text},
                   {"meaning", loss.meaning},
                   {"cause", loss.cause}}},
                 {"device", of_device(loss)}};

  // By ticket, newest first: launches that are remembered with their arguments, and others that nobody waited for, such
  // as those of graphs.
  std::map<uint64_t, Json, std::greater<>> launches;
  uint64_t newest = 0;
  for (const LaunchRecord& record : loss.unfinished) {
    launches[record.ticket] = of_launch(record, true);
    newest = std::max(newest, record.ticket);
  }
  for (const Launch& launch : launches_) newest = std::max(newest, launch.record.ticket);
  std::vector<uint64_t> addresses;
  for (const Launch& launch : launches_) {
    const uint64_t ticket = launch.record.ticket;
    Json& json = launches[ticket];
    if (json.is_null()) {
      // The ring has forgotten those from before.
      json = of_launch(launch.record,
                       ticket + LaunchRing::kSize > newest ? Json(false) : Json(nullptr));
    }
    json["function"] = of_function(launch.attributes);
    if (launch.parameters != nullptr) {
      json["arguments"] = arguments(*launch.parameters, launch.block, addresses);
    } else {
      json["parameter_words"] = words(launch.block);
    }
  }
  report["launches"] = Json::array();
  for (auto& [ticket, json] : launches) report["launches"].push_back(std::move(json));

  // Where each address of an argument lies.
  Json memory = Json::object();
  for (const uint64_t address : addresses) {
    Json& json = memory[hex(address)];
    if (!json.is_null()) continue;
    json = "in no allocation that Heddle made, but for graphs";
    const auto describe = [&](DeviceAddress begin, size_t bytes, bool live) {
      json = {{"allocation", hex(begin)},
              {"bytes", bytes},
              {"offset", address - begin},
              {"freed", !live}};
    };
    auto next = memory_.upper_bound(address);
    if (next != memory_.begin()) {
      const auto& [begin, bytes] = *std::prev(next);
      if (address - begin < bytes) {
        describe(begin, bytes, true);
        continue;
      }
    }
    for (const Memory& gone : freed_) {
      if (address >= gone.address && address - gone.address < gone.bytes) {
        describe(gone.address, gone.bytes, false);
      }
    }
  }
  report["memory"] = std::move(memory);
  size_t live = 0;
  for (const auto& [address, bytes] : memory_) live += bytes;
  report["allocations"] = {{"count", memory_.size()}, {"bytes", live}};
  report["environment"] = environment();
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string LossReporter::write(const Loss& loss) noexcept {
  try {
    const std::string text = text_of(loss);
    mkdir(folder_.c_str(), S_IRWXU);
    const std::string stem =
        absl::StrCat(folder_, "/heddle-", absl::StrReplaceAll(loss.device, {{":", ""}}), "-",
                     utc_time("%Y%m%d-%H%M%S"), "-", getpid());
    constexpr int kNames = 100;
    int error = EEXIST;
    for (int i = 0; i < kNames && error == EEXIST; ++i) {
      const std::string path = absl::StrCat(stem, i == 0 ? "" : absl::StrCat("-", i), ".json");
      error = write_new(path, text);
      if (error == 0) return absl::StrCat("a report is in '", path, "'");
    }
    return absl::StrCat("no report: HEDDLE_REPORT_DIR '", folder_, "': ", std::strerror(error));
  } catch (const std::exception&) {
    return "no report: memory ran out";
  }
}

}  // namespace heddle::runtime::cuda
