// Reads tokens one after the other and says what was expected instead. Used by the parser alone.
//
// Every function that reads something returns whether it could; the first that could not has left
// its reason in error().
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"
#include "heddle/ir/text/lexer.h"
#include "heddle/ir/type.h"

namespace heddle::ir {

class TokenReader {
 public:
  // `tokens` ends with kEnd.
  TokenReader(std::vector<Token> tokens, absl::string_view filename)
      : tokens_(std::move(tokens)), filename_(filename) {}

  absl::string_view filename() const { return filename_; }
  const Status& error() const { return error_; }
  static Status error_at(absl::string_view filename, const Token& token, absl::string_view message);

  // The token that comes next, or after some more; kEnd for ever at the end.
  const Token& peek(size_t ahead = 0) const;
  // The token that was taken last, or the first one.
  const Token& previous() const { return tokens_[at_ == 0 ? 0 : at_ - 1]; }
  const Token& take();
  bool take_if(absl::string_view text);

  bool fail(const Token& token, absl::string_view message);
  // A token as messages quote it.
  static std::string shown(const Token& token);

  bool expect(absl::string_view text, absl::string_view purpose);
  bool expect_kind(TokenKind kind, absl::string_view what, Token& token);
  bool expect_end();

  bool string(absl::string_view what, std::string& value);
  bool type(Type& value);

  template <class Int>
  bool integer(absl::string_view what, Int min, Int& value) {
    Token token;
    if (!expect_kind(TokenKind::kNumber, what, token)) return false;
    if (absl::SimpleAtoi(token.text, &value) && value >= min) return true;
    return fail(token, absl::StrCat(shown(token), " is out of range for ", what, ": it goes from ",
                                    min, " to ", std::numeric_limits<Int>::max()));
  }

  // `item, item` up to `close`, which it takes too; there may be none.
  template <class Item>
  bool list_until(absl::string_view close, Item&& item) {
    if (take_if(close)) return true;
    do {
      if (!item()) return false;
    } while (take_if(","));
    return expect(close, "or ','");
  }

 private:
  const std::vector<Token> tokens_;
  const absl::string_view filename_;
  size_t at_ = 0;
  Status error_;
};

}  // namespace heddle::ir
