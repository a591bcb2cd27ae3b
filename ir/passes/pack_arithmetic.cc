// pack-arithmetic: what neighbours of a vector are computed from becomes arithmetic of vectors.
//
// What: from each vector that is put together from single elements, backwards: elements that the same op makes of
// neighbours' elements become one op on vectors, as long as that takes fewer instructions. Where that cannot be one
// vector, halves of it are tried. For f16 and bf16, of which PTX computes two at once; for conversions to 16 and 8 bits,
// which take two numbers; and for f32 where the target has arithmetic of pairs. Every element must be needed by these
// vectors alone.
//
// Needs: nothing. Keeps: aliasing, ints, guarded-ints, movable-ints.
//
// Why: half the instructions, and none that join parts of registers. Of f16 and f32 ptxas finds most pairs itself, of
// 8-bit floats none.
//
//   %a = extract %v {index = 0} : f16
//   %b = extract %v {index = 1} : f16
//   %c = mul %a, %s : f16                     %t = splat %s : vec<f16, 2>
//   %d = mul %b, %s : f16                →    %w = mul %v, %t : vec<f16, 2>
//   %w = pack %c, %d : vec<f16, 2>
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "heddle/ir/analysis/views.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/passes/passes.h"
#include "heddle/ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

// Ops that are looked at for one vector, which bounds the time.
constexpr size_t kMostNodes = 256;
constexpr size_t kRegisterBytes = 4;

class Packing {
 public:
  explicit Packing(Kernel& kernel)
      : kernel_(kernel), uses_(count_uses(kernel)), tied_(tied_values(kernel)), builder_(kernel_) {}

  bool run() {
    std::vector<OpId> packs;
    kernel_.walk([&](OpId id) {
      if (makes_vector(kernel_.op(id))) packs.push_back(id);
    });
    for (const OpId pack : packs) look_at(pack);
    if (replaced_.empty()) return false;
    IdMap<ValueId, ValueId> by{ValueId::kNone};
    for (const auto& [old, made] : replaced_) by.at(old) = made;
    kernel_.replace_uses(by);
    uses_ = count_uses(kernel_);
    for (const auto& [old, made] : replaced_) drop(old);
    return true;
  }

 private:
  using Elements = absl::InlinedVector<ValueId, 8>;
  enum class Kind : uint8_t {
    kSame,    // one value
    kVector,  // the elements of a vector, in their order
    kApart,   // what has to be put together
    kOp,      // what the same op makes of elements of its operands
  };
  struct Node {
    Elements elements;
    Kind kind;
    absl::InlinedVector<size_t, 3> operands{};  // kOp: nodes
    ValueId vector = ValueId::kNone;            // kVector, and what has been made
  };

  bool makes_vector(const Op& op) const {
    return op.opcode == Opcode::kPack && op.operands.size() > 1 &&
           kernel_.type(op.result()).kind == TypeKind::kVector &&
           kernel_.type(op.elements()[0]).is_scalar();
  }

  // Erases the op that makes a value which nothing uses, and what was there for it alone.
  void drop(ValueId value) {
    const OpId def = kernel_.value(value).def;
    if (!valid(def) || uses_[value] != 0 || !has(info(kernel_.op(def)), kPure)) return;
    const auto operands = kernel_.op(def).operands;
    kernel_.erase(def);
    for (const ValueId operand : operands) {
      --uses_.at(operand);
      drop(operand);
    }
  }

  void look_at(OpId pack) {
    const Op op = kernel_.op(pack);  // a copy: new ops may move all others
    region_ = op.parent;
    builder_.set_insertion_before(pack);
    Elements parts;
    if (!make_parts(op.elements(), parts)) return;
    builder_.set_loc(op.loc);
    const ValueId old = op.result();
    const ValueId made = parts.size() == 1
                             ? parts[0]
                             : builder_.create(Opcode::kPack, parts, kernel_.type(old), op.attrs);
    inherit_name(kernel_, made, old);
    replaced_.emplace_back(old, made);
  }

  // Appends what a vector is put together from: vectors that arithmetic makes of as many neighbours as it can, in whole
  // registers, and single elements. Whether there is any such vector.
  bool make_parts(absl::Span<const ValueId> elements, Elements& parts) {
    if (const ValueId made = make_vector(elements); valid(made)) {
      parts.push_back(made);
      return true;
    }
    const size_t half = elements.size() / 2;
    const bool is_whole =
        elements.size() % 2 == 0 && half >= 2 &&
        half * static_cast<size_t>(bytes_of(kernel_.type(elements[0]).scalar)) >= kRegisterBytes;
    if (!is_whole) {
      parts.insert(parts.end(), elements.begin(), elements.end());
      return false;
    }
    const bool first = make_parts(elements.first(half), parts);
    return make_parts(elements.subspan(half), parts) || first;
  }

