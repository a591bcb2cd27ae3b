#include "heddle/ir/passes/rewrite_rule.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/check.h"
#include "heddle/ir/custom_op.h"
#include "heddle/ir/passes/rewrite.h"
#include "heddle/ir/text/literal.h"
#include "heddle/ir/text/printer.h"
#include "heddle/ir/wording.h"

namespace heddle::ir {
namespace {

// A side of a rule as a tree.
struct Pattern {
  enum class Kind : uint8_t { kName, kNumber, kOp };
  Kind kind = Kind::kName;
  std::string text;  // the name or number
  Opcode opcode{};   // of an op
  Type type = Type::none();
  std::vector<Pattern> operands{};
};

bool is_word_char(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-' ||
         c == '+' || c == ':' || c == '<' || c == '>';
}

class PatternParser {
 public:
  // `what`: the pattern or the replacement of a rule.
  PatternParser(absl::string_view what, absl::string_view text)
      : what_(what), text_(text), rest_(text) {}

  StatusOr<Pattern> parse() {
    skip_blanks();
    if (rest_.empty())
      return InvalidArgumentError(absl::StrCat("the ", what_, " of a rule is empty"));
    StatusOr<Pattern> pattern = one();
    if (!pattern.ok()) return pattern;
    skip_blanks();
    if (!rest_.empty()) return wrong("'", rest_, "' stands behind its end");
    return pattern;
  }

 private:
  template <class... Text>
  Status wrong(Text... text) const {
    return InvalidArgumentError(absl::StrCat(text..., " in the ", what_, " '", text_, "'"));
  }
  void skip_blanks() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }
  absl::string_view word() {
    skip_blanks();
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_word_char);
    const auto length = static_cast<size_t>(end - rest_.begin());
    const absl::string_view found = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return found;
  }

  StatusOr<Pattern> one() {
    skip_blanks();
    if (rest_.empty() || rest_[0] != '(') {
      const absl::string_view found = word();
      if (found.empty()) {
        return rest_.empty() ? wrong("an operand is missing at the end")
                             : wrong("an operand is missing before '", rest_, "'");
      }
      Pattern leaf;
      leaf.text = std::string(found);
      const char first = found[0];
      const bool number = absl::ascii_isdigit(static_cast<unsigned char>(first)) || first == '-';
      leaf.kind = number ? Pattern::Kind::kNumber : Pattern::Kind::kName;
      if (number && !is_number(found)) return wrong("'", found, "' is no number");
      return leaf;
    }
    rest_.remove_prefix(1);
    Pattern op;
    op.kind = Pattern::Kind::kOp;
    absl::string_view name = word();
    if (const size_t colon = name.find(':'); colon != absl::string_view::npos) {
      const auto type = type_from_string(name.substr(colon + 1));
      if (!type) return wrong("'", name.substr(colon + 1), "' is no type");
      op.type = *type;
      name = name.substr(0, colon);
    }
    const auto opcode = opcode_from_mnemonic(name);
    if (!opcode) return wrong("there is no op '", name, "'", suggest(name, mnemonics()));
    op.opcode = *opcode;
    const OpInfo& row = info(*opcode);
    if (!has(row, kPure) || has(row, kRegions) || row.signature.result_count != 1) {
      return wrong("'", name, "' is no pure op with one result");
    }
    for (int i = 0; i < row.attr_count; ++i) {
      if (row.attrs[static_cast<size_t>(i)].required) {
        return wrong("'", name, "' needs attributes, which patterns have none of");
      }
    }
    for (skip_blanks(); !rest_.empty() && rest_[0] != ')'; skip_blanks()) {
      StatusOr<Pattern> operand = one();
      if (!operand.ok()) return operand;
      op.operands.push_back(*std::move(operand));
    }
    if (rest_.empty()) return wrong("a ')' is missing");
    rest_.remove_prefix(1);
    const Signature& signature = row.signature;
    const auto most = static_cast<size_t>(signature.operand_count);
    const Arity last = most == 0 ? Arity::kOne : signature.operands[most - 1].arity;
    const size_t least = last == Arity::kOne ? most : most - 1;
    if (op.operands.size() < least || (last != Arity::kMany && op.operands.size() > most)) {
      return wrong("'", name, "' takes ", counted(static_cast<int64_t>(most), "operand"), ", not ",
                   op.operands.size());
    }
    return op;
  }

  // Of some type.
  static bool is_number(absl::string_view text) {
    constexpr Scalar kWidest[] = {Scalar::kI64, Scalar::kU64, Scalar::kF64};
    return std::any_of(std::begin(kWidest), std::end(kWidest),
                       [&](Scalar scalar) { return literal_from_string(scalar, text).ok(); });
  }

  static std::vector<absl::string_view> mnemonics() {
    std::vector<absl::string_view> all;
    for (const Opcode each : all_opcodes()) all.push_back(info(each).mnemonic);
    return all;
  }

