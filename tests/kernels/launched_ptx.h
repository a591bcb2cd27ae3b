// The PTX of what a call of an operation launches, without a GPU.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "heddle/runtime/compile.h"
#include "heddle/runtime/interp_backend.h"
#include "heddle/runtime/operation/bound_call.h"
#include "heddle/runtime/operation/dry_run.h"
#include "heddle/runtime/operation/registry.h"
#include "heddle/runtime/specialize.h"
#include "heddle/tools/command/execution.h"

namespace heddle {

// Without the lines that lead back to the source, which change with every comment there.
inline std::string without_places(absl::string_view ptx) {
  std::string text;
  for (const absl::string_view line : absl::StrSplit(ptx, '\n')) {
    const absl::string_view code = absl::StripLeadingAsciiWhitespace(line);
    if (absl::StartsWith(code, ".loc") || absl::StartsWith(code, ".file")) continue;
    absl::StrAppend(&text, line, "\n");
  }
  text.pop_back();
  return text;
}

// A device of sm_90a.
inline DeviceInfo hopper_info() {
  DeviceInfo info = runtime::InterpBackend::default_info();
  info.compute_major = 9;
  info.compute_minor = 0;
  info.cluster_launch = true;
  return info;
}

// Kernels' names and PTX, each once.
using LaunchedPtx = std::vector<std::pair<std::string, std::string>>;

// Those of a call with the operation's example shapes on such a device.
inline StatusOr<LaunchedPtx> launched_ptx(const runtime::Operation& operation,
                                          const runtime::Settings& given, const DeviceInfo& info) {
  const StatusOr<runtime::Settings> settings = operation.resolve({given.begin(), given.end()});
  if (!settings.ok()) return settings.status();
  const StatusOr<runtime::BoundCall> call = runtime::bind(operation, *settings, {});
  if (!call.ok()) return call.status();
  LaunchedPtx kernels;
  const Device device = runtime::open_dry_run(info, [&](const runtime::DryLaunch& launch) {
    const ir::Target& target = *ir::find_target("sm_90a");
    CompileOptions options;
    options.target = std::string(target.name);
    options.stage = Stage::kPtx;
    options.block = launch.shape.block;
    options.cluster = launch.shape.cluster;
    ir::Specialization arguments = runtime::specialize(*launch.source, launch.arguments, target);
    arguments.block = options.block;
    arguments.cluster = options.cluster;
    const auto compilation = runtime::compile_source(*launch.source, std::move(arguments), options);
    if (!compilation.ok()) return compilation.status();
    std::pair made(launch.source->name(), without_places((*compilation)->ptx.text));
    if (!absl::c_linear_search(kernels, made)) kernels.push_back(std::move(made));
    return OkStatus();
  });
  const StatusOr<tools::DeviceArguments> arguments =
      tools::DeviceArguments::allocate(device, *call);
  if (!arguments.ok()) return arguments.status();
  const Status done = call->function->call(device.default_stream(), arguments->arguments());
  if (!done.ok()) return done;
  return kernels;
}

}  // namespace heddle
