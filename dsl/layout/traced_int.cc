// Numbers of layouts from a kernel's values, and as a kernel's values.
#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "heddle/dsl/layout/polynomial_internal.h"
#include "heddle/dsl/math/divmod.h"
#include "heddle/dsl/trace/trace_internal.h"
#include "heddle/ir/analysis/int_facts.h"

namespace heddle::detail {
namespace {

using ir::AttrKey;
using ir::Op;
using ir::Opcode;

// The op that a traced number comes from, where that may be computed again: thread_idx.x, the extent
// of a mode. Such a number is read again where it is used, so that it is one symbol however often a
// kernel names it, and within reach everywhere. nullptr for others.
const Op* rematerializable_op(const Trace& trace, const Node& node) {
  const Op* const def = const_cast<Trace&>(trace).kernel().def(ir::ValueId{node.id});
  return def != nullptr && has(info(*def), ir::kRematerializable) ? def : nullptr;
}

// Equal for equal places, and for nothing else.
uint64_t serial_of(const Trace& trace, const Node& node) {
  const Op* const place = rematerializable_op(trace, node);
  if (place == nullptr) return node.id;
  const uint64_t view = place->operands.empty() ? 0 : ir::index_of(place->view());
  const auto which =
      static_cast<uint64_t>(place->attr_or(AttrKey::kAxis, 0) + place->attr_or(AttrKey::kDim, 0));
  return Symbol::kRematerializable | view << 16 | which << 8 | static_cast<uint64_t>(place->opcode);
}

// The number in front of a widening conversion.
Node narrowed(Trace& trace, Node node) {
  const Op* const def = trace.kernel().def(ir::ValueId{node.id});
  if (def == nullptr || def->opcode != Opcode::kConvert) return node;
  const Node before = trace.node(def->a());
  return before.type.scalar == ir::Scalar::kI32 ? before : node;
}

int64_t host_number(const Node& node) {
  return node.type.scalar == ir::Scalar::kI32 ? static_cast<int32_t>(node.bits)
                                              : static_cast<int64_t>(node.bits);
}

// A number of the kernel and the depth of the loops and branches that it belongs in.
struct Part {
  Node node;
  int depth = 0;
};

// coefficient * (the product of some parts, by their numbers)
struct Product {
  int64_t coefficient;
  absl::InlinedVector<size_t, 4> parts;
};
using Products = absl::InlinedVector<Product, 4>;

// Records what computes a number. What changes least is added first and constants come last, so
// that loops and neighbouring accesses share as much as they can.
class Materializer {
 public:
  Materializer(Trace& trace, bool wide, bool exact, SourceLoc loc)
      : trace_(trace),
        type_(scalar_type(wide ? ir::Scalar::kI64 : ir::Scalar::kI32)),
        exact_(exact),
        loc_(loc) {}

  Part number(const SymInt& n) {
    if (n.is_constant()) return constant(n.value());
    if (n.is_overflow()) {
      trace_.report(loc_, "an index does not fit 64 bits", "check shapes and strides");
      return constant(0);
    }
    Products products;
    int64_t common = 1;  // of the terms that are no integers alone
    for (const Term& term : n.polynomial().terms) {
      if (divisor_or_none(term) == 0) common = std::lcm(common, term.denominator);
    }
    for (const Term& term : n.polynomial().terms) {
      products.push_back(common == 1 ? even(term) : uneven(term, common));
    }
    const Part total = sum(std::move(products));
    return common == 1 ? total : quotient(total, common, /*is_signed=*/false);
  }

 private:
  // 0 where the term is no integer by itself.
  static int64_t divisor_or_none(const Term& term) {
    if (term.denominator == 1) return 1;
    int64_t left = term.denominator / std::gcd(term.denominator, term.numerator);
    for (const SymbolRef& symbol : term.symbols) left /= std::gcd(left, symbol->divisor(true));
    return left == 1 ? 1 : 0;
  }

