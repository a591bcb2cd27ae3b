#include "heddle/ir/type.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "heddle/ir/check.h"

namespace heddle::ir {
namespace {

constexpr std::array<absl::string_view, kSpaceCount> kSpaceNames = {
    "none", "global", "shared", "shared_cluster", "param", "const", "local"};

// Type constructors with arguments, by the word before '<'.
constexpr std::array<absl::string_view, kTypeKindCount> kKindNames = {
    "none", "", "vec", "frag", "pending", "view", "check", "smem_desc", "tensor_map"};

absl::string_view kind_name(TypeKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

std::string content_to_string(Type type) {
  switch (type.kind) {
    case TypeKind::kNone:
    case TypeKind::kCheck:
      return std::string(kind_name(type.kind));
    case TypeKind::kScalar:
      return std::string(info(type.scalar).name);
    case TypeKind::kVector:
    case TypeKind::kFragment:
    case TypeKind::kPending:
      return absl::StrCat(kind_name(type.kind), "<", info(type.scalar).name, ", ", type.count, ">");
    case TypeKind::kView:
      return absl::StrCat("view<", type.read_only ? "const " : "", info(type.scalar).name, ", ",
                          name_of(type.space), ", ", static_cast<int>(type.rank), ">");
    case TypeKind::kDescriptor:
      return absl::StrCat("smem_desc<", info(type.scalar).name, ">");
    case TypeKind::kTensorMap:
      return absl::StrCat("tensor_map<", info(type.scalar).name, ", ", static_cast<int>(type.rank),
                          ">");
  }
  check_failed(__FILE__, __LINE__, "type.kind", "unknown type kind");
}

std::optional<Type> view_from_arguments(const std::vector<absl::string_view>& arguments) {
  if (arguments.size() != 3) return std::nullopt;
  absl::string_view element = arguments[0];
  const bool read_only = absl::ConsumePrefix(&element, "const ");
  const auto scalar = scalar_from_name(element);
  const auto space = space_from_name(arguments[1]);
  int rank = 0;
  if (!scalar || !space || !absl::SimpleAtoi(arguments[2], &rank)) return std::nullopt;
  if (rank < 0 || rank > 8) return std::nullopt;
  return Type::view(*scalar, *space, rank, read_only);
}

std::optional<Type> tensor_map_from_arguments(const std::vector<absl::string_view>& arguments) {
  if (arguments.size() != 2) return std::nullopt;
  const auto scalar = scalar_from_name(arguments[0]);
  int rank = 0;
  if (!scalar || !absl::SimpleAtoi(arguments[1], &rank)) return std::nullopt;
  if (rank < 1 || rank > kMaxTensorMapRank) return std::nullopt;
  return Type::tensor_map(*scalar, rank);
}

std::optional<Type> data_from_arguments(TypeKind kind,
                                        const std::vector<absl::string_view>& arguments) {
  if (arguments.size() != 2) return std::nullopt;
  const auto scalar = scalar_from_name(arguments[0]);
  int count = 0;
  if (!scalar || !absl::SimpleAtoi(arguments[1], &count)) return std::nullopt;
  if (count < 1 || count > 0xFFFF) return std::nullopt;
  return Type{.kind = kind, .scalar = *scalar, .count = static_cast<uint16_t>(count)};
}

}  // namespace

std::optional<Scalar> scalar_from_name(absl::string_view name) {
  for (int i = 1; i < kScalarCount; ++i) {
    if (kScalars[i].name == name) return static_cast<Scalar>(i);
  }
  return std::nullopt;
}

absl::string_view name_of(Space space) { return kSpaceNames[static_cast<size_t>(space)]; }

std::optional<Space> space_from_name(absl::string_view name) {
  for (int i = 1; i < kSpaceCount; ++i) {
    if (kSpaceNames[i] == name) return static_cast<Space>(i);
  }
  return std::nullopt;
}

std::string to_string(Type type) {
  const std::string content = content_to_string(type.content());
  return type.slot ? absl::StrCat("var<", content, ">") : content;
}

std::optional<Type> type_from_string(absl::string_view text) {
  absl::string_view rest = absl::StripAsciiWhitespace(text);
  if (const auto scalar = scalar_from_name(rest)) return Type::of(*scalar);
  if (rest == "none") return Type::none();
  if (rest == "check") return Type::check();
  const size_t open = rest.find('<');
  if (open == absl::string_view::npos || !absl::ConsumeSuffix(&rest, ">")) return std::nullopt;
  const absl::string_view word = rest.substr(0, open);
  const absl::string_view inside = rest.substr(open + 1);
  if (word == "var") {
    const auto content = type_from_string(inside);
    if (!content || content->slot) return std::nullopt;
    return content->as_slot();
  }
  std::vector<absl::string_view> arguments = absl::StrSplit(inside, ',');
  for (absl::string_view& argument : arguments) argument = absl::StripAsciiWhitespace(argument);
  for (const TypeKind kind : {TypeKind::kVector, TypeKind::kFragment, TypeKind::kPending}) {
    if (word == kind_name(kind)) return data_from_arguments(kind, arguments);
  }
  if (word == "view") return view_from_arguments(arguments);
  if (word == "tensor_map") return tensor_map_from_arguments(arguments);
  if (word == "smem_desc" && arguments.size() == 1) {
    if (const auto scalar = scalar_from_name(arguments[0])) {
      return Type::descriptor(*scalar);
    }
  }
  return std::nullopt;
}

}  // namespace heddle::ir
