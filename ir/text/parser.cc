#include "heddle/ir/text/parser.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/custom_op.h"
#include "heddle/ir/text/literal.h"
#include "heddle/ir/text/parser_scope.h"
#include "heddle/ir/text/token_reader.h"
#include "heddle/ir/wording.h"

namespace heddle::ir {
namespace {

// Far beyond what anybody writes, and safe for every recursion over regions.
constexpr size_t kMaxDepth = 200;
// The hint behind a printed name: none for a number, and without the number that told it from
// others of its name.
absl::string_view hint_of(absl::string_view name) {
  name.remove_prefix(1);
  if (absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) return {};
  return name.substr(0, name.find('.'));
}

// What an op's line says before its regions.
struct OpText {
  std::vector<Token> results;
  Token mnemonic;
  Opcode opcode{};
  std::optional<Token> literal;
  std::vector<ValueId> operands;
  std::vector<Token> arguments;  // of the first region
  std::vector<Attr> attrs;
  std::vector<Type> types;
  OpId implied_yield = OpId::kNone;  // of an `else` that was left out
};

class Parser : private TokenReader {
 public:
  Parser(std::vector<Token> tokens, absl::string_view filename, ParseOptions options)
      : TokenReader(std::move(tokens), filename), options_(options) {}

  StatusOr<Kernel> parse_kernel() {
    const bool read =
        header() && expect("{", "to open the kernel's body") && body() && expect_end();
    if (!read) return error();
    return *std::move(kernel_);
  }

 private:
  bool operand(ValueId& value) {
    Token token;
    if (!expect_kind(TokenKind::kValue, "a value such as %x", token)) return false;
    const std::string why = scope_.find(token.text, value);
    return why.empty() || fail(token, why);
  }

  // Binds a name of the text to a value.
  bool define(const Token& name, ValueId value) {
    const std::string why = scope_.define(name.text, value, name.line);
    if (!why.empty()) return fail(name, why);
    const absl::string_view hint = hint_of(name.text);
    if (!hint.empty()) kernel_->value(value).name = kernel_->intern(hint);
    return true;
  }

  // --- The header ---

  bool header() {
    if (!expect("kernel", "at the start of a kernel") || !expect("@", "before the kernel's name")) {
      return false;
    }
    std::string name;
    const int line = peek().line;
    if (peek().kind == TokenKind::kString) {
      if (!string("the kernel's name", name)) return false;
    } else {
      Token token;
      if (!expect_kind(TokenKind::kWord, "the kernel's name", token)) return false;
      name = std::string(token.text);
    }
    kernel_.emplace(name);
    if (options_.text_as_source) kernel_->defined = kernel_->intern_loc(filename(), line);
    scope_.open();
    if (!expect("(", "before the parameters") || !list_until(")", [this] { return param(); })) {
      return false;
    }
    if (take_if("block") && !block()) return false;
    if (take_if("cluster") && !dim3(kernel_->cluster)) return false;
    if (take_if("min_blocks") && !min_blocks()) return false;
    if (take_if("target") && !target()) return false;
    if (!take_if("facts")) return true;
    return expect("(", "before the facts") && list_until(")", [this] { return fact(); });
  }

  bool param() {
    Token name;
    Type param_type;
    if (!expect_kind(TokenKind::kValue, "a parameter such as %x", name) ||
        !expect(":", "before the parameter's type") || !type(param_type)) {
      return false;
    }
    const ValueId value = kernel_->add_param(hint_of(name.text), param_type);
    if (hint_of(name.text).empty()) kernel_->value(value).name = StringId::kNone;
    if (!define(name, value)) return false;
    if (!param_type.is_view()) return true;
    Param& param = kernel_->params().back();
    param.unbounded = take_if("unbounded");
    return expect("[", "before the view's extents") && lengths(param.extents) &&
           expect("strides", "behind the view's extents") && expect("[", "before the strides") &&
           lengths(param.strides);
  }

