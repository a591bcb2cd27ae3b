// Comparisons and choice.
#include "heddle/ir/interp/scalar/elementwise.h"

namespace heddle::ir::interp {
namespace {

template <class Function>
struct Compare {
  static constexpr bool kSignless = false;
  template <class T>
  static Bool apply(T a, T b) {
    return Function{}(widen(a), widen(b)) ? 1 : 0;
  }
};
struct EqualTo {
  template <class T>
  bool operator()(T a, T b) const {
    return a == b;
  }
};
struct NotEqualTo {
  template <class T>
  bool operator()(T a, T b) const {
    return a != b;
  }
};
struct Less {
  template <class T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct Greater {
  template <class T>
  bool operator()(T a, T b) const {
    return a > b;
  }
};
struct GreaterEqual {
  template <class T>
  bool operator()(T a, T b) const {
    return a >= b;
  }
};

constexpr OpcodeRow kRows[] = {
    {Opcode::kEq, compare_row<Compare<EqualTo>>(WordTypes{})},
    {Opcode::kNe, compare_row<Compare<NotEqualTo>>(WordTypes{})},
    {Opcode::kLt, compare_row<Compare<Less>>(Numbers{})},
    {Opcode::kLe, compare_row<Compare<LessEqual>>(Numbers{})},
    {Opcode::kGt, compare_row<Compare<Greater>>(Numbers{})},
    {Opcode::kGe, compare_row<Compare<GreaterEqual>>(Numbers{})},
};

template <class T>
const Instr* run_select(const Instr* instr, Warp& warp) {
  const uint32_t count = instr->count;
  const Bool* __restrict condition = warp.reg<Bool>(instr->a);
  T* __restrict d = warp.reg<T>(instr->dst);
  const T* b = warp.reg<T>(instr->b);
  const T* c = warp.reg<T>(instr->c);
  for (uint32_t e = 0; e < count; ++e, d += kLanes, b += kLanes, c += kLanes) {
    for (int l = 0; l < kLanes; ++l) d[l] = (condition[l] & 1u) != 0 ? b[l] : c[l];
  }
  return instr + 1;
}

}  // namespace

Handler compare_handler(Opcode opcode, Scalar scalar) { return handler_in(kRows, opcode, scalar); }

Handler select_handler(int bytes) {
  switch (bytes) {
    case 1:
      return &run_select<uint8_t>;
    case 2:
      return &run_select<uint16_t>;
    case 4:
      return &run_select<uint32_t>;
    case 8:
      return &run_select<uint64_t>;
  }
  return nullptr;
}

}  // namespace heddle::ir::interp
