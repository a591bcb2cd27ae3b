#include "heddle/ir/op_info.h"

#include "absl/container/flat_hash_map.h"
#include "heddle/ir/check.h"

namespace heddle::ir {
namespace {

// The words that ops.def's columns use.
struct DataClassName {
  absl::string_view name;
  DataClass data_class;
};
constexpr DataClassName kDataClassNames[] = {
    {"none", DataClass::kNone},      {"num", DataClass::kNumber},
    {"int", DataClass::kInteger},    {"float", DataClass::kFloat},
    {"bits", DataClass::kIntOrBool}, {"word", DataClass::kIntFloatOrBool},
    {"data", DataClass::kData},
};

constexpr Scope kNone = Scope::kThread;
constexpr Scope kWarp = Scope::kWarp;
constexpr Scope kWarpGroup = Scope::kWarpGroup;
constexpr Scope kBlock = Scope::kBlock;
constexpr Scope kCluster = Scope::kCluster;

using enum Targets;

constexpr Effects no_effects() { return {}; }
constexpr Effects orders() { return {.orders = true}; }
constexpr Effects reads(int a) { return {.reads = static_cast<uint8_t>(1 << a)}; }
constexpr Effects reads(int a, int b) { return {.reads = static_cast<uint8_t>(1 << a | 1 << b)}; }
// Reads and writes, and orders all others.
constexpr Effects updates(int a) {
  return {.reads = static_cast<uint8_t>(1 << a),
          .writes = static_cast<uint8_t>(1 << a),
          .orders = true};
}
// From operand 1 to operand 0, complete after the op that waits.
constexpr Effects copies() { return {.reads = 2, .writes = 1, .async = true}; }
// The same, and tells operand 3 of it.
constexpr Effects bulk_load() { return {.reads = 2, .writes = 1 | 8, .async = true}; }
// Reads operand 1 and updates operand 0; may tell operand 3 of it.
constexpr Effects bulk_reduce() { return {.reads = 1 | 2, .writes = 1 | 8, .async = true}; }
// Whatever it likes.
constexpr Effects anything() {
  return {.orders = true, .unnamed = true, .admits = Admits::kOtherGrids};
}
constexpr Effects writes(int a) { return {.writes = static_cast<uint8_t>(1 << a)}; }

// A word at a time from `text`; the empty word ends it.
constexpr absl::string_view next_word(absl::string_view& text) {
  size_t begin = 0;
  while (begin < text.size() && text[begin] == ' ') ++begin;
  size_t end = begin;
  while (end < text.size() && text[end] != ' ') ++end;
  const absl::string_view word = text.substr(begin, end - begin);
  text = text.substr(end);
  return word;
}

constexpr bool same(absl::string_view a, absl::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

struct RoleName {
  absl::string_view name;
  Role role;
};
constexpr RoleName kRoleNames[] = {
    {"T", Role::kT},       {"B", Role::kBoolLikeT},  {"U", Role::kDataLikeT},
    {"I", Role::kIndex},   {"E", Role::kElement},    {"V", Role::kView},
    {"S", Role::kSlot},    {"C", Role::kCheck},      {"F", Role::kFragment},
    {"Q", Role::kPending}, {"D", Role::kDescriptor}, {"X", Role::kAny},
    {"i32", Role::kI32},   {"u32", Role::kU32},      {"i64", Role::kI64},
    {"bool", Role::kBool},
};

// A malformed row stops the build: a constant expression cannot throw.
constexpr Position parse_position(absl::string_view word) {
  Position position;
  while (!word.empty()) {
    const char last = word[word.size() - 1];
    if (last == '?') {
      position.arity = Arity::kOptional;
    } else if (last == '*') {
      position.arity = Arity::kMany;
    } else if (last == '!') {
      position.tied = true;
    } else {
      break;
    }
    word = word.substr(0, word.size() - 1);
  }
  for (const RoleName& entry : kRoleNames) {
    if (same(entry.name, word)) {
      position.role = entry.role;
      return position;
    }
  }
  throw "unknown word in a signature of ops.def";
}

constexpr Signature parse_signature(absl::string_view text) {
  Signature signature;
  bool results = false;
  for (absl::string_view word = next_word(text); !word.empty(); word = next_word(text)) {
    if (same(word, "->")) {
      results = true;
    } else if (results) {
      signature.results[signature.result_count++] = parse_position(word);
    } else {
      signature.operands[signature.operand_count++] = parse_position(word);
    }
  }
  if (!results) throw "a signature of ops.def lacks its arrow";
  return signature;
}

constexpr AttrRule parse_attr(absl::string_view word) {
  AttrRule rule;
  if (word[word.size() - 1] == '?') {
    rule.required = false;
    word = word.substr(0, word.size() - 1);
  }
  for (int i = 0; i < kAttrKeyCount; ++i) {
    if (same(kAttrs[i].name, word)) {
      rule.key = static_cast<AttrKey>(i);
      return rule;
    }
  }
  throw "unknown attribute in ops.def";
}

constexpr DataClass parse_data_class(absl::string_view word) {
  for (const DataClassName& entry : kDataClassNames) {
    if (same(entry.name, word)) return entry.data_class;
  }
  throw "unknown data class in ops.def";
}

constexpr OpInfo make_info(absl::string_view mnemonic, absl::string_view signature,
                           absl::string_view data_class, absl::string_view attrs, int traits,
                           Scope convergence, Effects effects, Targets targets) {
  OpInfo result;
  result.mnemonic = mnemonic;
  result.signature = parse_signature(signature);
  result.data_class = parse_data_class(data_class);
  for (absl::string_view word = next_word(attrs); !word.empty(); word = next_word(attrs)) {
    result.attrs[result.attr_count++] = parse_attr(word);
  }
  result.traits = static_cast<uint16_t>(traits);
  result.convergence = convergence;
  result.effects = effects;
  result.targets = targets;
  return result;
}

// The data class is a string because two of its words are keywords.
#define HEDDLE_OP(name, mnemonic, signature, data_class, attrs, traits, convergence, effects, \
                  targets)                                                                    \
  make_info(mnemonic, signature, #data_class, attrs, traits, convergence, effects, targets),
constexpr OpInfo kOps[] = {
#include "heddle/ir/ops.def"
};
#undef HEDDLE_OP
static_assert(std::size(kOps) == kOpcodeCount);

constexpr absl::string_view kScopeNames[] = {"thread", "warp",    "warp group",
                                             "block",  "cluster", "grid"};
static_assert(std::size(kScopeNames) == kScopeCount);

}  // namespace

const OpInfo& info(Opcode opcode) { return kOps[static_cast<size_t>(opcode)]; }

absl::string_view name_of(Scope scope) { return kScopeNames[static_cast<size_t>(scope)]; }

std::optional<Opcode> opcode_from_mnemonic(absl::string_view mnemonic) {
  static const auto* const by_mnemonic = [] {
    auto* map = new absl::flat_hash_map<absl::string_view, Opcode>();
    for (int i = 0; i < kOpcodeCount; ++i) map->emplace(kOps[i].mnemonic, static_cast<Opcode>(i));
    return map;
  }();
  const auto it = by_mnemonic->find(mnemonic);
  if (it == by_mnemonic->end()) return std::nullopt;
  return it->second;
}

bool admits(DataClass data_class, Scalar scalar) {
  if (data_class != DataClass::kData && info(scalar).storage_only) return false;
  switch (data_class) {
    case DataClass::kNone:
      return false;
    case DataClass::kNumber:
      return is_integer(scalar) || is_float(scalar);
    case DataClass::kInteger:
      return is_integer(scalar);
    case DataClass::kFloat:
      return is_float(scalar);
    case DataClass::kIntOrBool:
      return is_integer(scalar) || scalar == Scalar::kBool;
    case DataClass::kIntFloatOrBool:
    case DataClass::kData:
      return scalar != Scalar::kNone;
  }
  check_failed(__FILE__, __LINE__, "data_class", "unknown data class");
}

}  // namespace heddle::ir