  bool lengths(absl::InlinedVector<int64_t, 4>& values) {
    return list_until("]", [&] {
      int64_t value = kDynamic;
      if (!take_if("?") && !integer("length in elements (or '?')", int64_t{0}, value)) return false;
      values.push_back(value);
      return true;
    });
  }

  bool block() {
    if (peek(1).is("?")) {
      take();
      take();
      return expect(")", "behind '?'");
    }
    return dim3(kernel_->block);
  }

  bool dim3(Dim3& value) {
    int x, y, z;
    const bool right = expect("(", "before the extents") && integer("extent", 1, x) &&
                       expect(",", "before the second extent") && integer("extent", 1, y) &&
                       expect(",", "before the third extent") && integer("extent", 1, z) &&
                       expect(")", "behind the third extent");
    if (right) value = {x, y, z};
    return right;
  }

  bool min_blocks() {
    return expect("(", "before the number of blocks") &&
           integer("number of blocks", 1, kernel_->min_blocks) &&
           expect(")", "behind the number of blocks");
  }

  bool target() {
    Token name;
    if (!expect("(", "before the target's name") ||
        !expect_kind(TokenKind::kWord, "a target such as sm_90a", name)) {
      return false;
    }
    const Target* const found = find_target(name.text);
    if (found == nullptr) {
      return fail(name,
                  absl::StrCat("unknown target '", name.text, "'; there are ", target_names()));
    }
    kernel_->target = found;
    return expect(")", "behind the target's name");
  }

  // `%x align 16`, or with a mode `%x extent_div 1 4`.
  bool fact() {
    const Token param = peek();
    ValueId value = ValueId::kNone;
    Token name;
    if (!operand(value) || !expect_kind(TokenKind::kWord, "a fact's name", name)) return false;
    const auto row = std::find_if(kFacts.begin(), kFacts.end(),
                                  [&](const FactInfo& f) { return f.name == name.text; });
    if (row == kFacts.end()) {
      const std::string names = absl::StrJoin(
          kFacts, ", ", [](std::string* out, const FactInfo& f) { absl::StrAppend(out, f.name); });
      return fail(name, absl::StrCat("unknown fact '", name.text, "'; there are ", names));
    }
    int dim = 0;
    int64_t known = 0;
    if (row->per_dim && !integer("mode of the view", 0, dim)) return false;
    if (dim >= std::max<int>(1, kernel_->type(value).rank)) {
      return fail(name, absl::StrCat(param.text, " has no mode ", dim));
    }
    if (!integer("value of the fact", int64_t{-1}, known)) return false;
    const int index = *kernel_->param_index(value);
    if (index > std::numeric_limits<uint8_t>::max()) {
      return fail(param, "only the first 256 parameters can have facts");
    }
    const auto kind = static_cast<FactKind>(row - kFacts.begin());
    kernel_->set_fact({kind, static_cast<uint16_t>(index), static_cast<uint8_t>(dim)}, known);
    return true;
  }

  // --- Regions and ops ---

  // Behind the brace: ops until the closing one.
  bool body() {
    while (!peek().is("}")) {
      if (peek().kind == TokenKind::kEnd) {
        return fail(peek(), "the kernel's body is not closed; add '}'");
      }
      if (!op(kernel_->body())) return false;
    }
    take();
    scope_.close();
    return true;
  }

  // From behind the brace to the closing one; the arguments are in the region already.
  bool region(RegionId id, const std::vector<Token>& arguments, absl::string_view owner) {
    scope_.open();
    if (scope_.depth() > kMaxDepth) {
      return fail(peek(), absl::StrCat("regions nest deeper than ", kMaxDepth));
    }
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!define(arguments[i], kernel_->region(id).args[i])) return false;
    }
    while (!valid(kernel_->terminator(id))) {
      if (peek().is("}") || peek().kind == TokenKind::kEnd) {
        return fail(peek(), absl::StrCat("this region of '", owner,
                                         "' does not end in a yield; add one, with the values that "
                                         "it hands over"));
      }
      if (!op(id)) return false;
    }
    scope_.close();
    return expect("}", "behind the yield, which ends its region");
  }

