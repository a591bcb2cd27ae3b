// PTX text, line by line, each line with the op that it comes from.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/codegen/registers.h"
#include "heddle/ir/ids.h"

namespace heddle::codegen {

// How an instruction spells a constant: by the type that it reads it as.
enum class Spelling : uint8_t { kBits, kSigned, kUnsigned, kFloat };

// An operand as it stands in an instruction of that type.
struct Spelled {
  Operand operand;
  Spelling spelling = Spelling::kBits;
};
inline Spelled as(Spelling spelling, const Operand& operand) { return {operand, spelling}; }

struct Label {
  int number;
};

// "@%p3 " in front of an instruction that runs where a predicate holds; nothing where there is
// none.
struct PredicatePrefix {
  std::optional<Operand> predicate = std::nullopt;
};

// Several operands as a vector: "{%r1, %r2}"; a single one stands alone, unless `braced`.
struct Vector {
  const Operand* operands;
  int count;
  bool braced = false;
};

// "[%rd4+16]", or "[heddle_shared+16]" where there is no register.
struct Address {
  std::optional<Operand> base;
  int64_t bytes = 0;
};

// A part behind a comma, where there is one.
template <class Part>
struct OptionalOperand {
  std::optional<Part> part = std::nullopt;
};

class PtxText {
 public:
  absl::string_view text() const { return {buffer_.data(), size_}; }
  std::string take() &&;
  // Of each line, in order.
  const std::vector<ir::OpId>& ops() const { return ops_; }
  void reserve(size_t bytes) { make_room(bytes); }

  // The op that lines come from, from here on, and its place: the number of a `.file` and a line.
  void set_op(ir::OpId op) { op_ = op; }
  void set_place(int file, int line) {
    file_ = file;
    line_ = line;
    place_is_new_ = true;
  }

  // One line: text, numbers, operands and labels, put together.
  template <class... Parts>
  void line(const Parts&... parts) {
    // Room for all of it is made once; then each part only writes.
    make_room((most(parts) + ... + 1));
    char* end = buffer_.data() + size_;
    ((end = put(end, parts)), ...);
    *end++ = '\n';
    size_ = static_cast<size_t>(end - buffer_.data());
    ops_.push_back(op_);
  }
  // One instruction: indented, ended with a semicolon, behind its `.loc` if the place is new.
  template <class... Parts>
  void instruction(const Parts&... parts) {
    if (place_is_new_) put_place();
    line('\t', parts..., ';');
  }
  // Takes the last line back, where it is this one.
  void take_back(absl::string_view line);
  // Several lines of text that come from no op; another text with its ops.
  void lines(absl::string_view text);
  void append(const PtxText& other);

 private:
  // The most characters that a part takes.
  static constexpr size_t kMostOfNumber = 24;
  static size_t most(char) { return 1; }
  static size_t most(absl::string_view text) { return text.size(); }
  static size_t most(int) { return kMostOfNumber; }
  static size_t most(int64_t) { return kMostOfNumber; }
  static size_t most(const Operand&) { return kMostOfNumber; }
  static size_t most(const Spelled&) { return kMostOfNumber; }
  static size_t most(Label) { return kMostOfNumber; }
  static size_t most(const Address&) { return 3 * kMostOfNumber; }
  static size_t most(const Vector& vector) {
    return kMostOfNumber * (static_cast<size_t>(vector.count) + 1);
  }
  static size_t most(const PredicatePrefix& when) { return when.predicate ? 2 + kMostOfNumber : 0; }
  template <class Part>
  static size_t most(const OptionalOperand<Part>& also) {
    return also.part ? 2 + most(*also.part) : 0;
  }

  static char* put(char* to, char c) {
    *to = c;
    return to + 1;
  }
  static char* put(char* to, absl::string_view text) {
    std::memcpy(to, text.data(), text.size());
    return to + text.size();
  }
  static char* put(char* to, int number) { return put(to, int64_t{number}); }
  static char* put(char* to, int64_t number);
  static char* put(char* to, Label label);
  static char* put(char* to, const Operand& operand) { return put(to, Spelled{operand}); }
  static char* put(char* to, const Spelled& operand);
  static char* put(char* to, const Vector& vector);
  static char* put(char* to, const PredicatePrefix& when) {
    if (!when.predicate) return to;
    *to++ = '@';
    to = put(to, *when.predicate);
    *to++ = ' ';
    return to;
  }
  static char* put(char* to, const Address& address);
  template <class Part>
  static char* put(char* to, const OptionalOperand<Part>& also) {
    return also.part ? put(put(to, absl::string_view(", ")), *also.part) : to;
  }

  void make_room(size_t bytes) {
    if (size_ + bytes > buffer_.size()) buffer_.resize(2 * buffer_.size() + bytes);
  }
  void add(absl::string_view text);
  void put_place();

  std::string buffer_;  // as long as there is room; the text is its beginning
  size_t size_ = 0;
  std::vector<ir::OpId> ops_;
  ir::OpId op_ = ir::OpId::kNone;
  int file_ = 0;
  int line_ = 0;
  bool place_is_new_ = false;
};

}  // namespace heddle::codegen
