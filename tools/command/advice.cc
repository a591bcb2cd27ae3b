#include "heddle/tools/command/advice.h"

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "heddle/codegen/toolchain/tool_path.h"

namespace heddle::tools {
namespace {

using codegen::Tool;

// Whether the message says why the program that the tool's variable names cannot be used.
bool blames_variable(absl::string_view message, Tool tool) {
  const std::string variable(codegen::tool_variable(tool));
  const char* const value = std::getenv(variable.c_str());
  // Looking for a tool may run it, so only where the message names the variable.
  if (value == nullptr || *value == '\0' || !absl::StrContains(message, variable)) return false;
  const Status why = codegen::find_tool(tool).status();
  return !why.ok() && absl::StrContains(message, why.message());
}

}  // namespace

std::string advise(absl::string_view message) {
  std::string text = absl::StrReplaceAll(
      message, {{"Device::open(\"interp\")", "--device interp"},
                {"fix: set ", "fix: --set "},
                {"fix: set HEDDLE_", "fix: set HEDDLE_"}});  // a variable; the longest match counts
  for (const Tool tool : {Tool::kPtxas, Tool::kPtxLibrary, Tool::kNvdisasm, Tool::kCuobjdump}) {
    if (!blames_variable(message, tool)) continue;
    absl::StrAppend(&text, "; fix: unset ", codegen::tool_variable(tool),
                    ", or set it to the absolute path of ", codegen::tool_name(tool));
  }
  return text;
}

}  // namespace heddle::tools
