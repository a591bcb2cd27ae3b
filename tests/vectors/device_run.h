// Runs cases on a device.
#pragma once

#include <vector>

#include "heddle/ir/status.h"
#include "heddle/runtime/device.h"
#include "vectors/case.h"
#include "vectors/inputs.h"

namespace heddle::vectors {

// What the device makes of each case's inputs. Operands come from memory, so no pass knows them;
// the kernel is compiled as every kernel is.
StatusOr<std::vector<Column>> run_on(const Device& device, absl::Span<const Case> cases,
                                     absl::Span<const std::vector<Column>> inputs);

}  // namespace heddle::vectors