  bool op(RegionId parent) {
    OpText text;
    const Token first = peek();
    if (!first.starts_line && !previous().is("{")) {
      return fail(first, absl::StrCat("expected the end of the line, found ", shown(first),
                                      "; each op has a line of its own"));
    }
    if (!op_head(text) || !op_types(text)) return false;
    if (text.opcode == Opcode::kYield && parent == kernel_->body()) {
      return fail(first, "a yield ends the region of an op; the kernel's body has none");
    }
    const LocId own_line =
        options_.text_as_source ? kernel_->intern_loc(filename(), first.line) : LocId::kNone;
    const OpId id = kernel_->new_op(text.opcode, text.operands, text.types, own_line);
    kernel_->append(parent, id);
    kernel_->op(id).attrs.assign(text.attrs.begin(), text.attrs.end());
    for (size_t i = 0; i < text.results.size(); ++i) {
      if (!define(text.results[i], kernel_->op(id).results[i])) return false;
    }
    if (has(info(text.opcode), kRegions)) {
      for (const Token& name : text.results) scope_.set_hidden(name.text, true);
      if (!regions(text, id)) return false;
      for (const Token& name : text.results) scope_.set_hidden(name.text, false);
    }
    return op_loc(text, id);
  }

  // `%a, %b = mnemonic operands {attributes}`
  bool op_head(OpText& text) {
    if (peek().kind == TokenKind::kValue) {
      do {
        if (!expect_kind(TokenKind::kValue, "a name for the next result",
                         text.results.emplace_back())) {
          return false;
        }
      } while (take_if(","));
      if (!expect("=", "behind the names of an op's results")) return false;
    }
    if (!expect_kind(TokenKind::kWord, "an op", text.mnemonic)) return false;
    const std::optional<Opcode> opcode = opcode_from_mnemonic(text.mnemonic.text);
    if (!opcode) {
      for (const RefusedOp& refused : refused_ops()) {
        if (refused.mnemonic == text.mnemonic.text) {
          return fail(text.mnemonic, std::string(refused.why.message()));
        }
      }
      std::vector<absl::string_view> mnemonics;
      for (const Opcode each : all_opcodes()) mnemonics.push_back(info(each).mnemonic);
      return fail(text.mnemonic, absl::StrCat("unknown op '", text.mnemonic.text, "'",
                                              suggest(text.mnemonic.text, mnemonics)));
    }
    text.opcode = *opcode;
    return inputs(text) && attrs(text);
  }

  // Whatever stands between the mnemonic and the attributes.
  bool inputs(OpText& text) {
    const OpInfo& row = info(text.opcode);
    const bool literal = row.attr_count > 0 && info(row.attrs[0].key).kind == AttrKind::kBits;
    if (literal) {
      if (peek().kind != TokenKind::kNumber && peek().kind != TokenKind::kWord) {
        return fail(peek(), absl::StrCat("expected a number, true or false behind '", row.mnemonic,
                                         "', found ", shown(peek())));
      }
      text.literal = take();
      return true;
    }
    if (text.opcode == Opcode::kFor) return for_inputs(text);
    if (text.opcode == Opcode::kWhile) return carried_inputs(text);
    // An op without operands may be followed by the next one, which starts with a value's name.
    if (peek().kind != TokenKind::kValue || peek().starts_line) return true;
    do {
      if (!operand(text.operands.emplace_back())) return false;
    } while (take_if(","));
    return true;
  }

