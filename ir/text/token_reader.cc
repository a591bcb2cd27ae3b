#include "heddle/ir/text/token_reader.h"

#include <algorithm>
#include <optional>

#include "absl/strings/escaping.h"

namespace heddle::ir {
namespace {

// Messages quote no more of a token than this.
constexpr size_t kMaxShown = 60;
// The longest type is shorter.
constexpr size_t kMaxTypeLength = 60;

constexpr absl::string_view kTypeExamples =
    "types look like i32, bool, vec<f32, 4>, frag<f32, 64>, view<const f32, global, 2>";

std::string clipped(absl::string_view text) {
  if (text.size() <= kMaxShown) return std::string(text);
  return absl::StrCat(text.substr(0, kMaxShown), "...");
}

}  // namespace

Status TokenReader::error_at(absl::string_view filename, const Token& token,
                             absl::string_view message) {
  return InvalidArgumentError(
      absl::StrCat(filename, ":", token.line, ":", token.column, ": ", message));
}

const Token& TokenReader::peek(size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

const Token& TokenReader::take() {
  const Token& token = peek();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool TokenReader::take_if(absl::string_view text) {
  if (!peek().is(text)) return false;
  take();
  return true;
}

bool TokenReader::fail(const Token& token, absl::string_view message) {
  error_ = error_at(filename_, token, message);
  return false;
}

std::string TokenReader::shown(const Token& token) {
  if (token.kind == TokenKind::kEnd) return "the end of the text";
  return absl::StrCat("'", clipped(token.text), "'");
}

bool TokenReader::expect(absl::string_view text, absl::string_view purpose) {
  if (take_if(text)) return true;
  return fail(peek(), absl::StrCat("expected '", text, "' ", purpose, ", found ", shown(peek())));
}

bool TokenReader::expect_kind(TokenKind kind, absl::string_view what, Token& token) {
  token = peek();
  if (token.kind != kind) {
    return fail(token, absl::StrCat("expected ", what, ", found ", shown(token)));
  }
  take();
  return true;
}

bool TokenReader::expect_end() {
  if (peek().kind == TokenKind::kEnd) return true;
  return fail(peek(), absl::StrCat("expected nothing behind the kernel, found ", shown(peek())));
}

bool TokenReader::string(absl::string_view what, std::string& value) {
  Token token;
  if (!expect_kind(TokenKind::kString, what, token)) return false;
  std::string why;
  if (absl::CUnescape(token.text.substr(1, token.text.size() - 2), &value, &why)) return true;
  return fail(token, absl::StrCat("this string has a bad escape: ", why));
}

bool TokenReader::type(Type& value) {
  const Token first = peek();
  if (first.kind != TokenKind::kWord) {
    return fail(first, absl::StrCat("expected a type, found ", shown(first), "; ", kTypeExamples));
  }
  const char* end = take().text.end();
  int open = 0;
  while (open > 0 || peek().is("<")) {
    if (peek().kind == TokenKind::kEnd || peek().starts_line) {
      return fail(first,
                  absl::StrCat("the type that starts here has no closing '>'; ", kTypeExamples));
    }
    const Token& token = take();
    open += token.is("<") ? 1 : token.is(">") ? -1 : 0;
    end = token.text.end();
    if (open == 0) break;
  }
  const absl::string_view text(first.text.data(), static_cast<size_t>(end - first.text.data()));
  std::optional<Type> parsed;
  if (text.size() <= kMaxTypeLength) parsed = type_from_string(text);
  if (!parsed) {
    return fail(first, absl::StrCat("'", clipped(text), "' is not a type; ", kTypeExamples));
  }
  value = *parsed;
  return true;
}

}  // namespace heddle::ir
