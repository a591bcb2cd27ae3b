#include "heddle/codegen/ptx_text.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace heddle::codegen {
namespace {

char* put_unsigned(char* to, uint64_t number) {
  char digits[20];
  char* const end = digits + sizeof(digits);
  char* begin = end;
  do {
    *--begin = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  return std::copy(begin, end, to);
}

char* put_hex(char* to, uint64_t bits, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    *to++ = "0123456789ABCDEF"[bits >> shift & 15];
  }
  return to;
}

}  // namespace

std::string PtxText::take() && {
  buffer_.resize(size_);
  return std::move(buffer_);
}

void PtxText::add(absl::string_view text) {
  make_room(text.size());
  put(buffer_.data() + size_, text);
  size_ += text.size();
}

void PtxText::lines(absl::string_view text) {
  add(text);
  ops_.insert(ops_.end(), static_cast<size_t>(std::count(text.begin(), text.end(), '\n')),
              ir::OpId::kNone);
}

void PtxText::take_back(absl::string_view line) {
  if (!absl::EndsWith(text(), line)) return;
  size_ -= line.size();
  ops_.pop_back();
}

void PtxText::append(const PtxText& other) {
  add(other.text());
  ops_.insert(ops_.end(), other.ops_.begin(), other.ops_.end());
}

void PtxText::put_place() {
  place_is_new_ = false;
  line("\t.loc ", file_, ' ', line_, " 0");
}

char* PtxText::put(char* to, int64_t number) {
  if (number >= 0) return put_unsigned(to, static_cast<uint64_t>(number));
  *to++ = '-';
  return put_unsigned(to, 0 - static_cast<uint64_t>(number));
}

char* PtxText::put(char* to, Label label) {
  return put_unsigned(put(to, "$L"), static_cast<uint64_t>(label.number));
}

char* PtxText::put(char* to, const Spelled& spelled) {
  const Operand& operand = spelled.operand;
  if (!operand.is_constant) {
    return put_unsigned(put(to, info(operand.reg_class).prefix), operand.payload);
  }
  const bool wide = operand.reg_class == RegClass::kB64;
  const uint64_t bits = operand.payload;
  switch (spelled.spelling) {
    case Spelling::kFloat:
      return put_hex(put(to, wide ? "0d" : "0f"), bits, wide ? 16 : 8);
    case Spelling::kSigned: {
      const int64_t value = wide ? static_cast<int64_t>(bits) : static_cast<int32_t>(bits);
      // ptxas reads decimal literals as signed 64-bit numbers: the least one has no spelling.
      if (value != INT64_MIN) return put(to, value);
      break;
    }
    case Spelling::kUnsigned:
      if (bits <= INT64_MAX) return put_unsigned(to, bits);
      break;
    case Spelling::kBits:
      if (bits <= 9999) return put_unsigned(to, bits);
      break;
  }
  return put_hex(put(to, "0x"), bits, wide ? 16 : operand.reg_class == RegClass::kB16 ? 4 : 8);
}

char* PtxText::put(char* to, const Vector& vector) {
  if (vector.count == 1 && !vector.braced) return put(to, vector.operands[0]);
  *to++ = '{';
  for (int i = 0; i < vector.count; ++i) {
    if (i > 0) to = put(to, ", ");
    to = put(to, vector.operands[i]);
  }
  *to++ = '}';
  return to;
}

char* PtxText::put(char* to, const Address& address) {
  *to++ = '[';
  to = address.base ? put(to, *address.base) : put(to, "heddle_shared");
  if (address.bytes != 0) to = put(put(to, '+'), address.bytes);
  *to++ = ']';
  return to;
}

}  // namespace heddle::codegen
