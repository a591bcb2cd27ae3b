// Splits the text form of a kernel into tokens. Used by the parser alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace heddle::ir {

enum class TokenKind : uint8_t {
  kEnd,
  kWord,      // load, wgmma.begin, x
  kValue,     // %acc.1, with its percent sign
  kNumber,    // -1, 0.5, 1e-05, 0x7fc00000
  kString,    // "...", quotes included
  kSymbol,    // one of ( ) { } [ ] , : = < > ? @
  kEllipsis,  // ..
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  absl::string_view text;
  int line = 1;  // from 1, like the column, which counts bytes
  int column = 1;
  bool starts_line = false;

  bool is(absl::string_view word_or_symbol) const { return text == word_or_symbol; }
};

// The tokens of `text`, ended by kEnd; or none, with the place and the reason in `wrong` and
// `message`. Comments run from ';' to the end of the line.
std::optional<std::vector<Token>> lex(absl::string_view text, Token& wrong, std::string& message);

}  // namespace heddle::ir
