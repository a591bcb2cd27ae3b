#include "fuzz/generator_memory.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "fuzz/inputs.h"

namespace heddle::fuzz {
namespace {

using ir::AtomicOp;
using ir::MemoryOrder;
using ir::Space;

// Whose order does not show in the sum.
constexpr AtomicOp kOrderless[] = {AtomicOp::kAdd, AtomicOp::kMin, AtomicOp::kMax,
                                   AtomicOp::kAnd, AtomicOp::kOr,  AtomicOp::kXor};
// For elements that one thread alone changes.
constexpr AtomicOp kOrdered[] = {AtomicOp::kExch, AtomicOp::kInc, AtomicOp::kDec};

struct Tensor {
  absl::string_view name;
  Scalar scalar;
  bool read_only;
};
// Tensors of slots. Those of one type may share their memory.
constexpr Tensor kTensors[] = {
    {"y", Scalar::kI32, false},  {"z", Scalar::kI32, false}, {"w", Scalar::kI32, true},
    {"q", Scalar::kU64, false},  {"r", Scalar::kU64, false}, {"f", Scalar::kF32, false},
    {"g", Scalar::kF32, true},   {"d", Scalar::kF64, false}, {"h", Scalar::kF16, false},
    {"b", Scalar::kBF16, false},
};

constexpr ir::Dim3 kBlocks[] = {{32, 1, 1}, {64, 1, 1}, {32, 2, 1}, {16, 4, 1},  {8, 4, 2},
                                {48, 1, 1}, {5, 1, 1},  {0, 0, 0},  {128, 1, 1}, {32, 3, 1}};

}  // namespace

void MemoryGenerator::declare() {
  kernel_.block = one_of(kBlocks);
  const int64_t one[] = {1};
  const auto tensor = [&](absl::string_view name, Scalar scalar, bool read_only) {
    const int64_t extent[] = {chance(50) ? int64_t{kElements} : ir::kDynamic};
    return kernel_.add_param(name, Type::view(scalar, Space::kGlobal, 1, read_only), extent, one);
  };
  std::vector<size_t> apart = {kernel_.params().size(),
                               kernel_.params().size() + 1};  // nobody else may name these
  everywhere_ = tensor("x", Scalar::kI32, true);
  sums_ = tensor("a", Scalar::kU32, false);
  sum_op_ = static_cast<int64_t>(one_of(kOrderless));
  for (const Tensor& t : kTensors) {
    if (!floats_ && ir::is_float(t.scalar)) continue;
    if (plain_ || chance(20)) apart.push_back(kernel_.params().size());
    arrays_.push_back({tensor(t.name, t.scalar, t.read_only), t.read_only});
  }
  for (const size_t param : apart) {
    kernel_.set_fact({ir::FactKind::kNoOverlap, static_cast<uint16_t>(param)}, 1);
  }
  for (const Array& array : arrays_) {
    const auto param = static_cast<uint16_t>(*kernel_.param_index(array.view));
    if (chance(60)) kernel_.set_fact({ir::FactKind::kAlignment, param}, 16);
  }
  const auto scalar = [&](Scalar s) {
    keep(kernel_.add_param("p" + std::to_string(values_.size()), Type::of(s)), Scope::kGrid);
  };
  for (const Scalar s : kIntegers) scalar(s);
  for (const Scalar s : kIntegers) scalar(s);
  scalar(Scalar::kBool);
  scalar(Scalar::kBool);
  if (floats_) {
    for (const Scalar s : kFloats) scalar(s);
  }

  // All arrays have as many elements, and the launch may be asked to see that.
  for (size_t tied = chance(40) ? 1 + below(3) : 0; tied > 0; --tied) {
    const auto length = [&] {
      return keep(b_.create(Opcode::kExtent, {arrays_[below(arrays_.size())].view}, ir::kI64Type,
                            {{AttrKey::kDim, 0}}),
                  Scope::kGrid);
    };
    const ValueId first = length();
    const ValueId other = chance(70) ? length() : number(ir::kI64Type, kElements);
    const ValueId same = keep(b_.create(Opcode::kEq, {first, other}), Scope::kGrid);
    const auto message = static_cast<int64_t>(ir::index_of(kernel_.intern("tied")));
    b_.create_op(Opcode::kRequire, {same}, Type::none(), {{AttrKey::kMessage, message}});
  }

  ValueId coordinate[3];
  ValueId extent[3];
  for (const int64_t axis : {0, 1, 2}) {
    const size_t i = static_cast<size_t>(axis);
    coordinate[i] = keep(b_.create(Opcode::kThreadIdx, {}, ir::kI32Type, {{AttrKey::kAxis, axis}}));
    extent[i] = make(Opcode::kBlockDim, {}, ir::kI32Type, {{AttrKey::kAxis, axis}});
  }
  const ValueId row = make(Opcode::kFma, {coordinate[2], extent[1], coordinate[1]});
  block_thread_ = make(Opcode::kFma, {row, extent[0], coordinate[0]});
  const ValueId block =
      keep(b_.create(Opcode::kBlockIdx, {}, ir::kI32Type, {{AttrKey::kAxis, 0}}), Scope::kBlock);
  const ValueId count = number(ir::kI32Type, threads());
  thread_ = make(Opcode::kFma, {block, count, block_thread_});
  keep(b_.create(Opcode::kLaneId, {}));
  keep(b_.create(Opcode::kWarpId, {}), Scope::kWarp);
  // The number of several warps among those of a role, which begins at a warp or, for once, inside of one.
  if (chance(50)) {
    const int64_t first = -16 * static_cast<int64_t>(chance(80) ? 2 * below(4) : below(8));
    ValueId role = make(Opcode::kAdd, {coordinate[0], number(ir::kI32Type, first)});
    if (!kernel_.has_dynamic_block() && chance(50)) {
      role = make(Opcode::kAssumeRange, {role}, Type::none(),
                  {{AttrKey::kMin, first}, {AttrKey::kMax, first + kernel_.block.x - 1}});
    }
    make(Opcode::kShr, {role, number(ir::kU32Type, static_cast<int64_t>(4 + below(4)))});
  }

  const int64_t extents[] = {int64_t{kSlotsPerThread} * threads()};
  for (const Scalar s : {Scalar::kI32, Scalar::kF32, Scalar::kU64}) {
    if ((!floats_ && ir::is_float(s)) || chance(40)) continue;
    const ValueId view = b_.create(Opcode::kShared, {}, Type::view(s, Space::kShared, 1),
                                   {{AttrKey::kExtents, kernel_.intern_ints(extents)}});
    arrays_.push_back({.view = view, .by_block = true});
    fill(arrays_.back());
  }
  if (chance(75)) {
    witness_ = b_.create(Opcode::kVar, {number(Type::of(Scalar::kU64), 0)});
  }
  if (chance(40)) local_array();
  if (chance(30)) {
    const int64_t length[] = {8};
    std::string bytes;
    for (int i = 0; i < 32; ++i) {
      const size_t byte = below(4) == 0 ? below(256) : below(2) * 255;
      bytes += "0123456789abcdef"[byte / 16];
      bytes += "0123456789abcdef"[byte % 16];
    }
    table_ = b_.create(Opcode::kTable, {}, Type::view(Scalar::kI32, Space::kConst, 1, true),
                       {{AttrKey::kExtents, kernel_.intern_ints(length)},
                        {AttrKey::kData, static_cast<int64_t>(kernel_.intern(bytes))}});
  } else {
    table_ = ValueId::kNone;
  }
}

void MemoryGenerator::local_array() {
  const Scalar s = any_scalar();
  const int64_t extents[] = {kSlotsPerThread};
  const ValueId view = b_.create(Opcode::kLocal, {}, Type::view(s, Space::kLocal, 1),
                                 {{AttrKey::kExtents, kernel_.intern_ints(extents)}});
  arrays_.push_back({.view = view, .by_thread = true});
  fill(arrays_.back());
}

void MemoryGenerator::fill(const Array& array) {
  for (int i = 0; i < kSlotsPerThread; ++i) {
    const ValueId value = any(Type::of(kernel_.type(array.view).scalar));
    store(array, value, slot(array, i));
  }
}

ValueId MemoryGenerator::slot(const Array& array, int index) {
  const Type type = chance(75) ? ir::kI32Type : ir::kI64Type;
  if (array.by_thread) return number(type, index);
  ValueId first = array.by_block ? block_thread_ : thread_;
  if (type == ir::kI64Type) first = b_.create(Opcode::kConvert, {first}, type);
  const ValueId per = number(type, kSlotsPerThread);
  const ValueId at = b_.create(Opcode::kMul, {first, per});
  return index == 0 && chance(50) ? at : b_.create(Opcode::kAdd, {at, number(type, index)});
}

std::pair<Type, int> MemoryGenerator::own_access(const Array& array) {
  const Scalar scalar = kernel_.type(array.view).scalar;
  const int widest = std::min(kSlotsPerThread, 16 / ir::bytes_of(scalar));
  const int count = chance(70) ? 1 : std::min(widest, chance(50) ? 2 : 4);
  const auto first = static_cast<int>(below(static_cast<size_t>(kSlotsPerThread / count))) * count;
  return {count == 1 ? Type::of(scalar) : Type::vector(scalar, count), first};
}

ValueId MemoryGenerator::load(const Array& array, Type type, ValueId at) {
  std::vector<ValueId> operands = {array.view, at};
  const bool is_table = kernel_.type(array.view).space == Space::kConst;
  if (type.is_scalar() && !is_table && chance(20)) {
    operands.push_back(b_.create(Opcode::kBounds, {array.view, at}));
  }
  const bool is_volatile = !plain_ && !array.by_thread && !is_table && chance(4);
  const ir::Attr attrs[] = {{AttrKey::kVolatile, 1}};
  return make(Opcode::kLoad, operands, type, absl::MakeConstSpan(attrs).first(is_volatile ? 1 : 0));
}

void MemoryGenerator::store(const Array& array, ValueId value, ValueId at) {
  const bool is_volatile = !plain_ && !array.by_thread && chance(4);
  const ir::Attr attrs[] = {{AttrKey::kVolatile, 1}};
  b_.create_op(Opcode::kStore, {array.view, value, at}, Type::none(),
               absl::MakeConstSpan(attrs).first(is_volatile ? 1 : 0));
}

void MemoryGenerator::load_own(const Array& array) {
  const auto [type, first] = own_access(array);
  if (array.by_thread && type.is_scalar()) {
    load(array, type, index_below(kSlotsPerThread));
  } else {
    load(array, type, slot(array, first));
  }
}

void MemoryGenerator::store_own(const Array& array) {
  const auto [type, first] = own_access(array);
  const ValueId value = any(type);
  if (array.by_thread && type.is_scalar()) {
    store(array, value, index_below(kSlotsPerThread));
  } else {
    store(array, value, slot(array, first));
  }
}

void MemoryGenerator::show() {
  if (valid(witness_)) {
    const auto is_wide = [&](const Array& array) {
      return kernel_.type(array.view).scalar == Scalar::kU64 && !array.by_block && !array.by_thread;
    };
    const Array& array = *std::find_if(arrays_.begin(), arrays_.end(), is_wide);
    const ValueId mixed = b_.create(Opcode::kVarLoad, {witness_});
    store(array, mixed, slot(array, 0));
  }
  for (const Array& array : arrays_) {
    if (array.read_only || array.by_block || array.by_thread) continue;
    const ValueId value = any(Type::of(kernel_.type(array.view).scalar));
    store(array, value, slot(array, static_cast<int>(below(kSlotsPerThread))));
  }
}

// What an optimiser of accesses gets to see: many to few elements, in any order.
void MemoryGenerator::burst() {
  const Array& array = arrays_[below(arrays_.size())];
  const Type type = Type::of(kernel_.type(array.view).scalar);
  const size_t few = chance(50) ? 2 : 4;
  const size_t first = few * below(kSlotsPerThread / few);
  for (size_t i = 4 + below(12); i > 0; --i) {
    const ValueId at = slot(array, static_cast<int>(first + below(few)));
    if (array.read_only || chance(50)) {
      keep(b_.create(Opcode::kLoad, {array.view, at}, type));
    } else {
      b_.create(Opcode::kStore, {array.view, any(type), at});
    }
  }
}

void MemoryGenerator::atomic() {
  // The old value hangs on the order of threads, but not in one's own slots.
  const ir::Attr op[] = {{AttrKey::kOp, sum_op_}};
  b_.create_op(Opcode::kAtomic, {sums_, any(ir::kU32Type), index_below(kElements)}, ir::kU32Type,
               op);
  for (const Array& array : arrays_) {
    const Scalar scalar = kernel_.type(array.view).scalar;
    if (array.read_only || array.by_thread || ir::is_float(scalar) || chance(60)) continue;
    return own_atomic(array.view, slot(array, static_cast<int>(below(kSlotsPerThread))));
  }
}

void MemoryGenerator::own_atomic(ValueId view, ValueId at) {
  const Type type = Type::of(kernel_.type(view).scalar);
  const ValueId value = any(type);
  // Of loads relaxed or acquire, of stores relaxed or release.
  const bool relaxed = chance(50);
  const auto order = [&](MemoryOrder other) {
    return ir::Attr{AttrKey::kOrder, static_cast<int64_t>(relaxed ? MemoryOrder::kRelaxed : other)};
  };
  const size_t kind = below(100);
  if (kind < 20) {
    const ValueId expected = chance(60) ? make(Opcode::kLoad, {view, at}, type) : any(type);
    make(Opcode::kAtomicCas, {view, expected, value, at}, type, {order(MemoryOrder::kAcqRel)});
  } else if (kind < 30) {
    make(Opcode::kAtomicLoad, {view, at}, type, {order(MemoryOrder::kAcquire)});
  } else if (kind < 40) {
    const ir::Attr attrs[] = {order(MemoryOrder::kRelease)};
    b_.create_op(Opcode::kAtomicStore, {view, value, at}, Type::none(), attrs);
  } else {
    const AtomicOp op = chance(60) ? one_of(kOrderless) : one_of(kOrdered);
    if (!has_atomic(op, type.scalar, *kernel_.target)) return;
    make(Opcode::kAtomic, {view, value, at}, type, {{AttrKey::kOp, static_cast<int64_t>(op)}});
  }
}

void MemoryGenerator::through_pointer() {
  const Array& array = arrays_[below(arrays_.size())];
  const Type view = kernel_.type(array.view);
  if (array.read_only || view.space != Space::kGlobal) return;
  const ValueId address = b_.create(
      Opcode::kAddress, {array.view, slot(array, static_cast<int>(below(kSlotsPerThread)))});
  const ValueId pointer =
      b_.create(Opcode::kPointer, {address}, Type::view(view.scalar, Space::kGlobal, 1));
  const ValueId zero = number(ir::kI32Type, 0);
  if (chance(50)) {
    make(Opcode::kLoad, {pointer, zero}, Type::of(view.scalar));
  } else {
    b_.create(Opcode::kStore, {pointer, any(Type::of(view.scalar)), zero});
  }
}

void MemoryGenerator::through_subview() {
  const Array& array = arrays_[below(arrays_.size())];
  if (array.read_only) return;
  const Type view = kernel_.type(array.view);
  const ValueId part = b_.create(
      Opcode::kSubview, {array.view, slot(array, 0), number(ir::kI32Type, kSlotsPerThread)}, view);
  const Array own{.view = part, .by_thread = true};
  store_own(own);
  load_own(own);
}

// Of a value that is at hand, and mostly with loads behind it that may move in front.
void MemoryGenerator::pin() {
  const ir::Attr attrs[] = {{AttrKey::kEarlyLoads, 1}};
  const ValueId pinned = any(any_type());
  b_.create_op(Opcode::kPin, {pinned}, Type::none(),
               absl::MakeConstSpan(attrs).first(chance(80) ? 1 : 0));
  for (size_t i = below(4); i > 0; --i) load_own(arrays_[below(arrays_.size())]);
}

void MemoryGenerator::memory() {
  const size_t kind = below(100);
  const Array& array = arrays_[below(arrays_.size())];
  if (kind < 15) {
    load({.view = everywhere_}, ir::kI32Type, index_below(kElements));
  } else if (kind < 42) {
    load_own(array);
  } else if (kind < 47) {
    burst();
  } else if (kind < 80) {
    if (!array.read_only) store_own(array);
  } else if (kind < 86) {
    if (chance(20)) {
      b_.create_op(Opcode::kFence, {}, Type::none(), {});
    } else if (!plain_) {
      atomic();
    }
  } else if (kind < 89) {
    if (!plain_) through_pointer();
  } else if (kind < 93) {
    through_subview();
  } else if (kind < 95 && valid(table_)) {
    load({.view = table_}, ir::kI32Type, index_below(8));
  } else if (chance(70)) {
    pin();
  } else {
    make(chance(70) ? Opcode::kExtent : Opcode::kStride, {array.view}, ir::kI32Type,
         {{AttrKey::kDim, 0}});
  }
}

void MemoryGenerator::walk(ValueId index, int64_t limit) {
  const auto at = [&](ValueId base) {
    const Type type = kernel_.type(base);
    const bool same = kernel_.type(index) == type;
    const ValueId i = same ? index : b_.create(Opcode::kConvert, {index}, type);
    return chance(50) ? b_.create(Opcode::kAdd, {base, i}) : b_.create(Opcode::kAdd, {i, base});
  };
  for (size_t count = 1 + below(2); count > 0; --count) {
    if (limit > kSlotsPerThread) {
      load({.view = everywhere_}, ir::kI32Type, at(index_below(kElements - kLongWalk)));
      continue;
    }
    const Array& array = arrays_[below(arrays_.size())];
    const Type type = Type::of(kernel_.type(array.view).scalar);
    const ValueId offset = at(slot(array, 0));
    if (chance(60)) load(array, type, offset);
    if (!array.read_only) store(array, any(type), offset);
  }
}

void MemoryGenerator::exchange() {
  std::vector<size_t> candidates;
  for (size_t i = 0; i < arrays_.size(); ++i) {
    if (!arrays_[i].read_only && !arrays_[i].by_thread) candidates.push_back(i);
  }
  const Array array = arrays_[candidates[below(candidates.size())]];
  const Scalar scalar = kernel_.type(array.view).scalar;
  for (size_t i = below(3); i > 0; --i) store_own(array);
  b_.create(Opcode::kBarrier, {});
  // The slots of the block's threads, or so many of them as a power of two has.
  const auto slots = static_cast<uint32_t>(threads() * kSlotsPerThread);
  for (size_t i = 1 + below(3); i > 0; --i) {
    ValueId at = masked(Scalar::kI32, std::bit_floor(slots) - 1);
    if (!array.by_block) {
      const ValueId lead = b_.create(Opcode::kSub, {thread_, block_thread_});
      at = b_.create(Opcode::kFma, {lead, number(ir::kI32Type, kSlotsPerThread), at});
    }
    load(array, Type::of(scalar), at);
    for (size_t k = below(3); k > 0; --k) arithmetic();
  }
  b_.create(Opcode::kBarrier, {});
}

void MemoryGenerator::collective() {
  const bool whole = threads() % 32 == 0;
  const Scope level = valid(lanes_) ? Scope::kThread : Scope::kWarp;
  const auto run = [&](Opcode opcode, std::vector<ValueId> operands, Scope result,
                       absl::Span<const ir::Attr> attrs = {}) {
    if (valid(lanes_)) operands.push_back(lanes_);
    keep(b_.create(opcode, operands, Type::none(), attrs), result);
  };
  const ValueId predicate = condition();
  const Scalar narrow = chance(50) ? Scalar::kI32 : Scalar::kU32;
  switch (below(whole && !valid(lanes_) ? 6 : 4)) {
    case 0:
      return run(one_of({Opcode::kVoteAny, Opcode::kVoteAll, Opcode::kVoteUni}), {predicate},
                 level);
    case 1:
      return run(Opcode::kBallot, {predicate}, level);
    case 2: {
      const ValueId value = any(Type::of(narrow));
      return run(Opcode::kRedux, {value}, level,
                 {{AttrKey::kOp, static_cast<int64_t>(one_of(kOrderless))}});
    }
    case 3: {
      const ValueId value = any(Type::of(one_of(kIntegers)));
      return run(chance(50) ? Opcode::kMatchAny : Opcode::kMatchAll, {value}, Scope::kThread);
    }
    default: {
      static constexpr Opcode kShuffles[] = {Opcode::kShflIdx, Opcode::kShflUp, Opcode::kShflDown,
                                             Opcode::kShflXor};
      static constexpr int64_t kWidths[] = {32, 16, 8, 2};
      const ValueId value = any(Type::of(any_scalar()));
      const ValueId lane = masked(Scalar::kI32, 31);
      const ir::Attr width{AttrKey::kWidth, one_of(kWidths)};
      return run(one_of(kShuffles), {value, lane}, Scope::kThread, {width});
    }
  }
}

}  // namespace heddle::fuzz