  absl::string_view what_, text_, rest_;
};

// Every name of a side must be one of the match.
Status check_names(const Pattern& pattern, const Pattern& match, const RewriteRule& rule) {
  const std::function<bool(const Pattern&, absl::string_view)> has_name =
      [&](const Pattern& p, absl::string_view name) {
        return (p.kind == Pattern::Kind::kName && p.text == name) ||
               std::any_of(p.operands.begin(), p.operands.end(),
                           [&](const Pattern& operand) { return has_name(operand, name); });
      };
  if (pattern.kind == Pattern::Kind::kName && !has_name(match, pattern.text)) {
    return InvalidArgumentError(absl::StrCat("'", pattern.text, "' of '", rule.replace,
                                             "' is no name of the pattern '", rule.match, "'"));
  }
  for (const Pattern& operand : pattern.operands) {
    if (Status wrong = check_names(operand, match, rule); !wrong.ok()) return wrong;
  }
  return OkStatus();
}

struct ReadRule {
  Pattern match, replace;
  std::function<bool(const RuleMatch&)> when;
  std::string text;
};

StatusOr<std::vector<ReadRule>> read(const std::vector<RewriteRule>& rules) {
  std::vector<ReadRule> all;
  for (const RewriteRule& rule : rules) {
    StatusOr<Pattern> match = PatternParser("pattern", rule.match).parse();
    if (!match.ok()) return match.status();
    if (match->kind != Pattern::Kind::kOp) {
      return InvalidArgumentError(absl::StrCat("the pattern '", rule.match, "' is no op"));
    }
    StatusOr<Pattern> replace = PatternParser("replacement", rule.replace).parse();
    if (!replace.ok()) return replace.status();
    if (Status wrong = check_names(*replace, *match, rule); !wrong.ok()) return wrong;
    all.push_back({*std::move(match), *std::move(replace), rule.when,
                   absl::StrCat(rule.match, " -> ", rule.replace)});
  }
  return all;
}

}  // namespace

ValueId RuleMatch::operator[](absl::string_view name) const {
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  context_.fail(InvalidArgumentError(
      absl::StrCat("RuleMatch asks for '", name, "', which the pattern of a rule on '",
                   info(kernel().op(root_)).mnemonic, "' does not name")));
  return kernel().op(root_).result();
}

IntRange RuleMatch::range(absl::string_view name) const {
  return analysis<GuardedInts>().range((*this)[name]);
}

bool RuleMatch::divisible(absl::string_view name, int64_t by) const {
  return analysis<GuardedInts>().divisible((*this)[name], by);
}

// Tries a pattern on a value, and remembers what its names stand for.
class RuleMatcher {
 public:
  RuleMatcher(RuleMatch& match, const IdMap<ValueId, uint8_t>& tied) : match_(match), tied_(tied) {}

  bool matches(const Pattern& pattern, OpId id) {
    const Kernel& kernel = match_.kernel();
    const Op& op = kernel.op(id);
    if (op.opcode != pattern.opcode || !op.attrs.empty()) return false;
    if (op.operands.size() != pattern.operands.size()) return false;
    if (pattern.type != Type::none() && kernel.type(op.result()) != pattern.type) return false;
    const auto before = match_.values_;
    if (all_match(pattern, op, /*swapped=*/false)) return true;
    match_.values_ = before;
    if (!has(info(op), kCommutative) || op.operands.size() < 2) return false;
    if (all_match(pattern, op, /*swapped=*/true)) return true;
    match_.values_ = before;
    return false;
  }

 private:
  bool all_match(const Pattern& pattern, const Op& op, bool swapped) {
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const size_t at = swapped && i < 2 ? 1 - i : i;
      if (!matches_value(pattern.operands[i], op.operands[at])) return false;
    }
    return true;
  }

  bool matches_value(const Pattern& pattern, ValueId value) {
    // Its registers are handed on to another value, so it must not live longer.
    if (tied_[value] != 0) return false;
    const Kernel& kernel = match_.kernel();
    switch (pattern.kind) {
      case Pattern::Kind::kName: {
        const auto [known, is_new] = match_.values_.emplace(pattern.text, value);
        return is_new || known->second == value;
      }
      case Pattern::Kind::kNumber: {
        const std::optional<uint64_t> bits = kernel.constant_bits(value);
        const StatusOr<uint64_t> wanted =
            literal_from_string(kernel.type(value).scalar, pattern.text);
        return bits && wanted.ok() && *bits == *wanted;
      }
      case Pattern::Kind::kOp:
        break;
    }
    const OpId def = kernel.value(value).def;
    return valid(def) && matches(pattern, def);
  }

  RuleMatch& match_;
  const IdMap<ValueId, uint8_t>& tied_;
};

