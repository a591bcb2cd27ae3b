// What a cubin (the ELF file that ptxas writes and the driver loads) says about itself, read with a
// check of every bound.
//
//   StatusOr<Cubin> cubin = read_cubin(bytes);
//   if (cubin.ok() && cubin->sm == 90 && cubin->has_entry("row_sum")) load(bytes);
//
// An assembler that ran out of disk ends with exit code 0 and half a file, and a cache can be
// damaged: nothing is loaded or kept that does not pass here.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {

struct CubinSection {
  absl::string_view name;  // points into the cubin's bytes
  uint64_t size = 0;       // bytes; also of a section that takes no room in the file
};

struct Cubin {
  int sm = 0;  // architecture number: 90 for sm_90 and sm_90a; the file does not tell the two apart
  std::vector<CubinSection> sections;

  // nullptr: there is none.
  const CubinSection* find(absl::string_view name) const;
  // Whether it holds code of that kernel.
  bool has_entry(absl::string_view kernel) const;
};

// kDataLoss, with what is wrong, for anything but a whole 64-bit little-endian ELF file for CUDA
// whose tables and sections all lie inside it. `bytes` must outlive the result.
StatusOr<Cubin> read_cubin(absl::string_view bytes);

}  // namespace heddle::codegen
