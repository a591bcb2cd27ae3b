#include "heddle/ir/text/lexer.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace heddle::ir {
namespace {

constexpr absl::string_view kSymbols = "(){}[],:=<>?@";

bool is_digit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }
bool is_space(char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); }
bool is_word(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

class Lexer {
 public:
  explicit Lexer(absl::string_view text) : text_(text) {}

  // False at the first character that fits no token; token() is then that place.
  bool next() {
    skip_blanks();
    token_ = {TokenKind::kEnd, text_.substr(at_, 0), line_, static_cast<int>(at_ - line_start_) + 1,
              fresh_line_};
    fresh_line_ = false;
    if (at_ == text_.size()) return true;
    token_.kind = kind_at();
    switch (token_.kind) {
      case TokenKind::kWord:
        return take(word_end(at_));
      case TokenKind::kValue:
        if (word_end(at_ + 1) == at_ + 1) return fail("a value's name follows '%'");
        return take(word_end(at_ + 1));
      case TokenKind::kNumber:
        return take(number_end());
      case TokenKind::kString:
        return take_string();
      case TokenKind::kSymbol:
        return take(at_ + 1);
      case TokenKind::kEllipsis:
        return take(at_ + 2);
      case TokenKind::kEnd:
        break;
    }
    return fail(
        absl::StrCat("unexpected character '", absl::CHexEscape(text_.substr(at_, 1)), "'"));
  }

  const Token& token() const { return token_; }
  const std::string& message() const { return message_; }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void skip_blanks() {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') {
        ++line_;
        line_start_ = at_ + 1;
        fresh_line_ = true;
      } else if (text_[at_] == ';') {
        // Stop before the line's end, so that it is counted above.
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      } else if (!is_space(text_[at_])) {
        return;
      }
    }
  }

  // kEnd for a character that starts no token.
  TokenKind kind_at() const {
    const char c = peek();
    if (c == '%') return TokenKind::kValue;
    if (c == '"') return TokenKind::kString;
    if (is_digit(c) || (c == '-' && is_digit(peek(1)))) return TokenKind::kNumber;
    if (is_word(c)) return TokenKind::kWord;
    if (c == '.' && peek(1) == '.') return TokenKind::kEllipsis;
    if (c != '\0' && kSymbols.find(c) != absl::string_view::npos) return TokenKind::kSymbol;
    return TokenKind::kEnd;
  }

  // Behind a word that starts at `from`. A dot belongs to it when more of the word follows.
  size_t word_end(size_t from) const {
    size_t end = from;
    while (end < text_.size()) {
      const bool joins =
          text_[end] == '.' && end > from && end + 1 < text_.size() && is_word(text_[end + 1]);
      if (!is_word(text_[end]) && !joins) break;
      ++end;
    }
    return end;
  }

  size_t number_end() const {
    size_t end = at_ + 1;
    const bool hexadecimal = peek() == '0' && peek(1) == 'x';
    for (; end < text_.size(); ++end) {
      const char c = text_[end];
      const char before = text_[end - 1];
      const bool exponent_sign =
          (c == '-' || c == '+') && (before == 'e' || before == 'E') && !hexadecimal;
      const bool point = c == '.' && end + 1 < text_.size() && is_digit(text_[end + 1]);
      if (!is_word(c) && !exponent_sign && !point) break;
    }
    return end;
  }

  bool take_string() {
    for (size_t end = at_ + 1; end < text_.size() && text_[end] != '\n'; ++end) {
      if (text_[end] == '"') return take(end + 1);
      const bool escape = text_[end] == '\\' && end + 1 < text_.size() && text_[end + 1] != '\n';
      if (escape) ++end;
    }
    return fail("this string has no closing quote; strings end on the line that they start on");
  }

  bool take(size_t end) {
    token_.text = text_.substr(at_, end - at_);
    at_ = end;
    return true;
  }

  bool fail(std::string message) {
    message_ = std::move(message);
    return false;
  }

  const absl::string_view text_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
  bool fresh_line_ = true;
  Token token_;
  std::string message_;
};

}  // namespace

std::optional<std::vector<Token>> lex(absl::string_view text, Token& wrong, std::string& message) {
  Lexer lexer(text);
  std::vector<Token> tokens;
  do {
    if (!lexer.next()) {
      wrong = lexer.token();
      message = lexer.message();
      return std::nullopt;
    }
    tokens.push_back(lexer.token());
  } while (tokens.back().kind != TokenKind::kEnd);
  return tokens;
}

}  // namespace heddle::ir
