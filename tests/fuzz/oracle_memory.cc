// Views and memory.
#include "fuzz/oracle_state.h"

namespace heddle::fuzz::oracle {
namespace {

using ir::AttrKey;
using ir::Op;
using ir::Opcode;
using ir::Scalar;
using ir::ValueId;

uint64_t bytes_of_element(State& state, ValueId value) {
  return static_cast<uint64_t>(ir::info(state.kernel().type(value).scalar).bits) / 8;
}

uint64_t bytes_of_array(State& state, const Op& op) {
  uint64_t bytes = bytes_of_element(state, op.result());
  for (const int64_t extent : state.kernel().ints(op.attr_or(AttrKey::kExtents, 0))) {
    bytes *= static_cast<uint64_t>(extent);
  }
  return bytes;
}

// A view of a new array, whose extent is its attribute.
bool make_array(State& state, const Op& op, const Threads& threads, uint64_t address) {
  const auto extents = state.kernel().ints(op.attr_or(AttrKey::kExtents, 0));
  if (extents.size() != 1) return state.fail("the oracle knows arrays of one dimension alone");
  state.fill(op.result(), threads, address, ViewPart::kAddress);
  state.fill(op.result(), threads, static_cast<uint64_t>(extents[0]), ViewPart::kExtent);
  return true;
}

bool shared(State& state, const Op& op, const Threads& threads) {
  if (op.attr(AttrKey::kArena)) return state.fail("the oracle does not know arenas");
  return make_array(state, op, threads, state.memory().add(bytes_of_array(state, op)));
}
bool local(State& state, const Op& op, const Threads& threads) {
  for (const uint32_t t : threads) {
    const uint64_t address = state.memory().add(bytes_of_array(state, op));
    if (!make_array(state, op, {t}, address)) return false;
  }
  return true;
}
bool table(State& state, const Op& op, const Threads& threads) {
  const uint64_t address = state.memory().add(bytes_of_array(state, op));
  const auto text = state.kernel().text(static_cast<ir::StringId>(op.attr_or(AttrKey::kData, 0)));
  const auto digit = [&](size_t i) { return text[i] <= '9' ? text[i] - '0' : text[i] - 'a' + 10; };
  std::vector<uint8_t>& bytes = state.memory().piece(address);
  if (text.size() != 2 * bytes.size()) return state.fail("a table has too few bytes, or too many");
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(digit(2 * i) * 16 + digit(2 * i + 1));
  }
  return make_array(state, op, threads, address);
}

// The address of the element at the op's offset.
uint64_t address_of(State& state, const Op& op, uint32_t thread) {
  return state.at(op.view(), thread, ViewPart::kAddress) +
         static_cast<uint64_t>(state.number_at(op.offset(), thread)) *
             bytes_of_element(state, op.view());
}

// Where the op's access of so many bytes goes; nullptr, and a failure, where it must not.
uint8_t* access(State& state, const Op& op, uint32_t thread, size_t bytes) {
  if (valid(op.check()) && state.at(op.check(), thread) == 0) {
    state.fail("an access fails its bounds check");
    return nullptr;
  }
  uint8_t* const found = state.memory().find(address_of(state, op, thread), bytes);
  if (found == nullptr) state.fail("an access goes where no memory is, or is not aligned");
  return found;
}

// The elements of `value`, of which the op's access is.
struct Shape {
  Shape(State& state, ValueId value)
      : element(bytes_of_element(state, value)), count(state.count_of(value)) {}
  size_t bytes() const { return element * static_cast<size_t>(count); }
  uint64_t get(const uint8_t* from, int index) const {
    uint64_t bits = 0;
    std::memcpy(&bits, from + element * static_cast<size_t>(index), element);
    return bits;
  }
  void put(uint8_t* to, int index, uint64_t bits) const {
    std::memcpy(to + element * static_cast<size_t>(index), &bits, element);
  }
  size_t element;
  int count;
};

bool load(State& state, const Op& op, const Threads& threads) {
  const Shape shape(state, op.result());
  for (const uint32_t t : threads) {
    const uint8_t* const from = access(state, op, t, shape.bytes());
    if (from == nullptr) return false;
    for (int e = 0; e < shape.count; ++e) state.at(op.result(), t, e) = shape.get(from, e);
  }
  return true;
}

bool store(State& state, const Op& op, const Threads& threads) {
  const Shape shape(state, op.value());
  for (const uint32_t t : threads) {
    uint8_t* const to = access(state, op, t, shape.bytes());
    if (to == nullptr) return false;
    for (int e = 0; e < shape.count; ++e) shape.put(to, e, state.at(op.value(), t, e));
  }
  return true;
}

bool atomic(State& state, const Op& op, const Threads& threads) {
  const Scalar scalar = state.kernel().type(op.value()).scalar;
  const Shape shape(state, op.value());
  for (const uint32_t t : threads) {
    uint8_t* const place = access(state, op, t, shape.bytes());
    if (place == nullptr) return false;
    for (int e = 0; e < shape.count; ++e) {
      const uint64_t old = shape.get(place, e);
      const auto fresh =
          reduced(op.attr_or(AttrKey::kOp, 0), scalar, old, state.at(op.value(), t, e));
      if (!fresh) return state.fail("the oracle does not know the atomic");
      shape.put(place, e, *fresh);
      state.at(op.result(), t, e) = old;
    }
  }
  return true;
}

bool compare_and_swap(State& state, const Op& op, const Threads& threads) {
  const Shape shape(state, op.value());
  for (const uint32_t t : threads) {
    uint8_t* const place = access(state, op, t, shape.bytes());
    if (place == nullptr) return false;
    const uint64_t old = shape.get(place, 0);
    if (old == state.at(op.expected(), t)) shape.put(place, 0, state.at(op.value(), t));
    state.at(op.result(), t) = old;
  }
  return true;
}

// Of what other threads see nothing is asked: they go on one after the other.
bool fence(State&, const Op&, const Threads&) { return true; }

bool pointer(State& state, const Op& op, const Threads& threads) {
  state.fill(op.result(), threads, kNoExtent, ViewPart::kExtent);
  for (const uint32_t t : threads) state.at(op.result(), t) = state.at(op.address(), t);
  return true;
}
bool address(State& state, const Op& op, const Threads& threads) {
  for (const uint32_t t : threads) state.at(op.result(), t) = address_of(state, op, t);
  return true;
}
bool subview(State& state, const Op& op, const Threads& threads) {
  if (op.extents().size() != 1) return state.fail("the oracle knows views of one dimension alone");
  for (const uint32_t t : threads) {
    state.at(op.result(), t, ViewPart::kAddress) = address_of(state, op, t);
    state.at(op.result(), t, ViewPart::kExtent) =
        static_cast<uint64_t>(state.number_at(op.extents()[0], t));
  }
  return true;
}
bool extent(State& state, const Op& op, const Threads& threads) {
  const Scalar scalar = state.kernel().type(op.result()).scalar;
  for (const uint32_t t : threads) {
    const uint64_t elements = state.at(op.view(), t, ViewPart::kExtent);
    if (elements == kNoExtent) return state.fail("the extent of a pointer is asked for");
    state.at(op.result(), t) = wrap(scalar, static_cast<Int128>(elements));
  }
  return true;
}
bool stride(State& state, const Op& op, const Threads& threads) {
  for (const uint32_t t : threads) state.at(op.result(), t) = 1;
  return true;
}
bool bounds(State& state, const Op& op, const Threads& threads) {
  if (op.coordinates().size() != 1) {
    return state.fail("the oracle knows bounds of one dimension alone");
  }
  for (const uint32_t t : threads) {
    const Int128 first = state.number_at(op.coordinates()[0], t);
    const Int128 end = first + op.attr_or(AttrKey::kWidth, 1);
    const auto extent_of_view = static_cast<Int128>(state.at(op.view(), t, ViewPart::kExtent));
    state.at(op.result(), t) = first >= 0 && end <= extent_of_view ? 1 : 0;
  }
  return true;
}

constexpr std::pair<Opcode, Handler> kHandlers[] = {
    {Opcode::kShared, shared},
    {Opcode::kLocal, local},
    {Opcode::kTable, table},
    {Opcode::kLoad, load},
    {Opcode::kStore, store},
    {Opcode::kAtomic, atomic},
    {Opcode::kPointer, pointer},
    {Opcode::kAddress, address},
    {Opcode::kSubview, subview},
    {Opcode::kExtent, extent},
    {Opcode::kBounds, bounds},
    {Opcode::kStride, stride},
    {Opcode::kAtomicCas, compare_and_swap},
    {Opcode::kAtomicLoad, load},
    {Opcode::kAtomicStore, store},
    {Opcode::kFence, fence},
};

}  // namespace

std::optional<uint64_t> reduced(int64_t atomic_op, Scalar scalar, uint64_t x, uint64_t v) {
  if (!ir::is_integer(scalar)) return std::nullopt;
  const Int128 a = integer(scalar, x);
  const Int128 b = integer(scalar, v);
  switch (static_cast<ir::AtomicOp>(atomic_op)) {
    case ir::AtomicOp::kAdd:
      return wrap(scalar, a + b);
    case ir::AtomicOp::kMin:
      return a < b ? x : v;
    case ir::AtomicOp::kMax:
      return a < b ? v : x;
    case ir::AtomicOp::kAnd:
      return x & v;
    case ir::AtomicOp::kOr:
      return x | v;
    case ir::AtomicOp::kXor:
      return x ^ v;
    case ir::AtomicOp::kExch:
      return v;
    case ir::AtomicOp::kInc:
      return a >= b ? 0 : x + 1;
    case ir::AtomicOp::kDec:
      return a == 0 || a > b ? v : x - 1;
  }
  return std::nullopt;
}

Handler memory_handler(Opcode opcode) { return find_in<Handler>(kHandlers, opcode); }

}  // namespace heddle::fuzz::oracle