  // A term, whose symbols are divided before they are multiplied.
  Product even(const Term& term) {
    Product product{term.numerator, {}};
    int64_t left = term.denominator;
    for (const SymbolRef& symbol : term.symbols) {
      const int64_t by = left == 1 ? 1 : std::gcd(left, symbol->divisor(true));
      left /= by;
      product.parts.push_back(part(*symbol, by));
    }
    product.coefficient /= left;
    return product;
  }
  Product uneven(const Term& term, int64_t common) {
    Product product{term.numerator * (common / term.denominator), {}};
    for (const SymbolRef& symbol : term.symbols) product.parts.push_back(part(*symbol, 1));
    return product;
  }

  // The number of a symbol's part, divided by what is known to divide it.
  size_t part(const Symbol& symbol, int64_t by) {
    for (size_t i = 0; i < symbols_.size(); ++i) {
      if (symbols_[i].second == by && compare(*symbols_[i].first, symbol) == 0) return i;
    }
    Part made = value(symbol);
    if (by != 1) made = quotient(made, by, /*is_signed=*/false);
    symbols_.emplace_back(SymbolRef(&symbol), by);
    parts_.push_back(made);
    return parts_.size() - 1;
  }

  // Sums and products are right modulo 2^32; what is divided or compared has to fit.
  bool needs_wide(const Symbol& symbol) const {
    if (is_wide() || symbol.kind == SymbolKind::kUnknown || symbol.kind == SymbolKind::kTraced) {
      return false;
    }
    if (!exact_) return has_wide(symbol.a) || has_wide(symbol.b);
    const int64_t most = symbol.kind == SymbolKind::kMin ? INT32_MAX : UINT32_MAX;
    const SymInt above = symbol.kind == SymbolKind::kCeilDiv ? symbol.a + symbol.b - 1 : symbol.a;
    return above.most() > most || (symbol.kind != SymbolKind::kSwizzle && symbol.b.most() > most);
  }
  // Whether the kernel computes a part of it in 64 bits.
  static bool has_wide(const SymInt& n) {
    if (n.is_constant() || n.is_overflow()) return n.is_overflow() || n.value() > INT32_MAX;
    for (const Term& term : n.polynomial().terms) {
      for (const SymbolRef& symbol : term.symbols) {
        if (symbol->kind == SymbolKind::kTraced
                ? symbol->node.type.scalar == ir::Scalar::kI64 && symbol->most > INT32_MAX &&
                      !symbol->is_rematerializable()
                : has_wide(symbol->a) || has_wide(symbol->b)) {
          return true;
        }
      }
    }
    return false;
  }

  Part value(const Symbol& symbol) {
    if (needs_wide(symbol)) {
      const Part wide = Materializer(trace_, true, exact_, loc_).value(symbol);
      return {converted(wide.node), wide.depth};
    }
    switch (symbol.kind) {
      case SymbolKind::kUnknown:
        trace_.report(loc_, "an unknown number, ?, is used in a kernel",
                      "make layouts for kernels of host numbers and of the kernel's own integers");
        return constant(1);
      case SymbolKind::kTraced:
        return traced(symbol);
      case SymbolKind::kCeilDiv: {
        const SymInt above = symbol.a + symbol.b - 1;
        return quotient(number(above), above, symbol.b, number(symbol.b));
      }
      case SymbolKind::kFloorDiv:
        return quotient(number(symbol.a), symbol.a, symbol.b, number(symbol.b));
      case SymbolKind::kMod:
        return remainder(number(symbol.a), symbol.a, symbol.b, number(symbol.b));
      case SymbolKind::kMin:
        return binary(Opcode::kMin, number(symbol.a), number(symbol.b));
      case SymbolKind::kSwizzle:
        return swizzled(symbol);
      case SymbolKind::kXor:
        return binary(Opcode::kXor, number(symbol.a), number(symbol.b));
    }
    return constant(0);
  }

