#include "fuzz/mutate.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"

namespace heddle::fuzz {
namespace {

constexpr absl::string_view kNumbers[] = {
    "0",          "1",          "-1",         "2",
    "3",          "31",         "64",         "1024",
    "65536",      "2147483647", "2147483648", "-2147483648",
    "4294967295", "4294967296", "0x7fc00000", "9223372036854775807",
    "1e309",      "-0.0",       "?",          "9223372036854775808",
    "",           "00",         "1.5",        "-9223372036854775808",
};

struct Piece {
  size_t at;
  size_t size;
};

// Words, numbers, spaces and single other characters.
std::vector<Piece> words_of(absl::string_view text) {
  const auto in_word = [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '%';
  };
  std::vector<Piece> words;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (in_word(static_cast<unsigned char>(text[at]))) {
      while (end < text.size() && in_word(static_cast<unsigned char>(text[end]))) ++end;
    }
    words.push_back({at, end - at});
    at = end;
  }
  return words;
}

std::vector<Piece> lines_of(absl::string_view text) {
  std::vector<Piece> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    lines.push_back({at, end - at});
    at = end;
  }
  return lines;
}

class Mutator {
 public:
  Mutator(absl::Span<const std::string> samples, std::mt19937_64& random)
      : samples_(samples), random_(random), text_(sample()) {}

  std::string run() {
    for (size_t edits = 1 + below(4); edits > 0 && !text_.empty(); --edits) edit();
    return std::move(text_);
  }

 private:
  size_t below(size_t n) { return static_cast<size_t>(random_() % n); }
  const std::string& sample() { return samples_[below(samples_.size())]; }
  std::string part(const std::string& text, Piece piece) const {
    return text.substr(piece.at, piece.size);
  }

  void edit() {
    const bool whole_lines = below(4) == 0;
    const std::vector<Piece> pieces = whole_lines ? lines_of(text_) : words_of(text_);
    const Piece one = pieces[below(pieces.size())];
    const Piece two = pieces[below(pieces.size())];
    switch (below(9)) {
      case 0:
        text_.erase(one.at, one.size);
        return;
      case 1:
        text_.insert(two.at, part(text_, one));
        return;
      case 2: {  // what stands at one place also stands at the other
        const std::string copy = part(text_, one);
        text_.replace(two.at, two.size, copy);
        return;
      }
      case 3: {
        const std::string& other = sample();
        const std::vector<Piece> others = whole_lines ? lines_of(other) : words_of(other);
        if (others.empty()) return;
        text_.replace(one.at, one.size, part(other, others[below(others.size())]));
        return;
      }
      case 4:
      case 5:
        return number(pieces);
      case 6:
        text_[below(text_.size())] = static_cast<char>(below(256));
        return;
      case 7:
        if (below(8) == 0) text_.resize(below(text_.size()));
        return;
      default: {
        const Piece first = one.at < two.at ? one : two;
        const Piece second = one.at < two.at ? two : one;
        if (first.at == second.at) return;
        const std::string a = part(text_, first);
        text_.replace(first.at, first.size, part(text_, second));
        text_.replace(second.at + second.size - first.size, second.size, a);
        return;
      }
    }
  }

  void number(const std::vector<Piece>& pieces) {
    std::vector<Piece> numbers;
    for (const Piece& piece : pieces) {
      if (absl::ascii_isdigit(static_cast<unsigned char>(text_[piece.at])))
        numbers.push_back(piece);
    }
    if (numbers.empty()) return;
    const Piece one = numbers[below(numbers.size())];
    text_.replace(one.at, one.size, std::string(kNumbers[below(std::size(kNumbers))]));
  }

  const absl::Span<const std::string> samples_;
  std::mt19937_64& random_;
  std::string text_;
};

}  // namespace

std::string mutated(absl::Span<const std::string> samples, std::mt19937_64& random) {
  return Mutator(samples, random).run();
}

}  // namespace heddle::fuzz
