// What a fuzzer reports of its run.
#pragma once

#include <string>

#include "nlohmann/json.hpp"

namespace heddle::fuzz {

// The date in UTC, as 2026-01-31.
std::string today();

// Prints the report as JSON, or writes it to a file; an empty name: to none.
void report(const nlohmann::ordered_json& json, bool print, const std::string& file);

}  // namespace heddle::fuzz
