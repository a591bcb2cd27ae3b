// Writes the text and the machine code that a command makes.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"

namespace heddle::tools {

// Overwrites the file. The message starts with the path.
Status write_file(const std::string& path, absl::string_view contents);

// Whether write_file, or anything else, could write there; touches nothing. The same message.
Status check_writable(const std::string& path);

// Whether what is printed goes to a person, who cannot read machine code.
bool stdout_is_terminal();
void print(absl::string_view text);

}  // namespace heddle::tools
