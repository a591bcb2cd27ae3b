// A kernel in structured SSA.
//
// An op may own regions; a region is one block of ops with arguments, ended by `yield`. Dominance
// is lexical nesting. Storage is vectors inside the Kernel, addressed by the ids of ids.h; a Kernel
// is a plain value: copying it copies the program.
//
//   Kernel kernel("scale");
//   ValueId x = kernel.add_param("x", Type::view(Scalar::kF32, Space::kGlobal, 1), {kDynamic},
//   {1}); Builder b(kernel);                                        // builder.h
//   b.create(Opcode::kStore, {x, b.create(Opcode::kLoad, {x, i}), i});
//   std::string text = print(kernel);                         // printer.h
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/attr.h"
#include "heddle/ir/check.h"
#include "heddle/ir/dim3.h"
#include "heddle/ir/ids.h"
#include "heddle/ir/launch/fact.h"
#include "heddle/ir/op_info.h"
#include "heddle/ir/target.h"
#include "heddle/ir/type.h"

namespace heddle::ir {

// An extent or stride that the launch decides.
inline constexpr int64_t kDynamic = std::numeric_limits<int64_t>::min();

// A line of the user's source.
struct Loc {
  absl::string_view file;  // empty: unknown
  int line = 0;
};

struct Op {
  Opcode opcode{};
  LocId loc = LocId::kNone;
  RegionId parent = RegionId::kNone;
  OpId prev = OpId::kNone;
  OpId next = OpId::kNone;
  absl::InlinedVector<ValueId, 4> operands;
  absl::InlinedVector<ValueId, 1> results;
  absl::InlinedVector<RegionId, 2> regions;
  absl::InlinedVector<Attr, 2> attrs;

  ValueId result() const { return results.empty() ? ValueId::kNone : results[0]; }
  // The operand of that name; kNone where it is optional and not given. Asking for a name that the
  // op's signature has not is a bug.
  ValueId operand(OperandName name) const {
    const size_t index = index_of(name);
    return index < operands.size() ? operands[index] : ValueId::kNone;
  }
  // The operands of that name, the last of the signature.
  absl::Span<const ValueId> operands_named(OperandName name) const {
    return absl::MakeConstSpan(operands).subspan(std::min(index_of(name), operands.size()));
  }
  // Puts another value in the place of one that is there.
  void set_operand(OperandName name, ValueId value) { operands[index_of(name)] = value; }
  // Where the op's operands of that name are, or would begin, in `operands`.
  size_t index_of(OperandName name) const {
    const int index = operand_index(opcode, name);
    HEDDLE_CHECK(index >= 0, "the op has no operand of that name");
    return static_cast<size_t>(index);
  }
#define HEDDLE_OPERAND(name, enumerator) \
  ValueId name() const { return operand(OperandName::enumerator); }
#define HEDDLE_OPERANDS(name, enumerator) \
  absl::Span<const ValueId> name() const { return operands_named(OperandName::enumerator); }
#include "heddle/ir/operands.def"

  std::optional<int64_t> attr(AttrKey key) const {
    for (const Attr& a : attrs) {
      if (a.key == key) return a.value;
    }
    return std::nullopt;
  }
  int64_t attr_or(AttrKey key, int64_t otherwise) const { return attr(key).value_or(otherwise); }
  void set_attr(AttrKey key, int64_t value);
};

struct Value {
  Type type;
  OpId def = OpId::kNone;             // the op, or kNone for a region's argument
  RegionId region = RegionId::kNone;  // the region it is an argument of, or kNone
  uint32_t index = 0;                 // which result or argument
  StringId name = StringId::kNone;    // a hint for people; never identity
};

struct Region {
  OpId parent = OpId::kNone;  // kNone: the kernel's body
  OpId first = OpId::kNone;
  OpId last = OpId::kNone;
  absl::InlinedVector<ValueId, 4> args{};
};

// A kernel parameter is an argument of the body. Views carry their layout's host-constant part.
struct Param {
  ValueId value = ValueId::kNone;
  absl::InlinedVector<int64_t, 4> extents;  // views: kDynamic or elements
  absl::InlinedVector<int64_t, 4> strides;  // views: kDynamic or elements
  // A raw pointer: nothing is known of how much memory lies behind it (extents is {kDynamic} and
  // the launch passes none).
  bool unbounded = false;
};

// What an inline_ptx computes, for the interpreter: one lane's outputs from its inputs, as bits.
using PtxRule =
    std::function<void(absl::Span<const uint64_t> inputs, absl::Span<uint64_t> outputs)>;

// What Kernel::min_blocks may ask for, at most.
inline constexpr int kMaxResidentBlocks = 32;

class Kernel {
 public:
  explicit Kernel(absl::string_view name);

