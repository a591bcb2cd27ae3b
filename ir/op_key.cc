#include "heddle/ir/op_key.h"

#include <algorithm>

namespace heddle::ir {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15;
  return hash ^ hash >> 32;
}

bool commutes(const OpKey& key) { return has(info(key.opcode), kCommutative); }

}  // namespace

bool operator==(const OpKey& a, const OpKey& b) {
  if (a.opcode != b.opcode || a.type != b.type || a.attrs != b.attrs) return false;
  if (a.operands == b.operands) return true;
  return commutes(a) && a.operands.size() == b.operands.size() && a.operands[0] == b.operands[1] &&
         a.operands[1] == b.operands[0] && a.operands.subspan(2) == b.operands.subspan(2);
}

OpKey key_of(const Kernel& kernel, const Op& op) {
  return {op.opcode, kernel.type(op.result()), op.operands, op.attrs};
}

uint64_t hash_of(const OpKey& key) {
  uint64_t hash = mix(static_cast<uint64_t>(key.opcode), static_cast<uint64_t>(key.type.scalar));
  hash = mix(hash, key.type.count);
  size_t first = 0;
  if (commutes(key)) {
    const uint32_t a = index_of(key.operands[0]), b = index_of(key.operands[1]);
    hash = mix(mix(hash, std::min(a, b)), std::max(a, b));
    first = 2;
  }
  for (size_t i = first; i < key.operands.size(); ++i) hash = mix(hash, index_of(key.operands[i]));
  for (const Attr& attr : key.attrs) hash = mix(hash, static_cast<uint64_t>(attr.value));
  return hash;
}

}  // namespace heddle::ir