  // `%i in %start .. %stop step %step carry(...)`
  bool for_inputs(OpText& text) {
    ValueId start, stop, step;
    if (!(expect_kind(TokenKind::kValue, "a name for the loop's variable",
                      text.arguments.emplace_back()) &&
          expect("in", "behind the loop's variable") && operand(start) &&
          expect("..", "between the loop's bounds") && operand(stop) &&
          expect("step", "behind the loop's bounds") && operand(step))) {
      return false;
    }
    text.operands = {start, stop, step};
    return carried_inputs(text);
  }

  // `carry(%a = %init, ...)`, or nothing.
  bool carried_inputs(OpText& text) {
    if (!take_if("carry")) return true;
    return expect("(", "behind 'carry'") && list_until(")", [&] {
             return expect_kind(TokenKind::kValue, "a name for the carried value",
                                text.arguments.emplace_back()) &&
                    expect("=", "before the first value") && operand(text.operands.emplace_back());
           });
  }

  // `{axis = x, width = 4}`. A region's brace is never followed by a word and '='.
  bool attrs(OpText& text) {
    if (!peek().is("{") || peek(1).kind != TokenKind::kWord || !peek(2).is("=")) return true;
    take();
    return list_until("}", [&] {
      Token name;
      return expect_kind(TokenKind::kWord, "an attribute's name", name) &&
             expect("=", "behind the attribute's name") && attr(text, name);
    });
  }

  bool attr(OpText& text, const Token& name) {
    const OpInfo& row = info(text.opcode);
    std::vector<absl::string_view> names;
    for (int i = 0; i < row.attr_count; ++i) {
      if (info(row.attrs[i].key).kind != AttrKind::kBits) {
        names.push_back(info(row.attrs[i].key).name);
      }
    }
    if (std::find(names.begin(), names.end(), name.text) == names.end()) {
      const std::string has_which =
          names.empty() ? "it has none" : absl::StrCat("it has ", absl::StrJoin(names, ", "));
      return fail(name, absl::StrCat("'", row.mnemonic, "' has no attribute '", name.text, "'; ",
                                     has_which));
    }
    Attr attr{*attr_from_name(name.text), 0};
    for (const Attr& other : text.attrs) {
      if (other.key == attr.key) {
        return fail(name, absl::StrCat("the attribute '", name.text, "' is given twice"));
      }
    }
    if (!attr_value(attr)) return false;
    text.attrs.push_back(attr);
    return true;
  }

  bool attr_value(Attr& attr) {
    const AttrInfo& row = info(attr.key);
    switch (row.kind) {
      case AttrKind::kInt:
        return integer("value of the attribute", std::numeric_limits<int64_t>::min(), attr.value);
      case AttrKind::kEnum: {
        const Token word = take();
        const auto it = std::find(row.enumerators.begin(), row.enumerators.end(), word.text);
        attr.value = it - row.enumerators.begin();
        if (it != row.enumerators.end()) return true;
        return fail(word,
                    absl::StrCat("the attribute '", row.name, "' is one of ",
                                 absl::StrJoin(row.enumerators, ", "), ", not ", shown(word)));
      }
      case AttrKind::kString: {
        std::string text;
        if (!string("a string in quotes", text)) return false;
        attr.value = static_cast<int64_t>(index_of(kernel_->intern(text)));
        return true;
      }
      case AttrKind::kInts: {
        std::vector<int64_t> list;
        if (!expect("[", "before the list") || !list_until("]", [&] {
              return integer("value in the list", std::numeric_limits<int64_t>::min(),
                             list.emplace_back());
            })) {
          return false;
        }
        attr.value = kernel_->intern_ints(list);
        return true;
      }
      case AttrKind::kBits:
        break;
    }
    return false;
  }