  const std::string& name() const { return name_; }
  RegionId body() const { return RegionId{0}; }

  // How it is launched, known while tracing. A block of {0, 0, 0} is dynamic.
  Dim3 block{0, 0, 0};
  Dim3 cluster{1, 1, 1};
  int min_blocks =
      0;  // that a multiprocessor shall hold at once, which bounds registers; 0: nothing is asked
  const Target* target = &default_target();
  LocId defined = LocId::kNone;  // where the program defines it
  bool has_dynamic_block() const { return block.x == 0; }

  // --- Storage ---
  Op& op(OpId id) { return ops_[index_of(id)]; }
  const Op& op(OpId id) const { return ops_[index_of(id)]; }
  Value& value(ValueId id) { return values_[index_of(id)]; }
  const Value& value(ValueId id) const { return values_[index_of(id)]; }
  Type type(ValueId id) const { return value(id).type; }
  Region& region(RegionId id) { return regions_[index_of(id)]; }
  const Region& region(RegionId id) const { return regions_[index_of(id)]; }
  // Ids below these counts are, or were, in use; erased ops stay behind unlinked.
  size_t op_count() const { return ops_.size(); }
  size_t value_count() const { return values_.size(); }
  size_t region_count() const { return regions_.size(); }

  // The op that computes a value; nullptr for a region's argument.
  const Op* def(ValueId id) const { return valid(value(id).def) ? &op(value(id).def) : nullptr; }
  // The constant bits of a value that a `const` op defines.
  std::optional<uint64_t> constant_bits(ValueId id) const;
  // The same, sign- or zero-extended by its type: integers and bools only.
  std::optional<int64_t> constant_int(ValueId id) const;

  // --- Parameters ---
  std::vector<Param>& params() { return params_; }
  const std::vector<Param>& params() const { return params_; }
  ValueId add_param(absl::string_view name, Type type, absl::Span<const int64_t> extents = {},
                    absl::Span<const int64_t> strides = {});
  // The parameter that a value is; nullopt for other values.
  std::optional<int> param_index(ValueId id) const;

  // The fact's value, remembered as read. A fact that nobody stated is unknown.
  int64_t fact(Fact fact) const;
  // The value of a fact that was read: code relies on it already, so that using it costs no new guard.
  std::optional<int64_t> fact_if_read(Fact fact) const;
  // States a fact: from the arguments at hand, or as the author's promise.
  void set_fact(Fact fact, int64_t value);
  // The facts that were stated, and those that were read with the value each had, in order of first
  // reading.
  absl::Span<const Guard> facts() const { return facts_; }
  absl::Span<const Guard> facts_read() const { return facts_read_; }

  // --- Interned text, places and lists ---
  StringId intern(absl::string_view text);
  absl::string_view text(StringId id) const;
  LocId intern_loc(absl::string_view file, int line);
  Loc loc(LocId id) const;
  Loc loc(OpId id) const { return loc(op(id).loc); }
  int64_t intern_ints(absl::Span<const int64_t> list);
  absl::Span<const int64_t> ints(int64_t list) const;

  // Rules of inline_ptx, which the text form does not have: nullptr for one that is not there.
  int64_t add_rule(PtxRule rule);
  const PtxRule* rule(int64_t id) const;

