// Results, in the order of the inputs, as differences between neighbours: sweeps over a type change
// slowly, so that all results of 16-bit ops fit in a small file. A difference d of b-bit numbers is
// written as 2 |d| or 2 |d| - 1 (below 0) modulo 2^b, in groups of 7 bits from the lowest, of which
// the first also says, in its lowest bit, that the count of repetitions follows. Where the plain
// numbers are shorter, those are written. The first byte tells which.
#include "vectors/recording.h"

#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace heddle::vectors {
namespace {

constexpr char kTitle[] = "heddle result vectors 1";
constexpr char kPlain = 'p';
constexpr char kDifferences = 'd';

uint64_t mask(int bits) { return ~uint64_t{0} >> (64 - bits); }

// Small where the difference is, of either sign.
uint64_t fold_sign(uint64_t difference, int bits) {
  const bool negative = (difference >> (bits - 1) & 1) != 0;
  return (negative ? ~(difference << 1) : difference << 1) & mask(bits);
}
uint64_t unfold_sign(uint64_t folded, int bits) {
  return ((folded & 1) != 0 ? ~(folded >> 1) : folded >> 1) & mask(bits);
}

void put(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

std::string differences_of(const Column& results, int bits) {
  std::string out(1, kDifferences);
  uint64_t last = 0;
  for (size_t i = 0; i < results.size();) {
    const uint64_t difference = (results[i] - last) & mask(bits);
    uint64_t run = 0;
    for (; i < results.size() && ((results[i] - last) & mask(bits)) == difference; ++i, ++run) {
      last = results[i];
    }
    const uint64_t folded = fold_sign(difference, bits);
    const uint64_t more = folded >> 6 != 0 ? 0x80 : 0;
    out.push_back(static_cast<char>(more | (folded & 0x3F) << 1 | (run > 1 ? 1 : 0)));
    if (more != 0) put(folded >> 6, &out);
    if (run > 1) put(run - 2, &out);
  }
  return out;
}

std::string plain(const Column& results, int bits) {
  std::string out(1, kPlain);
  for (const uint64_t result : results) {
    for (int shift = 0; shift < bits; shift += 8) out.push_back(static_cast<char>(result >> shift));
  }
  return out;
}

std::string encode(const Column& results, int bits) {
  const std::string differences = differences_of(results, bits);
  const std::string numbers = plain(results, bits);
  return differences.size() < numbers.size() ? differences : numbers;
}

class Decoder {
 public:
  Decoder(absl::string_view bytes, int bits) : bytes_(bytes), bits_(bits) {}

  // nullopt where the bytes are not exactly `count` results.
  std::optional<Column> run(size_t count) {
    const char form = static_cast<char>(byte());
    Column results;
    while (!failed_ && results.size() < count) {
      if (form == kPlain) {
        uint64_t result = 0;
        for (int shift = 0; shift < bits_; shift += 8) result |= uint64_t{byte()} << shift;
        results.push_back(result);
      } else {
        add_run(results, count);
      }
    }
    const bool known = form == kPlain || form == kDifferences;
    if (failed_ || !known || at_ != bytes_.size()) return std::nullopt;
    return results;
  }

 private:
  uint8_t byte() {
    if (at_ == bytes_.size()) {
      failed_ = true;
      return 0;
    }
    return static_cast<uint8_t>(bytes_[at_++]);
  }

  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t next = byte();
      value |= uint64_t{next & 0x7Fu} << shift;
      if (next < 0x80) break;
    }
    return value;
  }

  void add_run(Column& results, size_t count) {
    const uint8_t first = byte();
    uint64_t folded = first >> 1 & 0x3F;
    if (first >= 0x80) folded |= number() << 6;
    const uint64_t run = (first & 1) != 0 ? number() + 2 : 1;
    if (run > count - results.size()) {
      failed_ = true;
      return;
    }
    const uint64_t difference = unfold_sign(folded, bits_);
    for (uint64_t i = 0; i < run; ++i) {
      const uint64_t last = results.empty() ? 0 : results.back();
      results.push_back((last + difference) & mask(bits_));
    }
  }

  absl::string_view bytes_;
  int bits_;
  size_t at_ = 0;
  bool failed_ = false;
};

// Up to the next line break, which is taken too.
absl::string_view take_line(absl::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const absl::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// Of one case: its line, and its bytes from `text`.
StatusOr<std::pair<std::string, Recorded>> parse_case(
    absl::string_view line, absl::string_view& text, const std::map<absl::string_view, int>& bits) {
  const auto wrong = [&](absl::string_view why) {
    return InvalidArgumentError(absl::StrCat("'", line, "': ", why));
  };
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::MaxSplits(' ', 4), absl::SkipEmpty());
  uint64_t count = 0, size = 0;
  Recorded recorded;
  if (words.size() != 5 || words[0] != "case" || !absl::SimpleAtoi(words[1], &count) ||
      !absl::SimpleHexAtoi(words[2], &recorded.inputs) || !absl::SimpleAtoi(words[3], &size) ||
      size + 1 > text.size()) {
    return wrong("not the start of a case");
  }
  const auto known = bits.find(words[4]);
  if (known == bits.end()) return wrong("Heddle has no such case any more");
  std::optional<Column> results = Decoder(text.substr(0, size), known->second).run(count);
  if (!results) return wrong("its results are damaged");
  recorded.results = *std::move(results);
  text.remove_prefix(size + 1);
  return std::make_pair(std::string(words[4]), std::move(recorded));
}

}  // namespace

std::string to_text(const Recording& recording, absl::Span<const Case> cases) {
  std::string text = absl::StrCat(kTitle, "\ndevice ", recording.device, "\n");
  for (const Case& c : cases) {
    const auto found = recording.cases.find(c.name);
    if (found == recording.cases.end()) continue;
    const Recorded& recorded = found->second;
    const std::string bytes = encode(recorded.results, ir::info(c.result).bits);
    absl::StrAppend(&text, "case ", recorded.results.size(), " ", absl::Hex(recorded.inputs), " ",
                    bytes.size(), " ", c.name, "\n", bytes, "\n");
  }
  return text;
}

StatusOr<Recording> parse_recording(absl::string_view text, absl::Span<const Case> cases) {
  std::map<absl::string_view, int> bits;
  for (const Case& c : cases) bits[c.name] = ir::info(c.result).bits;
  if (take_line(text) != kTitle) {
    return InvalidArgumentError("it does not begin with 'heddle result vectors 1'");
  }
  absl::string_view device = take_line(text);
  if (!absl::ConsumePrefix(&device, "device ")) {
    return InvalidArgumentError("its second line does not name a device");
  }
  Recording recording;
  recording.device = std::string(device);
  while (!text.empty()) {
    const absl::string_view line = take_line(text);
    StatusOr<std::pair<std::string, Recorded>> parsed = parse_case(line, text, bits);
    if (!parsed.ok()) return parsed.status();
    recording.cases.insert(*std::move(parsed));
  }
  return recording;
}

}  // namespace heddle::vectors
