#include "codegen/ptx_simulator.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "heddle/ir/check.h"

namespace heddle::codegen {
namespace {

// "a, {b, c}, [d+4]" -> "a", "{b, c}", "[d+4]"
std::vector<std::string> split_operands(absl::string_view text) {
  std::vector<std::string> result;
  int depth = 0;
  std::string current;
  for (const char c : text) {
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c == ',' && depth == 0) {
      result.emplace_back(absl::StripAsciiWhitespace(current));
      current.clear();
    } else {
      current.push_back(c);
    }
  }
  current = std::string(absl::StripAsciiWhitespace(current));
  if (!current.empty()) result.push_back(current);
  return result;
}

std::vector<std::string> members_of(absl::string_view vector) {
  if (!absl::ConsumePrefix(&vector, "{")) return {std::string(vector)};
  absl::ConsumeSuffix(&vector, "}");
  return split_operands(vector);
}

int bits_of_type(absl::string_view type) {
  if (type == "pred") return 1;
  int bits = 0;
  HEDDLE_CHECK(absl::SimpleAtoi(type.substr(1), &bits), "a PTX type ends in its width");
  return bits;
}

uint64_t cut(uint64_t value, int bits) {
  return bits == 64 ? value : value & ((uint64_t{1} << bits) - 1);
}

// As a number of that type, in 128 bits.
__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UnsignedWide;

Wide product(Wide a, Wide b) {
  return static_cast<Wide>(static_cast<UnsignedWide>(a) * static_cast<UnsignedWide>(b));
}

Wide number(uint64_t bits, absl::string_view type) {
  const int width = bits_of_type(type);
  bits = cut(bits, width);
  const bool negative = type[0] == 's' && (bits >> (width - 1) & 1) != 0;
  return negative ? static_cast<Wide>(bits) - (static_cast<Wide>(1) << width)
                  : static_cast<Wide>(bits);
}

}  // namespace

PtxSimulator::PtxSimulator(absl::string_view text) {
  bool in_body = false;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (absl::ConsumePrefix(&line, ".visible .entry ")) {
      entry_ = std::string(line.substr(0, line.find('(')));
    }
    if (line == "{") in_body = true;
    if (!in_body || line == "{" || line == "}" || line.empty() || line[0] == '.') continue;
    if (absl::ConsumeSuffix(&line, ":")) {
      labels_[std::string(line)] = code_.size();
      continue;
    }
    HEDDLE_CHECK(absl::ConsumeSuffix(&line, ";"), "an instruction ends with a semicolon");
    Instruction instruction;
    instruction.text = std::string(line);
    if (absl::ConsumePrefix(&line, "@")) {
      instruction.guard = std::string(line.substr(0, line.find(' ')));
      line = line.substr(line.find(' ') + 1);
    }
    const size_t space = line.find(' ');
    instruction.name = absl::StrSplit(line.substr(0, space), '.');
    if (space != line.npos) instruction.operands = split_operands(line.substr(space + 1));
    code_.push_back(std::move(instruction));
  }
  // What an assembler refuses also where no thread comes.
  for (const Instruction& instruction : code_) {
    const bool jumps = instruction.name[0] == "bra";
    HEDDLE_CHECK(!jumps || labels_.count(instruction.operands[0]) != 0, "a branch goes to a label");
    const std::string& guard = instruction.guard;
    HEDDLE_CHECK(guard.empty() || guard.substr(guard[0] == '!' ? 1 : 0, 2) == "%p",
                 "a guard is a predicate");
  }
}

uint64_t PtxSimulator::read(const std::string& operand) const {
  if (operand == "%tid.x") return thread;
  if (operand[0] == '%') {
    const auto it = registers_.find(operand);
    // A register that nobody has written: any content will do, so an odd one.
    return it == registers_.end() ? 0xDEADBEEFDEADBEEF : it->second;
  }
  if (absl::StartsWith(operand, "0x")) return std::stoull(operand, nullptr, 16);
  if (operand[0] == '-') return static_cast<uint64_t>(std::stoll(operand));
  return std::stoull(operand);
}

void PtxSimulator::write(const std::string& reg, uint64_t value) {
  HEDDLE_CHECK(reg[0] == '%', "only registers are written");
  const int bits = absl::StartsWith(reg, "%rd")  ? 64
                   : absl::StartsWith(reg, "%r") ? 32
                   : absl::StartsWith(reg, "%h") ? 16
                                                 : 1;
  registers_[reg] = cut(value, bits);
}

bool PtxSimulator::run(int64_t max_instructions) {
  size_t at = 0;
  for (int64_t count = 0; count < max_instructions; ++count) {
    HEDDLE_CHECK(at < code_.size(), "the code ends with ret");
    const Instruction& i = code_[at++];
    if (!i.guard.empty()) {
      const bool negated = i.guard[0] == '!';
      const bool holds = (read(negated ? i.guard.substr(1) : i.guard) & 1) != 0;
      if (holds == negated) continue;
    }
    if (i.name[0] == "ret") return true;
    if (i.name[0] == "bra") {
      const auto label = labels_.find(i.operands[0]);
      HEDDLE_CHECK(label != labels_.end(), "a branch goes to a label");
      at = label->second;
      continue;
    }
    execute(i);
  }
  return false;
}

void PtxSimulator::unknown(const Instruction& i) const {
  check_failed(__FILE__, __LINE__, "known", absl::StrCat("the simulator does not know ", i.text));
}

