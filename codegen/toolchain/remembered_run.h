// Runs of tools whose answers follow from what they are given, kept on disk (cache/disk_cache.h): their output is taken from
// there, and read and checked as that of a run is.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "heddle/codegen/cache/disk_cache.h"
#include "heddle/codegen/toolchain/subprocess.h"

namespace heddle::codegen {

// All that the answer depends on: `program` tells apart what other programs would answer; arguments, environment and input.
std::string run_key(absl::string_view program, const Command& command);

// What such a run printed and wrote; it took no time. nullopt where none is known, and where there is no cache.
std::optional<Finished> recall_run(DiskCache* cache, absl::string_view key);
// Keeps a run that has succeeded, and whose output is of use.
void remember_run(DiskCache* cache, absl::string_view key, absl::string_view label,
                  const Finished& run);

}  // namespace heddle::codegen
