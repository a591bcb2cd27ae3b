#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "heddle/dsl/kernel_declaration_internal.h"
#include "heddle/ir/wording.h"

namespace heddle::detail {
namespace {

// The texts between commas that stand in no brackets, without spaces around them.
std::vector<absl::string_view> split(absl::string_view text) {
  std::vector<absl::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    parts.push_back(absl::StripAsciiWhitespace(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return parts;
}

// "m", "1024" or "?".
bool parse_extent(absl::string_view text, ir::DeclaredExtent& extent) {
  if (text == "?") return true;
  int64_t number = 0;
  if (absl::SimpleAtoi(text, &number)) {
    extent.number = number;
    return number >= 0;
  }
  extent.name = std::string(text);
  return ir::is_identifier(text);
}

// "a[m, k]". What is wrong with it; empty: nothing.
std::string parse_param(absl::string_view text, KernelDeclaration::Param& param) {
  const size_t open = text.find('[');
  param.name = std::string(absl::StripAsciiWhitespace(text.substr(0, open)));
  if (!ir::is_identifier(param.name)) {
    return absl::StrCat("a parameter's name is an identifier, and '", param.name, "' is none");
  }
  if (open == absl::string_view::npos) return "";
  if (!absl::EndsWith(text, "]")) {
    return absl::StrCat("the extents of '", param.name, "' do not end with ']'");
  }
  for (const absl::string_view part : split(text.substr(open + 1, text.size() - open - 2))) {
    if (parse_extent(part, param.extents.emplace_back())) continue;
    return absl::StrCat("'", part, "' in the extents of '", param.name,
                        "' is neither a name, nor a number from 0 up, nor '?'");
  }
  return "";
}

// What is wrong with the kernel's name and the parentheses; empty: nothing.
std::string parse_frame(absl::string_view text, KernelDeclaration& declaration,
                        absl::string_view& inside) {
  const size_t open = text.find('(');
  declaration.name = std::string(absl::StripAsciiWhitespace(text.substr(0, open)));
  if (open != absl::string_view::npos) {
    if (!absl::EndsWith(text, ")")) {
      return absl::StrCat("the parameters' names in '", text, "' do not end with ')'");
    }
    inside = absl::StripAsciiWhitespace(text.substr(open + 1, text.size() - open - 2));
  }
  if (ir::is_identifier(declaration.name)) return "";
  return absl::StrCat("a kernel's name is an identifier, and '", declaration.name, "' is none");
}

std::string parse_params(absl::string_view inside, KernelDeclaration& declaration) {
  if (inside.empty()) return "";
  for (const absl::string_view part : split(inside)) {
    if (part == "..." && part.end() == inside.end()) {
      declaration.names_all = false;
      return "";
    }
    KernelDeclaration::Param param;
    if (std::string mistake = parse_param(part, param); !mistake.empty()) return mistake;
    for (const KernelDeclaration::Param& other : declaration.params) {
      if (other.name == param.name) {
        return absl::StrCat("two parameters are named '", param.name, "'");
      }
    }
    declaration.params.push_back(std::move(param));
  }
  return "";
}

// An extent with a parameter's name is that number.
std::string check_name(const std::string& name, absl::Span<const ir::ParamInfo> params) {
  for (const ir::ParamInfo& param : params) {
    if (param.name != name || (!param.type.is_view() && ir::is_integer(param.type.scalar)))
      continue;
    return absl::StrCat("an extent is named '", name,
                        "', and the parameter of that name is no integer");
  }
  return "";
}

}  // namespace

KernelDeclaration parse_kernel_declaration(absl::string_view text) {
  KernelDeclaration declaration;
  absl::string_view inside;
  declaration.mistake = parse_frame(text, declaration, inside);
  if (declaration.mistake.empty()) declaration.mistake = parse_params(inside, declaration);
  return declaration;
}

std::string declare_params(const KernelDeclaration& declaration, absl::Span<ir::ParamInfo> params) {
  const size_t named = declaration.params.size();
  const bool fits =
      declaration.names_all ? named == 0 || named == params.size() : named <= params.size();
  if (!fits) {
    return absl::StrCat(ir::counted(static_cast<int64_t>(named), "parameter name"),
                        " for a lambda that takes ", params.size(),
                        " (each member of a struct is one)");
  }
  for (size_t i = 0; i < named; ++i) params[i].name = declaration.params[i].name;
  for (size_t i = 0; i < named; ++i) {
    const std::vector<ir::DeclaredExtent>& said = declaration.params[i].extents;
    const int64_t modes =
        params[i].type.is_view() && !params[i].unbounded ? params[i].type.rank : 0;
    if (!said.empty() && static_cast<int64_t>(said.size()) != modes) {
      return absl::StrCat("'", params[i].name, "' has ", ir::counted(modes, "mode"), ", and ",
                          ir::counted(static_cast<int64_t>(said.size()), "extent"),
                          " in its declaration");
    }
    for (const ir::DeclaredExtent& extent : said) {
      if (std::string mistake = check_name(extent.name, params); !mistake.empty()) return mistake;
    }
  }
  for (size_t i = 0; i < named; ++i) params[i].extents = declaration.params[i].extents;
  return "";
}

}  // namespace heddle::detail