  // A vector of these elements by arithmetic of vectors; kNone where that takes no fewer instructions.
  ValueId make_vector(absl::Span<const ValueId> elements) {
    nodes_.clear();
    numbers_.clear();
    const size_t root = node_of(Elements(elements.begin(), elements.end()));
    if (nodes_[root].kind != Kind::kOp) return ValueId::kNone;
    take_back_what_others_need();
    if (nodes_[root].kind != Kind::kOp || gain(root) <= 0) return ValueId::kNone;
    return make(root);
  }

  size_t node_of(Elements elements) {
    const auto [place, is_new] = numbers_.try_emplace(elements, nodes_.size());
    const size_t number = place->second;
    if (!is_new) return number;
    nodes_.push_back({.elements = elements, .kind = Kind::kApart});
    if (std::all_of(elements.begin(), elements.end(),
                    [&](ValueId element) { return element == elements[0]; })) {
      nodes_[number].kind = Kind::kSame;
    } else if (const ValueId vector = vector_of(elements); valid(vector)) {
      nodes_[number].kind = Kind::kVector;
      nodes_[number].vector = vector;
    } else if (nodes_.size() < kMostNodes && are_alike(elements)) {
      nodes_[number].kind = Kind::kOp;
      const size_t count = kernel_.def(elements[0])->operands.size();
      for (size_t i = 0; i < count; ++i) {
        Elements inputs;
        for (const ValueId element : elements) inputs.push_back(kernel_.def(element)->operands[i]);
        const size_t input = node_of(std::move(inputs));
        nodes_[number].operands.push_back(input);
      }
    }
    return number;
  }

  // The vector whose elements these are, all of them and in order.
  ValueId vector_of(const Elements& elements) const {
    ValueId vector = ValueId::kNone;
    for (size_t i = 0; i < elements.size(); ++i) {
      const Op* const op = kernel_.def(elements[i]);
      if (op == nullptr || op->opcode != Opcode::kExtract) return ValueId::kNone;
      const ValueId from = op->a();
      if (i == 0) vector = from;
      if (from != vector || op->attr_or(AttrKey::kIndex, 0) != static_cast<int64_t>(i)) {
        return ValueId::kNone;
      }
    }
    const Type type = kernel_.type(vector);
    return type.kind == TypeKind::kVector && type.count == elements.size() ? vector
                                                                           : ValueId::kNone;
  }

  // Whether one op on vectors makes all elements.
  bool are_alike(const Elements& elements) const {
    const Op* const first = kernel_.def(elements[0]);
    if (first == nullptr || !has_packed_form(*first)) return false;
    // What is converted may be wider than its results.
    const auto fits = [&](ValueId operand) {
      return static_cast<int>(elements.size()) * bytes_of(kernel_.type(operand).scalar) <=
             kMostVectorBytes;
    };
    if (!std::all_of(first->operands.begin(), first->operands.end(), fits)) return false;
    return std::all_of(elements.begin(), elements.end(), [&](ValueId element) {
      const Op* const op = kernel_.def(element);
      if (op == nullptr || op->opcode != first->opcode || op->parent != region_) return false;
      if (op->attrs != first->attrs || tied_[element] != 0) return false;
      for (size_t i = 0; i < op->operands.size(); ++i) {
        if (kernel_.type(op->operands[i]) != kernel_.type(first->operands[i])) return false;
      }
      return true;
    });
  }

  bool has_packed_form(const Op& op) const {
    const Type type = op.results.size() == 1 ? kernel_.type(op.result()) : Type::none();
    if (!type.is_scalar() || op.attr(AttrKey::kFtz)) return false;
    const bool has_pairs = is_half(type.scalar) || (type.scalar == Scalar::kF32 &&
                                                    has(*kernel_.target, Feature::kPackedF32));
    switch (op.opcode) {
      case Opcode::kAdd:
      case Opcode::kSub:
      case Opcode::kMul:
      case Opcode::kFma:
        return has_pairs;
      case Opcode::kMin:
      case Opcode::kMax:
      case Opcode::kMinNan:
      case Opcode::kMaxNan:
      case Opcode::kNeg:
      case Opcode::kAbs:
        return is_half(type.scalar);
      case Opcode::kConvert:
        return (is_half(type.scalar) || type.scalar == Scalar::kE4M3 ||
                type.scalar == Scalar::kE5M2) &&
               kernel_.type(op.a()).scalar == Scalar::kF32;
      default:
        return false;
    }
  }