  // --- Construction and surgery (builder.h is more comfortable) ---
  // A new op that is nowhere yet. Its results get fresh values of these types.
  OpId new_op(Opcode opcode, absl::Span<const ValueId> operands, absl::Span<const Type> results,
              LocId loc);
  ValueId add_result(OpId op, Type type);
  RegionId add_region(OpId op);
  ValueId add_region_arg(RegionId region, Type type, StringId name = StringId::kNone);
  void append(RegionId region, OpId op);
  void insert_before(OpId position, OpId op);
  void insert_after(OpId position, OpId op);
  // Takes the op out of its region; it may be inserted again.
  void unlink(OpId op);
  // Unlinks the op and those in its regions for good. Its results must be unused.
  void erase(OpId op);
  bool linked(OpId id) const { return valid(op(id).parent); }

  // The op that ends a region (kNone while it is being built).
  OpId terminator(RegionId region) const;

  // The ops of a region in order. The op at hand may be erased, unlinked or have others inserted
  // before it.
  class OpRange {
   public:
    class Iterator {
     public:
      Iterator(const Kernel* kernel, OpId id) : kernel_(kernel), id_(id) { fetch(); }
      OpId operator*() const { return id_; }
      Iterator& operator++() {
        id_ = next_;
        fetch();
        return *this;
      }
      bool operator!=(const Iterator& other) const { return id_ != other.id_; }

     private:
      void fetch() { next_ = valid(id_) ? kernel_->op(id_).next : OpId::kNone; }
      const Kernel* kernel_;
      OpId id_;
      OpId next_ = OpId::kNone;
    };
    OpRange(const Kernel* kernel, OpId first) : kernel_(kernel), first_(first) {}
    Iterator begin() const { return {kernel_, first_}; }
    Iterator end() const { return {kernel_, OpId::kNone}; }

   private:
    const Kernel* kernel_;
    OpId first_;
  };
  OpRange ops(RegionId id) const { return {this, region(id).first}; }

  // Calls visit(OpId) for every op of a region and, after each op, of the regions it owns.
  template <class Visit>
  void walk(RegionId root, Visit&& visit) const {
    for (const OpId id : ops(root)) {
      visit(id);
      if (!linked(id)) continue;
      for (size_t i = 0; i < op(id).regions.size(); ++i) walk(op(id).regions[i], visit);
    }
  }
  template <class Visit>
  void walk(Visit&& visit) const {
    walk(body(), visit);
  }

  // Every operand that is `from` becomes `to`.
  void replace_all_uses(ValueId from, ValueId to);
  // One sweep for many: every operand v with a valid `replacement[v]` becomes it, followed through
  // chains.
  void replace_uses(const IdMap<ValueId, ValueId>& replacement);

 private:
  std::string name_;
  std::vector<Op> ops_;
  std::vector<Value> values_;
  std::vector<Region> regions_;
  std::vector<Param> params_;
  std::vector<Guard> facts_;
  mutable std::vector<Guard> facts_read_;
  std::vector<std::string> strings_;
  absl::flat_hash_map<std::string, StringId> string_ids_;
  std::vector<std::pair<StringId, int>> locs_;
  absl::flat_hash_map<std::pair<StringId, int>, LocId> loc_ids_;
  std::vector<std::vector<int64_t>> int_lists_;
  absl::flat_hash_map<std::vector<int64_t>, int64_t> int_list_ids_;
  std::vector<PtxRule> rules_;
};

inline bool is_loop(const Op& op) {
  return op.opcode == Opcode::kFor || op.opcode == Opcode::kWhile;
}
// Of the arguments of a loop's regions, the first that it carries: a for's first one is its index.
inline size_t first_carried(const Op& loop) { return loop.opcode == Opcode::kFor ? 1 : 0; }

// The row of ops.def for an op.
inline const OpInfo& info(const Op& op) { return info(op.opcode); }

// Whether an op of this opcode is anywhere in the kernel.
bool has_op(const Kernel& kernel, Opcode opcode);

// Whether a warp op is given the mask of the lanes that take part: its last operand.
inline bool has_mask(const Op& op) {
  return takes_mask(info(op)) && op.operands.size() == info(op).signature.operand_count;
}
// The result that keeps an operand's registers by the op's row; nullopt where none does.
std::optional<size_t> tied_result(const Op& op, size_t operand);

// The element type, of the op's first operand or result, for which the kernel's target lacks the
// op; kNone where it is for no type in particular; nullopt where the target has it.
std::optional<Scalar> lacking_type(const Kernel& kernel, const Op& op);

}  // namespace heddle::ir