  Part traced(const Symbol& symbol) {
    if (const Op* const place = rematerializable_op(trace_, symbol.node)) {
      absl::InlinedVector<Node, 1> operands;
      for (const ir::ValueId operand : place->operands) operands.push_back(trace_.node(operand));
      const absl::InlinedVector<ir::Attr, 2> attrs(place->attrs.begin(), place->attrs.end());
      // An extent that is not known to fit 32 bits is never read as if it did.
      const bool far = place->opcode == Opcode::kExtent && symbol.most > INT32_MAX;
      const bool sized = place->opcode == Opcode::kExtent || place->opcode == Opcode::kStride;
      const NodeType type = far ? scalar_type(ir::Scalar::kI64) : sized ? type_ : symbol.node.type;
      return {converted(record(place->opcode, operands, type, attrs, loc_)), 0};
    }
    return {converted(symbol.node), depth_of(symbol.node)};
  }

  Node converted(const Node& node) {
    return node.type.scalar == type_.scalar ? node : emit_as(type_, Opcode::kConvert, node, loc_);
  }

  int depth_of(const Node& node) const {
    ir::Kernel& kernel = trace_.kernel();
    const ir::Value& value = kernel.value(ir::ValueId{node.id});
    ir::RegionId region = ir::valid(value.def) ? kernel.op(value.def).parent : value.region;
    int depth = 0;
    for (; region != kernel.body(); ++depth) {
      region = kernel.op(kernel.region(region).parent).parent;
    }
    return depth;
  }

  // --- Sums and products ---

  Part sum(Products products) {
    // Of those of one depth, the greatest stride changes least.
    std::stable_sort(products.begin(), products.end(), [this](const Product& a, const Product& b) {
      return std::pair(depth_of(a), -std::abs(a.coefficient)) <
             std::pair(depth_of(b), -std::abs(b.coefficient));
    });
    Part total = constant(0);
    int64_t addend = 0;
    Products group;
    const auto close_group = [&] {
      if (!group.empty()) total = plus(total, factored(group));
      group.clear();
    };
    for (Product& product : products) {
      if (product.parts.empty()) {
        addend += product.coefficient;
        continue;
      }
      if (!group.empty() && depth_of(group.front()) != depth_of(product)) close_group();
      group.push_back(std::move(product));
    }
    // A constant goes with what changes most: what it is added to stays one sum for all accesses.
    if (group.empty()) return plus(total, constant(addend));
    return plus(total, plus(factored(group), constant(addend)));
  }

  // Products that change together: a part that several have is multiplied once.
  Part factored(const Products& group) {
    size_t best = 0;
    int most = 1;
    for (const Product& product : group) {
      for (const size_t candidate : product.parts) {
        const int uses = static_cast<int>(std::count_if(
            group.begin(), group.end(), [&](const Product& p) { return has(p, candidate); }));
        if (uses > most) {
          most = uses;
          best = candidate;
        }
      }
    }
    if (most == 1) {
      Part total = constant(0);
      for (const Product& product : group) total = plus(total, product);
      return total;
    }
    Products with, without;
    for (const Product& product : group) {
      if (!has(product, best)) {
        without.push_back(product);
        continue;
      }
      with.push_back(product);
      auto& parts = with.back().parts;
      parts.erase(std::find(parts.begin(), parts.end(), best));
    }
    Part total = binary(Opcode::kMul, sum(std::move(with)), parts_[best]);
    if (!without.empty()) total = plus(total, factored(without));
    return total;
  }

  static bool has(const Product& product, size_t part) {
    return std::find(product.parts.begin(), product.parts.end(), part) != product.parts.end();
  }
  int depth_of(const Product& product) const {
    int depth = 0;
    for (const size_t part : product.parts) depth = std::max(depth, parts_[part].depth);
    return depth;
  }

  Part plus(const Part& total, const Product& product) {
    const bool subtract = product.coefficient < 0 && !is_constant(total, 0);
    Part term = constant(subtract ? -product.coefficient : product.coefficient);
    for (const size_t part : product.parts) term = binary(Opcode::kMul, parts_[part], term);
    return subtract ? binary(Opcode::kSub, total, term) : plus(total, term);
  }
  Part plus(const Part& a, const Part& b) {
    if (is_constant(a, 0)) return b;
    if (is_constant(b, 0)) return a;
    return binary(Opcode::kAdd, a, b);
  }