  // ` : f32, i32`, and the literal, which is read by its type.
  bool op_types(OpText& text) {
    if (take_if(":")) {
      do {
        if (!type(text.types.emplace_back())) return false;
      } while (take_if(","));
    }
    if (text.types.size() != text.results.size()) {
      return fail(text.mnemonic, absl::StrCat("'", text.mnemonic.text, "' has ",
                                              counted(text.results.size(), "named result"), " but ",
                                              counted(text.types.size(), "type"),
                                              "; write them as %a, %b = op ... : f32, i32"));
    }
    if (!text.literal) return true;
    const Scalar scalar = text.types.empty() ? Scalar::kNone : text.types[0].scalar;
    const StatusOr<uint64_t> bits = literal_from_string(scalar, text.literal->text);
    if (!bits.ok()) return fail(*text.literal, bits.status().message());
    text.attrs.push_back({AttrKey::kBits, static_cast<int64_t>(*bits)});
    return true;
  }

  bool regions(OpText& text, OpId id) {
    if (text.opcode == Opcode::kIf) return if_regions(text, id);
    const absl::string_view owner = text.mnemonic.text;
    const bool is_for = text.opcode == Opcode::kFor;
    const size_t carried = text.arguments.size() - (is_for ? 1 : 0);
    if (carried != text.types.size()) {
      return fail(text.mnemonic,
                  absl::StrCat("'", owner, "' carries ", counted(carried, "value"), " but has ",
                               counted(text.types.size(), "result"), "; it has one for each"));
    }
    const auto add = [&] {
      const RegionId region = kernel_->add_region(id);
      if (is_for) kernel_->add_region_arg(region, kernel_->type(text.operands.front()));
      for (const Type carried_type : text.types) kernel_->add_region_arg(region, carried_type);
      return region;
    };
    if (!expect("{", "to open the loop") || !region(add(), text.arguments, owner)) return false;
    if (is_for) return true;
    std::vector<Token> names;
    if (!expect("do", "behind the condition of 'while'")) return false;
    if (take_if("(") && !list_until(")", [&] {
          return expect_kind(TokenKind::kValue, "a name for a carried value", names.emplace_back());
        })) {
      return false;
    }
    if (names.size() != carried) {
      return fail(peek(), absl::StrCat("'do' names ", counted(names.size(), "value"),
                                       ", but the loop carries ", carried));
    }
    return expect("{", "to open the body of 'while'") && region(add(), names, owner);
  }

  bool if_regions(OpText& text, OpId id) {
    if (!expect("{", "to open the region of 'if'") || !region(kernel_->add_region(id), {}, "if")) {
      return false;
    }
    const RegionId otherwise = kernel_->add_region(id);
    if (take_if("else")) {
      return expect("{", "to open the region of 'else'") && region(otherwise, {}, "else");
    }
    if (!kernel_->op(id).results.empty()) {
      return fail(peek(), "this 'if' has results, so it needs an 'else' that yields them too");
    }
    text.implied_yield = kernel_->new_op(Opcode::kYield, {}, {}, LocId::kNone);
    kernel_->append(otherwise, text.implied_yield);
    return true;
  }

  // ` loc("file":14)`, or nothing.
  bool op_loc(const OpText& text, OpId id) {
    if (!peek().starts_line && peek().is("loc")) {
      take();
      std::string file;
      int line = 0;
      if (!expect("(", "behind 'loc'") || !string("a file's name in quotes", file) ||
          !expect(":", "behind the file's name") || !integer("line", 0, line) ||
          !expect(")", "behind the line")) {
        return false;
      }
      kernel_->op(id).loc = kernel_->intern_loc(file, line);
    }
    if (valid(text.implied_yield)) kernel_->op(text.implied_yield).loc = kernel_->op(id).loc;
    return true;
  }

  const ParseOptions options_;
  std::optional<Kernel> kernel_;
  ParserScope scope_;
};

}  // namespace

StatusOr<Kernel> parse(absl::string_view text, absl::string_view filename, ParseOptions options) {
  Token wrong;
  std::string message;
  std::optional<std::vector<Token>> tokens = lex(text, wrong, message);
  if (!tokens) return TokenReader::error_at(filename, wrong, message);
  return Parser(*std::move(tokens), filename, options).parse_kernel();
}

}  // namespace heddle::ir