  // An element that is needed elsewhere too would be computed twice, so that its vector is put together from it.
  void take_back_what_others_need() {
    for (bool again = true; again;) {
      again = false;
      absl::flat_hash_map<ValueId, uint32_t> inside;
      std::vector<bool> reached(nodes_.size(), false);
      counted_.clear();
      count_inside(0, reached, inside);
      for (const ValueId element : nodes_[0].elements) ++inside[element];
      for (size_t i = 0; i < nodes_.size(); ++i) {
        Node& node = nodes_[i];
        if (!reached[i] || node.kind != Kind::kOp) continue;
        const auto is_inside = [&](ValueId element) { return inside[element] == uses_[element]; };
        if (std::all_of(node.elements.begin(), node.elements.end(), is_inside)) continue;
        node.kind = Kind::kApart;
        again = true;
      }
    }
  }
  void count_inside(size_t number, std::vector<bool>& reached,
                    absl::flat_hash_map<ValueId, uint32_t>& inside) {
    if (reached[number]) return;
    reached[number] = true;
    const Node& node = nodes_[number];
    if (node.kind != Kind::kOp) return;
    for (const ValueId element : node.elements) {
      if (!counted_.insert(element).second) continue;  // it stands in several places
      for (const ValueId operand : kernel_.def(element)->operands) ++inside[operand];
    }
    for (const size_t operand : node.operands) count_inside(operand, reached, inside);
  }

  // How many instructions fewer there are, with those that put the first node's vector together.
  int gain(size_t root) const {
    std::vector<bool> counted(nodes_.size(), false);
    return joins(nodes_[root]) + gain_of(root, counted);
  }
  int gain_of(size_t number, std::vector<bool>& counted) const {
    if (counted[number]) return 0;
    counted[number] = true;
    const Node& node = nodes_[number];
    switch (node.kind) {
      case Kind::kVector:
        return 0;
      case Kind::kSame:
        return kernel_.constant_bits(node.elements[0]) ? 0 : -std::min(joins(node), 1);
      case Kind::kApart:
        return -joins(node);
      case Kind::kOp:
        break;
    }
    int saved = static_cast<int>(node.elements.size() / 2);
    for (const size_t operand : node.operands) saved += gain_of(operand, counted);
    return saved;
  }
  // Instructions that put a vector together: of 32 bits and more each element has registers of its own.
  int joins(const Node& node) const {
    return bytes_of(kernel_.type(node.elements[0]).scalar) < 4
               ? static_cast<int>(node.elements.size() / 2)
               : 0;
  }

  ValueId make(size_t number) {
    if (valid(nodes_[number].vector)) return nodes_[number].vector;
    const Elements elements = nodes_[number].elements;
    const Type type =
        Type::vector(kernel_.type(elements[0]).scalar, static_cast<int>(elements.size()));
    ValueId made;
    if (nodes_[number].kind == Kind::kSame) {
      made = builder_.create(Opcode::kSplat, {elements[0]}, type);
    } else if (nodes_[number].kind == Kind::kApart) {
      made = builder_.create(Opcode::kPack, elements, type);
    } else {
      const auto inputs = nodes_[number].operands;
      absl::InlinedVector<ValueId, 3> operands;
      for (const size_t input : inputs) operands.push_back(make(input));
      const Op op = *kernel_.def(elements[0]);  // a copy: new ops may move all others
      builder_.set_loc(op.loc);
      made = builder_.create(op.opcode, operands, type, op.attrs);
    }
    nodes_[number].vector = made;
    return made;
  }

  Kernel& kernel_;
  IdMap<ValueId, uint32_t> uses_;
  IdMap<ValueId, uint8_t> tied_;
  Builder builder_;
  RegionId region_ = {};  // of the vector at hand
  std::vector<Node> nodes_;
  absl::flat_hash_map<Elements, size_t> numbers_;
  absl::flat_hash_set<ValueId> counted_;  // elements whose operands count_inside() has counted
  std::vector<std::pair<ValueId, ValueId>> replaced_;  // vectors, and what has their elements now
};

}  // namespace

bool pack_arithmetic(Kernel& kernel) { return Packing(kernel).run(); }

}  // namespace heddle::ir