  // --- Single ops ---

  Part constant(int64_t value) const {
    return {type_.scalar == ir::Scalar::kI64 ? host_node(value)
                                             : host_node(static_cast<int32_t>(value)),
            0};
  }
  static bool is_constant(const Part& part, int64_t value) {
    return part.node.is_host() && host_number(part.node) == value;
  }
  Part binary(Opcode opcode, const Part& a, const Part& b) {
    if (opcode == Opcode::kMul && is_constant(b, 1)) return a;
    if (opcode == Opcode::kMul && is_constant(a, 1)) return b;
    return {emit(opcode, a.node, b.node, loc_), std::max(a.depth, b.depth)};
  }
  Part shifted(Opcode opcode, const Part& a, int bits) {
    return {emit(opcode, a.node, host_node(static_cast<uint32_t>(bits)), loc_), a.depth};
  }
  Part masked(const Part& a, int64_t mask) { return binary(Opcode::kAnd, a, constant(mask)); }

  // Numbers that are divided are not negative: by shifts, masks and unsigned division, then.
  Part quotient(const Part& a, int64_t by, bool is_signed) {
    if (by == 1) return a;
    if (!std::has_single_bit(static_cast<uint64_t>(by))) return divided(a, constant(by));
    const int bits = std::countr_zero(static_cast<uint64_t>(by));
    if (is_signed) return shifted(Opcode::kShr, a, bits);
    return cast(shifted(Opcode::kShr, cast(a, unsigned_scalar()), bits), type_.scalar);
  }
  Part quotient(const Part& a, const SymInt& over, const SymInt& under, const Part& by) {
    const bool is_signed = is_wide() || over.most() <= INT32_MAX;
    if (under.is_constant()) return quotient(a, under.value(), is_signed);
    return is_wide() ? divided(a, by) : divided(a, under, by);
  }
  Part remainder(const Part& a, const SymInt& over, const SymInt& under, const Part& by) {
    if (under.is_constant() && std::has_single_bit(static_cast<uint64_t>(under.value()))) {
      return masked(a, under.value() - 1);
    }
    // Shares the division with the quotient, which is mostly wanted too. That of a quotient is one
    // by the product of both divisors; where this may not fit, it is divided once more.
    const Part whole = exact_ ? quotient(a, over, under, by) : number(floor_div(over, under));
    return binary(Opcode::kSub, a, binary(Opcode::kMul, whole, by));
  }
  Part divided(const Part& a, const Part& by) {
    const ir::Scalar bits = unsigned_scalar();
    return cast(binary(Opcode::kDiv, cast(a, bits), cast(by, bits)), type_.scalar);
  }
  // By what the launch knows: with a multiplier, which accesses to one tensor share.
  Part divided(const Part& a, const SymInt& under, const Part& by) {
    const Divider* divider = trace_.find_divider(under);
    if (divider == nullptr) {
      divider = trace_.remember_divider(under, make_divider(whole_divisor(under, by), loc_));
    }
    const Node bits = detail::quotient(a.node, *divider, loc_);
    return cast({bits, std::max(a.depth, by.depth)}, type_.scalar);
  }
  // A product of extents may have more than 32 bits where strides are 0: then no number reaches it,
  // and the host, which computes it, takes the largest one that there is.
  Node whole_divisor(const SymInt& under, const Part& by) {
    constexpr int64_t kLargest = UINT32_MAX;
    if (under.most() <= kLargest) return by.node;
    const Node wide = Materializer(trace_, true, true, loc_).number(under).node;
    if (!is_known_at_launch(wide, loc_)) return by.node;
    const Node least = emit(Opcode::kMin, wide, host_node(kLargest), loc_);
    return emit_as(scalar_type(ir::Scalar::kU32), Opcode::kConvert, least, loc_);
  }
  bool is_wide() const { return type_.scalar == ir::Scalar::kI64; }
  ir::Scalar unsigned_scalar() const { return is_wide() ? ir::Scalar::kU64 : ir::Scalar::kU32; }
  // The same bits.
  Part cast(const Part& part, ir::Scalar to) {
    return {emit_bitcast(part.node, to, loc_), part.depth};
  }

