// Programs in Python that the heddle command starts: they measure beside peers that are Python's, or read other programs.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"
#include "heddle/tools/command/outcome.h"
#include "nlohmann/json_fwd.hpp"

namespace heddle::tools {

// The folder of the programs (tools/measure), and libheddle.so: of the build tree or the installation that this program lies in,
// or as HEDDLE_MEASURE and HEDDLE_LIBRARY say. kNotFound says where they were looked for.
StatusOr<std::string> measure_folder();
StatusOr<std::string> shared_library();

// Runs a program of the folder, which prints by itself, on a request. `purpose` is the subcommand. Its exit code is the command's.
// The Python is HEDDLE_PYTHON, or python3.
Exit run_python(absl::string_view purpose, const std::string& program,
                const nlohmann::ordered_json& request);

}  // namespace heddle::tools
