#include "absl/strings/str_format.h"
#include "heddle/tools/command/commands.h"
#include "heddle/tools/command/output.h"
#include "heddle/tools/command/reference/page.h"

namespace heddle::tools {

Exit write_reference(const ReferenceOptions& options) {
  const StatusOr<std::string> page = reference_page();
  if (!page.ok()) return failed(page.status());
  if (options.output.empty()) {
    print(*page);
    return Exit::kDone;
  }
  if (Status s = write_file(options.output, *page); !s.ok()) return misused(s);
  return Exit::kDone;
}

}  // namespace heddle::tools