  Part swizzled(const Symbol& symbol) {
    const Swizzle swizzle = swizzle_of(symbol);
    const Part index = number(symbol.a);
    const Part source = masked(index, swizzle.source_mask());
    const Part moved = swizzle.shift() < 0 ? shifted(Opcode::kShl, source, -swizzle.shift())
                                           : shifted(Opcode::kShr, source, swizzle.shift());
    return binary(Opcode::kXor, index, moved);
  }

  Trace& trace_;
  NodeType type_;
  bool exact_;
  SourceLoc loc_;
  std::vector<Part> parts_;
  // Of each part, and its divisor. Held: numbers that are made on the way die before it.
  std::vector<std::pair<SymbolRef, int64_t>> symbols_;
};

}  // namespace

SymInt traced_int(const Node& node, SourceLoc loc) {
  if (node.is_host()) return host_number(node);
  Trace* const trace = Trace::current();
  auto* const symbol = new Symbol;
  symbol->kind = SymbolKind::kTraced;
  symbol->node = node;
  symbol->serial = node.id;
  symbol->least = 0;
  const SymInt number = symbol_number(symbol);
  // What is wrong with the value is reported here, at its line.
  if (trace == nullptr || trace->node(trace->use(node, loc)).id != node.id) return number;
  if (const auto constant = trace->kernel().constant_int(ir::ValueId{node.id})) return *constant;
  symbol->node = narrowed(*trace, node);
  symbol->serial = serial_of(*trace, symbol->node);
  const ir::IntRange range = trace->ints().range(ir::ValueId{symbol->node.id});
  // Of a tensor without elements nothing is accessed.
  const Op* const place = rematerializable_op(*trace, symbol->node);
  const bool is_extent = place != nullptr && place->opcode == Opcode::kExtent;
  symbol->least = std::max<int64_t>(range.min, is_extent ? 1 : 0);
  // Costs nothing, and the interpreter says where it does not hold.
  if (range.min < 0 && place == nullptr) {
    symbol->node = emit_assume_range(symbol->node, {.min = 0}, loc);
  }
  symbol->most = range.max;
  symbol->known_divisor = Symbol::kAsk;
  return number;
}

int64_t traced_divisor(const Node& node) {
  Trace* const trace = Trace::current();
  // A number of another kernel; using it is reported.
  if (trace == nullptr || trace->serial() != node.bits) return 1;
  return std::max<int64_t>(1, trace->ints().divisor(ir::ValueId{node.id}));
}

Node materialize(const SymInt& number, bool wide, SourceLoc loc, bool exact) {
  if (number.is_constant()) {
    return wide ? host_node(number.value()) : host_constant<int32_t>(number.value(), loc);
  }
  Trace* const trace = Trace::current();
  if (trace == nullptr) {
    return made_outside(scalar_type(wide ? ir::Scalar::kI64 : ir::Scalar::kI32),
                        "a layout's number", loc);
  }
  const Trace::Width width = wide    ? Trace::Width::kWide
                             : exact ? Trace::Width::kExact
                                     : Trace::Width::kNarrow;
  if (const Node* known = trace->find_computed(number, width)) return *known;
  const Node node = Materializer(*trace, wide, exact, loc).number(number).node;
  trace->remember_computed(number, width, node);
  return node;
}

SymInt promised_multiple(const SymInt& number, int64_t divisor, SourceLoc loc) {
  const Node node = materialize(number, number.most() > INT32_MAX, loc);
  return traced_int(emit_assume_range(node, {.divisor = divisor}, loc), loc);
}

}  // namespace heddle::detail
