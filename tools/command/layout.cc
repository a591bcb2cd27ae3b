// The layout calculator.
#include <iostream>

#include "absl/strings/match.h"
#include "heddle/dsl/layout/calculator.h"
#include "heddle/dsl/layout/draw.h"
#include "heddle/tools/command/commands.h"
#include "heddle/tools/command/output.h"

namespace heddle::tools {
namespace {

// A line each; whoever writes them one by one gets each answer at once.
Exit answer_lines() {
  std::ios::sync_with_stdio(false);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::cout << evaluate(line) << '\n';
    if (std::cin.rdbuf()->in_avail() == 0) std::cout.flush();
  }
  std::cout.flush();
  return Exit::kDone;
}

}  // namespace

Exit calculate_layout(const LayoutOptions& options) {
  if (options.functions) {
    for (const std::string& function : calculator_functions()) print(function + "\n");
    return Exit::kDone;
  }
  if (options.batch) {
    if (!options.expression.empty()) return misused("--batch reads expressions, and takes none");
    return answer_lines();
  }
  if (options.expression.empty()) {
    return misused("layout needs an expression, such as 'zipped_divide((8,8):(8,1), (2,4))'");
  }
  const LayoutValue value = evaluate_layout(options.expression);
  const std::string text = to_string(value);
  if (absl::StartsWith(text, "error: ")) return misused(text.substr(7));
  if (!options.table) {
    print(text + "\n");
    return Exit::kDone;
  }
  const Layout layout = parse_layout(options.expression);
  if (!layout.ok()) return misused(layout.error());
  const std::string table = layout_table(layout);
  if (absl::StartsWith(table, "error: ")) return misused(table.substr(7, table.size() - 8));
  print(table);
  return Exit::kDone;
}

}  // namespace heddle::tools