namespace {

class Rewriting {
 public:
  Rewriting(PassContext& context, const std::vector<ReadRule>& rules)
      : context_(context),
        kernel_(context.kernel()),
        rules_(rules),
        tied_(tied_values(kernel_)),
        builder_(kernel_) {}

  StatusOr<bool> run() {
    std::vector<OpId> ops;
    kernel_.walk([&](OpId id) { ops.push_back(id); });
    for (const OpId id : ops) {
      replaced_.resolve_operands(kernel_.op(id));
      if (Status wrong = visit(id); !wrong.ok()) return wrong;
    }
    replaced_.apply_everywhere(kernel_);
    return changed_;
  }

 private:
  Status visit(OpId id) {
    for (const ReadRule& rule : rules_) {
      if (kernel_.op(id).opcode != rule.match.opcode) continue;
      // The registers of a fragment that is handed on are the op's own.
      if (tied_[kernel_.op(id).result()] != 0) continue;
      RuleMatch match(context_, id);
      if (!RuleMatcher(match, tied_).matches(rule.match, id)) continue;
      if (rule.when != nullptr && !rule.when(match)) continue;
      return replace(id, rule, match);
    }
    return OkStatus();
  }

  Status replace(OpId id, const ReadRule& rule, const RuleMatch& match) {
    builder_.set_insertion_before(id);
    builder_.set_loc(kernel_.op(id).loc);
    const ValueId result = kernel_.op(id).result();
    const Type type = kernel_.type(result);
    const StatusOr<ValueId> made = make(rule.replace, match, type);
    if (!made.ok()) return made.status();
    if (kernel_.type(*made) != type) {
      return InvalidArgumentError(absl::StrCat(
          "the rule '", rule.text, "' gives ", to_string(kernel_.type(*made)), " in the place of ",
          to_string(type), "; end it with an op of that type, such as (convert:", to_string(type),
          " …)"));
    }
    inherit_name(kernel_, *made, result);
    replaced_.add(result, *made);
    changed_ = true;
    return OkStatus();
  }

  static Role role_of(Opcode opcode, size_t operand) {
    const Signature& signature = info(opcode).signature;
    const size_t last = static_cast<size_t>(signature.operand_count) - 1;
    return signature.operands[std::min(operand, last)].role;
  }
  // The type of a number as an operand of an op whose data is of a type.
  static Type number_type(Opcode opcode, size_t operand, Type data) {
    const auto as = [&](Scalar scalar) {
      return Type{.kind = data.kind, .scalar = scalar, .count = data.count};
    };
    switch (role_of(opcode, operand)) {
      case Role::kBool:
        return Type::of(Scalar::kBool);
      case Role::kBoolLikeT:
        return as(Scalar::kBool);
      case Role::kI32:
        return Type::of(Scalar::kI32);
      case Role::kU32:
        return Type::of(Scalar::kU32);
      case Role::kI64:
        return Type::of(Scalar::kI64);
      default:
        return data;
    }
  }

  // `like`: the type of a number.
  StatusOr<ValueId> make(const Pattern& pattern, const RuleMatch& match, Type like) {
    if (pattern.kind == Pattern::Kind::kName) return match[pattern.text];
    if (pattern.kind == Pattern::Kind::kNumber) {
      const StatusOr<uint64_t> bits = literal_from_string(like.scalar, pattern.text);
      if (!bits.ok()) return bits.status();
      return builder_.constant(like, *bits);
    }
    absl::InlinedVector<ValueId, 4> operands(pattern.operands.size(), ValueId::kNone);
    Type first = like;
    for (const bool numbers : {false, true}) {
      for (size_t i = operands.size(); i-- > 0;) {
        const Pattern& operand = pattern.operands[i];
        if ((operand.kind == Pattern::Kind::kNumber) != numbers) continue;
        const Type wanted = numbers ? number_type(pattern.opcode, i, first) : like;
        const StatusOr<ValueId> made = make(operand, match, wanted);
        if (!made.ok()) return made;
        operands[i] = *made;
        if (role_of(pattern.opcode, i) == Role::kT) first = kernel_.type(*made);
      }
    }
    return builder_.create(pattern.opcode, operands, pattern.type);
  }

  PassContext& context_;
  Kernel& kernel_;
  const std::vector<ReadRule>& rules_;
  IdMap<ValueId, uint8_t> tied_;
  Builder builder_;
  Replacements replaced_;
  bool changed_ = false;
};

}  // namespace

Pass rewrite_pass(Pass pass, std::vector<RewriteRule> rules) {
  auto all = std::make_shared<const StatusOr<std::vector<ReadRule>>>(read(rules));
  pass.run = [all](PassContext& context) -> StatusOr<bool> {
    if (!all->ok()) return all->status();
    return Rewriting(context, **all).run();
  };
  return pass;
}

}  // namespace heddle::ir
