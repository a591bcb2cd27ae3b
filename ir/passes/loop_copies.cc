#include "heddle/ir/passes/loop_copies.h"

namespace heddle::ir {
namespace {

// Modulo 2^64: the last trips of a full round may be further from its first than the largest number.
int64_t product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// As many bits, of which none is a sign.
Type unsigned_of(Type index) {
  return Type::of(index.scalar == Scalar::kI64 ? Scalar::kU64 : Scalar::kU32);
}

}  // namespace

int64_t LoopCopies::body_ops(OpId loop) const {
  int64_t ops = 0;
  kernel_.walk(kernel_.op(loop).regions[0], [&](OpId) { ++ops; });
  return ops;
}

bool LoopCopies::makes_arrays(OpId loop) const {
  bool any = false;
  kernel_.walk(kernel_.op(loop).regions[0],
               [&](OpId id) { any |= has(info(kernel_.op(id)), kFresh); });
  return any;
}

LoopCopies::Carried LoopCopies::make_loop(const Op& loop, ValueId start, ValueId stop, int64_t n,
                                          int64_t step, const Carried& init, ValueId from) {
  const ValueId by = b_.constant_int(kernel_.type(start), n * step);
  return make_loop_by(by, loop, start, stop, n, step, init, from);
}

LoopCopies::Carried LoopCopies::make_loop_by(ValueId by, const Op& loop, ValueId start,
                                             ValueId stop, int64_t n, int64_t step,
                                             const Carried& init, ValueId from) {
  const OpId id = b_.begin_for(start, stop, by, init);
  kernel_.op(id).set_attr(AttrKey::kUnroll, 1);  // the assembler adds nothing to it
  const auto& args = kernel_.region(kernel_.op(id).regions[0]).args;
  ValueId i = args[0];
  const Carried inside(args.begin() + 1, args.end());
  if (valid(from)) i = b_.create(Opcode::kAdd, {from, i});
  b_.yield(make_trips(loop, i, n, step, inside));
  b_.end_region();
  const auto& results = kernel_.op(id).results;
  return {results.begin(), results.end()};
}

LoopCopies::Carried LoopCopies::make_trips(const Op& loop, ValueId i, int64_t n, int64_t step,
                                           Carried carried) {
  const RegionId body = loop.regions[0];
  for (int64_t k = 0; k < n; ++k) {
    Map map;
    const ValueId by = k == 0 ? ValueId::kNone : b_.constant_int(kernel_.type(i), product(k, step));
    map[kernel_.region(body).args[0]] = k == 0 ? i : b_.create(Opcode::kAdd, {i, by});
    for (size_t c = 0; c < carried.size(); ++c) {
      map[kernel_.region(body).args[c + 1]] = carried[c];
    }
    carried = ops(b_, body, map, k);
    b_.set_loc(loop.loc);
  }
  return carried;
}

LoopCopies::Carried LoopCopies::make_rounds(const Op& loop, int64_t n, int64_t step,
                                            Carried carried) {
  const ValueId start = loop.start(), stop = loop.stop();
  const std::optional<uint64_t> known = known_trips(loop);
  if (!known) {
    const OpId id = kernel_.region(loop.regions[0]).parent;
    b_.set_insertion_before(
        outermost_that_sees(id, replaced_.resolve(start), replaced_.resolve(stop)));
    const ValueId mid = middle(start, stop, n, step);
    b_.set_insertion_before(id);
    carried = make_loop(loop, start, mid, n, step, carried);
    return make_loop(loop, mid, stop, 1, step, carried);
  }
  const uint64_t left = *known % static_cast<uint64_t>(n);
  const uint64_t whole = (*known - left) * static_cast<uint64_t>(step);
  const auto first = static_cast<uint64_t>(*kernel_.constant_int(start));
  // Behind a last full round may lie no number of the type.
  const ValueId mid =
      left == 0 ? stop : constant(kernel_.type(start), static_cast<int64_t>(first + whole));
  carried = make_loop(loop, start, mid, n, step, carried);
  if (left == 0) return carried;
  return left == 1 ? make_trips(loop, mid, 1, step, carried)
                   : make_loop(loop, mid, stop, 1, step, carried);
}

std::optional<uint64_t> LoopCopies::known_trips(const Op& loop) const {
  const auto first = kernel_.constant_int(loop.start()), end = kernel_.constant_int(loop.stop());
  if (!first || !end) return std::nullopt;
  if (*end <= *first) return 0;
  const uint64_t between = static_cast<uint64_t>(*end) - static_cast<uint64_t>(*first);
  return (between - 1) / static_cast<uint64_t>(*kernel_.constant_int(loop.step())) + 1;
}

ValueId LoopCopies::distance(ValueId start, ValueId stop) {
  const Type bits = unsigned_of(kernel_.type(start));
  const ValueId some = make(Opcode::kLt, start, stop);
  const ValueId between = b_.create(Opcode::kBitcast, {make(Opcode::kSub, stop, start)}, bits);
  return b_.create(Opcode::kSelect, {some, between, constant(bits, 0)});
}

OpId LoopCopies::outermost_that_sees(OpId loop, ValueId start, ValueId stop) const {
  const auto is_inside = [&](ValueId value, OpId around) {
    const OpId def = kernel_.value(value).def;
    RegionId region = valid(def) ? kernel_.op(def).parent : kernel_.value(value).region;
    while (valid(region)) {
      const OpId owner = kernel_.region(region).parent;
      if (!valid(owner)) return false;
      if (owner == around) return true;
      region = kernel_.op(owner).parent;
    }
    return false;
  };
  for (OpId up = loop;;) {
    up = kernel_.region(kernel_.op(up).parent).parent;
    if (!valid(up) || !is_loop(kernel_.op(up)) || is_inside(start, up) || is_inside(stop, up)) {
      return loop;
    }
    loop = up;
  }
}

ValueId LoopCopies::middle(ValueId start, ValueId stop, int64_t n, int64_t step) {
  const Type type = kernel_.type(start);
  const Type bits = unsigned_of(type);
  const ValueId between = distance(start, stop);
  ValueId trips = between;
  if (step > 1) {
    // The distance less one, so that the rounding up does not wrap; of none, none.
    const ValueId before = make(Opcode::kSub, between, constant(bits, 1));
    const ValueId up =
        make(Opcode::kAdd, make(Opcode::kDiv, before, constant(bits, step)), constant(bits, 1));
    const ValueId some = make(Opcode::kLt, start, stop);
    trips = b_.create(Opcode::kSelect, {some, up, constant(bits, 0)});
  }
  const ValueId left = make(Opcode::kRem, trips, constant(bits, n));
  const ValueId whole = make(Opcode::kMul, make(Opcode::kSub, trips, left), constant(bits, step));
  const ValueId mid = make(Opcode::kAdd, start, b_.create(Opcode::kBitcast, {whole}, type));
  if (step == 1) return mid;
  // Behind a last full round may lie no number of the type.
  const ValueId none = make(Opcode::kEq, left, constant(bits, 0));
  return b_.create(Opcode::kSelect, {none, stop, mid});
}

void LoopCopies::replace(OpId loop, const Carried& results) {
  for (size_t i = 0; i < results.size(); ++i) {
    const ValueId old = kernel_.op(loop).results[i];
    inherit_name(kernel_, results[i], old);
    replaced_.add(old, results[i]);
  }
  kernel_.unlink(loop);
  taken_out_.push_back(loop);
}

void LoopCopies::finish() {
  if (taken_out_.empty()) return;
  replaced_.apply_everywhere(kernel_);
  for (const OpId loop : taken_out_) {
    for (const RegionId body : kernel_.op(loop).regions) {
      for (const OpId inner : kernel_.ops(body)) kernel_.erase(inner);
    }
  }
}

// Copies a region's ops to a builder's place; gives back what it yields.
LoopCopies::Carried LoopCopies::ops(Builder& b, RegionId region, Map& map, int64_t trip) {
  const auto mapped = [&](ValueId value) {
    value = replaced_.resolve(value);
    const auto found = map.find(value);
    return found == map.end() ? value : found->second;
  };
  for (OpId id = kernel_.region(region).first; valid(id); id = kernel_.op(id).next) {
    const Op op = kernel_.op(id);  // a copy: what it is made into may move all ops
    Carried operands;
    for (const ValueId operand : op.operands) operands.push_back(mapped(operand));
    if (op.opcode == Opcode::kYield) return operands;
    b.set_loc(op.loc);
    absl::InlinedVector<Type, 2> types;
    for (const ValueId result : op.results) types.push_back(kernel_.type(result));
    const OpId copy = b.create_op(op.opcode, operands, types, op.attrs);
    for (size_t r = 0; r < op.results.size(); ++r) {
      map[op.results[r]] = kernel_.op(copy).results[r];
      inherit_name(kernel_, kernel_.op(copy).results[r], op.results[r]);
    }
    for (const RegionId inner : op.regions) this->region(inner, copy, map);
    if (&b == &b_ && on_copy_) on_copy_(id, copy, trip);
  }
  return {};
}

void LoopCopies::region(RegionId from, OpId owner, Map& map) {
  const RegionId copy = kernel_.add_region(owner);
  const size_t count = kernel_.region(from).args.size();
  for (size_t a = 0; a < count; ++a) {
    const ValueId arg = kernel_.region(from).args[a];
    map[arg] = kernel_.add_region_arg(copy, kernel_.type(arg), kernel_.value(arg).name);
  }
  Builder b(kernel_);
  b.set_insertion_end(copy);
  b.yield(ops(b, from, map, 0));
}

}  // namespace heddle::ir
