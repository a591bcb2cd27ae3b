// Recordings: what a device gave for every case, as a file.
//
//   heddle result vectors 1
//   device cuda:0, NVIDIA H200, …
//   case 65536 9f0c5d1e22a3b411 8012 convert f16 -> i32        vectors, checksum of inputs, bytes
//   ‹8012 bytes›
//   …
//
// Results follow as differences: see recording.cc.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"
#include "vectors/inputs.h"

namespace heddle::vectors {

struct Recorded {
  uint64_t inputs = 0;  // checksum of the columns
  Column results;
};

struct Recording {
  std::string device;
  std::map<std::string, Recorded> cases;  // by name
};

std::string to_text(const Recording& recording, absl::Span<const Case> cases);
// InvalidArgument where it is no recording. Cases are by their names; `cases` tells their types,
// and what is of no such case is an error, too.
StatusOr<Recording> parse_recording(absl::string_view text, absl::Span<const Case> cases);

}  // namespace heddle::vectors