uint64_t PtxSimulator::address_of(const std::string& operand) const {
  absl::string_view text = operand;
  absl::ConsumePrefix(&text, "[");
  absl::ConsumeSuffix(&text, "]");
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits('+', 1));
  const uint64_t base = read(parts[0]);
  return parts.size() > 1 ? base + read(parts[1]) : base;
}

void PtxSimulator::access(const Instruction& i) {
  const bool is_load = i.name[0] == "ld";
  const int bytes = bits_of_type(i.name.back()) / 8;
  const std::vector<std::string> values = members_of(i.operands[is_load ? 0 : 1]);
  if (i.name[1] == "param") {
    // "[k_param_3]"
    const std::string& name = i.operands[1];
    size_t slot = 0;
    const size_t prefix = entry_.size() + absl::string_view("[_param_").size();
    HEDDLE_CHECK(absl::SimpleAtoi(name.substr(prefix, name.size() - prefix - 1), &slot),
                 "parameters are numbered");
    return write(values[0], cut(params[slot], 8 * bytes));
  }
  if (i.name[1] != "global") unknown(i);
  uint64_t address = address_of(i.operands[is_load ? 1 : 0]);
  HEDDLE_CHECK(address % (values.size() * static_cast<size_t>(bytes)) == 0, "an access is aligned");
  for (const std::string& value : values) {
    HEDDLE_CHECK(
        address >= kBase && address - kBase + static_cast<uint64_t>(bytes) <= memory.size(),
        absl::StrCat("an access is out of bounds: ", i.text));
    uint8_t* const at = &memory[address - kBase];
    uint64_t bits = is_load ? 0 : read(value);
    if (is_load) {
      std::memcpy(&bits, at, static_cast<size_t>(bytes));
      write(value, bits);
    } else {
      std::memcpy(at, &bits, static_cast<size_t>(bytes));
    }
    address += static_cast<uint64_t>(bytes);
  }
}

// Also packs and unpacks: the first member is the lowest.
void PtxSimulator::move(const Instruction& i) {
  const std::vector<std::string> from = members_of(i.operands[1]);
  const std::vector<std::string> to = members_of(i.operands[0]);
  const int bits = bits_of_type(i.name[1]);
  uint64_t whole = 0;
  for (size_t k = 0; k < from.size(); ++k) {
    const int part = bits / static_cast<int>(from.size());
    whole |= cut(read(from[k]), part) << (static_cast<size_t>(part) * k);
  }
  for (size_t k = 0; k < to.size(); ++k) {
    const int part = bits / static_cast<int>(to.size());
    write(to[k], cut(whole >> (static_cast<size_t>(part) * k), part));
  }
}

void PtxSimulator::execute(const Instruction& i) {
  const std::string& name = i.name[0];
  if (name == "mov") return move(i);
  if (name == "ld" || name == "st") return access(i);
  if (name == "cvta") return write(i.operands[0], read(i.operands[1]));
  const std::string& type = i.name.back();
  const int width = bits_of_type(type);
  const auto operand = [&](size_t k) { return number(read(i.operands[k]), type); };
  const auto result = [&](Wide value) {
    write(i.operands[0], cut(static_cast<uint64_t>(value), width));
  };
  const auto bits = [&](size_t k) { return cut(read(i.operands[k]), width); };
  if (name == "cvt") {
    const Wide value = number(read(i.operands[1]), type);
    return write(i.operands[0], cut(static_cast<uint64_t>(value), bits_of_type(i.name[1])));
  }
  if (name == "selp")
    return result(static_cast<Wide>(bits((read(i.operands[3]) & 1) != 0 ? 1 : 2)));
  if (name == "setp") {
    const Wide a = operand(1);
    const Wide b = operand(2);
    const std::string& how = i.name[1];
    const bool holds = how == "eq"   ? a == b
                       : how == "ne" ? a != b
                       : how == "lt" ? a < b
                       : how == "le" ? a <= b
                       : how == "gt" ? a > b
                                     : a >= b;
    return write(i.operands[0], holds ? 1 : 0);
  }
  if (name == "mul" && i.name[1] == "wide") {
    return write(i.operands[0], static_cast<uint64_t>(product(operand(1), operand(2))));
  }
  if (name == "mad") return result(product(operand(1), operand(2)) + operand(3));
  if (name == "mul") return result(product(operand(1), operand(2)));
  if (name == "add") return result(operand(1) + operand(2));
  if (name == "sub") return result(operand(1) - operand(2));
  if (name == "min") return result(std::min(operand(1), operand(2)));
  if (name == "max") return result(std::max(operand(1), operand(2)));
  if (name == "neg") return result(-operand(1));
  if (name == "abs") return result(operand(1) < 0 ? -operand(1) : operand(1));
  if (name == "sad") {
    const Wide a = operand(1), b = operand(2);
    return result((a < b ? b - a : a - b) + operand(3));
  }
  if (name == "and") return result(static_cast<Wide>(bits(1) & bits(2)));
  if (name == "or") return result(static_cast<Wide>(bits(1) | bits(2)));
  if (name == "xor") return result(static_cast<Wide>(bits(1) ^ bits(2)));
  if (name == "not") return result(static_cast<Wide>(~bits(1)));
  if (name == "shl" || name == "shr") {
    const auto count = std::min<uint64_t>(cut(read(i.operands[2]), 32), 64);
    const Wide value = operand(1);
    if (name == "shr") return result(value >> count);
    return result(count >= static_cast<uint64_t>(width) ? 0 : static_cast<Wide>(bits(1)) << count);
  }
  unknown(i);
}

}  // namespace heddle::codegen
