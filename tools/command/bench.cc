#include <fstream>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/operation/bound_call.h"
#include "heddle/tools/command/commands.h"
#include "heddle/tools/command/execution.h"
#include "heddle/tools/command/option_values.h"
#include "heddle/tools/command/output.h"
#include "heddle/tools/command/python.h"
#include "heddle/tools/command/shape.h"
#include "nlohmann/json.hpp"

namespace heddle::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::string_view kPeers[] = {"torch", "torch.compile", "triton", "cub"};

// A kernel with the shapes and element types to measure it at.
struct Cases {
  KernelChoice choice;
  std::vector<std::string> shapes;
  std::vector<std::string> dtypes;
};

// What a suite's file has: [{"kernel": "softmax", "shapes": ["8192x8192"], "dtypes": ["bf16"], "settings": ["k=8"]}, …].
StatusOr<std::vector<Cases>> read_suite(const std::string& path) {
  const auto wrong = [&](absl::string_view why) {
    return InvalidArgumentError(
        absl::StrCat("--suite ", path, ": ", why,
                     "; a suite is [{\"kernel\": NAME, \"shapes\": [SHAPE, ...], \"dtypes\": "
                     "[TYPE, ...], \"settings\": [NAME=VALUE, ...]}, ...]"));
  };
  std::ifstream file(path);
  if (!file) return InvalidArgumentError(absl::StrCat("--suite ", path, " cannot be read"));
  const Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array()) return wrong("this is no JSON array");
  std::vector<Cases> all;
  for (const Json& one : json) {
    if (!one.is_object() || !one.contains("kernel") || !one["kernel"].is_string()) {
      return wrong("an entry has no kernel");
    }
    Cases& cases = all.emplace_back();
    cases.choice.kernel = one["kernel"].get<std::string>();
    for (const auto& [name, value] : one.items()) {
      if (name == "kernel") continue;
      std::vector<std::string>* const texts = name == "shapes"     ? &cases.shapes
                                              : name == "dtypes"   ? &cases.dtypes
                                              : name == "settings" ? &cases.choice.settings
                                                                   : nullptr;
      if (texts == nullptr) return wrong(absl::StrCat("'", name, "' is unknown"));
      if (!value.is_array() ||
          !absl::c_all_of(value, [](const Json& text) { return text.is_string(); })) {
        return wrong(absl::StrCat("'", name, "' is no array of texts"));
      }
      *texts = value.get<std::vector<std::string>>();
    }
  }
  return all;
}

// Every element type at every shape, each as the measuring program wants it. What cannot be bound is an error now, and not
// after minutes.
Status add_cases(const Cases& cases, Json& all) {
  const std::vector<std::string> as_set = {""};
  for (const std::string& dtype : cases.dtypes.empty() ? as_set : cases.dtypes) {
    KernelChoice choice = cases.choice;
    if (!dtype.empty()) choice.settings.push_back("dtype=" + dtype);
    const StatusOr<ChosenKernel> kernel = choose_kernel(choice);
    if (!kernel.ok()) return kernel.status();
    std::vector<runtime::Sizes> shapes;
    for (const std::string& text : cases.shapes) {
      const StatusOr<runtime::Sizes> sizes = parse_shape("--shape", *kernel, text);
      if (!sizes.ok()) return sizes.status();
      shapes.push_back(*sizes);
    }
    if (shapes.empty()) shapes.push_back(kernel->sizes);
    for (const runtime::Sizes& sizes : shapes) {
      const StatusOr<runtime::BoundCall> call =
          runtime::bind(*kernel->operation, kernel->settings, {}, sizes);
      if (!call.ok()) return call.status();
      all.push_back({{"kernel", kernel->operation->name()},
                     {"settings", kernel->settings},
                     {"shape", shape_text(*kernel, call->sizes)},
                     {"sizes", call->sizes}});
    }
  }
  return OkStatus();
}

StatusOr<Json> all_cases(const BenchOptions& options, const std::string& programs) {
  if (options.choice.kernel.empty() == options.suite.empty()) {
    return InvalidArgumentError(
        "bench takes a kernel's name or --suite, such as 'heddle bench softmax --shape 8192x8192 "
        "--dtype bf16 --against torch'");
  }
  std::vector<Cases> cases;
  if (options.suite.empty()) {
    const auto dtypes = split_list("--dtype", "an element type", options.dtypes);
    if (!dtypes.ok()) return dtypes.status();
    cases.push_back({options.choice, options.shapes, *dtypes});
  } else {
    if (!options.shapes.empty() || !options.dtypes.empty() || !options.choice.settings.empty() ||
        !options.choice.sizes.empty()) {
      return InvalidArgumentError(
          "a suite says itself which shapes, element types and settings its kernels have; fix: "
          "leave --shape, --dtype, --set and --size out, or name a kernel");
    }
    const bool known = options.suite == "smoke" || options.suite == "full";
    StatusOr<std::vector<Cases>> read = read_suite(
        known ? absl::StrCat(programs, "/suites/", options.suite, ".json") : options.suite);
    if (!read.ok()) return read.status();
    cases = *std::move(read);
  }
  Json all = Json::array();
  for (const Cases& one : cases) {
    if (Status s = add_cases(one, all); !s.ok()) return s;
  }
  if (all.empty()) return InvalidArgumentError("--suite: there are no cases in it");
  return all;
}

StatusOr<std::vector<std::string>> peers(const std::string& against) {
  StatusOr<std::vector<std::string>> names = split_list("--against", "a peer", against);
  if (!names.ok()) return names;
  for (const std::string& name : *names) {
    if (absl::c_linear_search(kPeers, name)) continue;
    return InvalidArgumentError(absl::StrCat("--against: unknown peer '", name, "'",
                                             ir::suggest(name, kPeers),
                                             "; peers: ", absl::StrJoin(kPeers, ", ")));
  }
  return names;
}

}  // namespace

Exit bench_kernels(const BenchOptions& options) {
  const StatusOr<std::string> programs = measure_folder();
  if (!programs.ok()) return failed(programs.status());
  const StatusOr<Json> cases = all_cases(options, *programs);
  if (!cases.ok()) return misused(cases.status());
  const StatusOr<std::vector<std::string>> against = peers(options.against);
  if (!against.ok()) return misused(against.status());
  for (const std::string& file : {options.json, options.plot}) {
    if (file.empty()) continue;
    if (Status s = check_writable(file); !s.ok()) return misused(s);
  }
  const std::string name = options.device.empty() ? "cuda:0" : options.device;
  if (const StatusOr<Device> device = open_device(name); !device.ok()) {
    return IsInvalidArgument(device.status()) ? misused(device.status()) : failed(device.status());
  }
  if (!against->empty() && !absl::StartsWith(name, "cuda")) {
    return misused(absl::StrCat("--against: peers run on a GPU, and ", name,
                                " is an interpreter; fix: leave --against out"));
  }
  const StatusOr<std::string> library = shared_library();
  if (!library.ok()) return failed(library.status());
  const Json request = {
      {"library", *library},  {"device", name},           {"cases", *cases},
      {"against", *against},  {"rounds", options.rounds}, {"command", options.command},
      {"json", options.json}, {"plot", options.plot},     {"report", options.report}};
  return run_python("bench", "bench.py", request);
}

}  // namespace heddle::tools
