// equal-extents: extents that the launch compares become one value.
//
// What: a `require` in the kernel's body that two extents of parameters are equal, or that one is a constant, holds wherever the kernel
// runs: the host refuses other launches. Each use of such an extent takes the constant, or else that of one of the
// equal extents, for all of them. The conditions and numbers of `require` stay as they are.
//
// Needs: nothing. Keeps: aliasing.
//
// Why: a product reads its inner extent from a and from b; bounds that are one value are tested once, and loops
// with known trips unroll.
//
//   %ka = extent %a {dim = 1} : i64             %ka = extent %a {dim = 1} : i64
//   %kb = extent %b {dim = 0} : i64             %kb = extent %b {dim = 0} : i64
//   %same = eq %ka, %kb : bool                  %same = eq %ka, %kb : bool
//   require %same, %ka, %kb {…}         →       require %same, %ka, %kb {…}
//   %in = lt %i, %kb : bool                     %in = lt %i, %ka : bool
#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "heddle/ir/analysis/views.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/passes/passes.h"

namespace heddle::ir {
namespace {

class EqualExtents {
 public:
  explicit EqualExtents(Kernel& kernel) : kernel_(kernel), builder_(kernel) {}

  bool run() {
    kernel_.walk([&](OpId id) {
      if (kernel_.op(id).opcode == Opcode::kRequire) requirements_.push_back(id);
    });
    for (const OpId id : requirements_) {
      // fold drops a branch or a loop that is never entered, with the requirements in it: no launch tests those.
      if (kernel_.op(id).parent == kernel_.body()) learn(kernel_.op(id).condition());
    }
    if (extents_.empty()) return false;
    keep(requirements_);
    kernel_.walk([&](OpId id) { rewrite(id); });
    return changed_;
  }

 private:
  static constexpr size_t kItself = std::numeric_limits<size_t>::max();

  // An extent of a parameter, among those that are known to be equal to another or to a number.
  struct Extent {
    int param = 0;
    int64_t dim = 0;
    size_t same_as = kItself;  // another that is equal; the last one has what is known of all
    int64_t number = kDynamic;
  };

  // Of parameters alone: other views have extents of the kernel's making.
  std::optional<Extent> extent_of(const Op* op) const {
    if (op == nullptr || op->opcode != Opcode::kExtent) return std::nullopt;
    const auto param = kernel_.param_index(op->view());
    if (!param) return std::nullopt;
    const int64_t dim = *op->attr(AttrKey::kDim);
    return Extent{.param = *param,
                  .dim = dim,
                  .number = kernel_.params()[*param].extents[static_cast<size_t>(dim)]};
  }

  // Whether it is known of an extent that 31 bits hold it: i32 and conversions then change nothing.
  bool fits_31_bits(const Extent& extent) const {
    return kernel_.fact_if_read({FactKind::kExtentFits32, static_cast<uint16_t>(extent.param),
                                 static_cast<uint8_t>(extent.dim)}) == 1;
  }

  // The extent that a value is, through conversions that keep the number.
  std::optional<Extent> read(ValueId value) const {
    int bits = 64;
    const Op* op = kernel_.def(value);
    while (op != nullptr && (op->opcode == Opcode::kConvert || has(info(*op), kForwards))) {
      const Scalar scalar = kernel_.type(op->result()).scalar;
      if (!is_integer(scalar)) return std::nullopt;
      bits = std::min(bits, bytes_of(scalar) * 8);
      op = kernel_.def(op->a());
    }
    const auto extent = extent_of(op);
    if (!extent) return std::nullopt;
    bits = std::min(bits, bytes_of(kernel_.type(op->result()).scalar) * 8);
    if (bits == 64 || (bits == 32 && fits_31_bits(*extent))) return extent;
    return std::nullopt;
  }

  // The parts of a condition that say that an extent is equal to another, or to a number.
  void learn(ValueId condition) {
    const Op* const op = kernel_.def(condition);
    if (op == nullptr) return;
    if (op->opcode == Opcode::kAnd) {
      const ValueId a = op->a(), b = op->b();
      learn(a);
      return learn(b);
    }
    if (op->opcode != Opcode::kEq) return;
    const auto a = read(op->a()), b = read(op->b());
    if (a && b) return join(place(*a), place(*b));
    if (!a && !b) return;
    const auto number = kernel_.constant_int(a ? op->b() : op->a());
    if (number && *number >= 0) extents_[place(a ? *a : *b)].number = *number;
  }

  // The one that stands for an extent and all that are equal to it.
  size_t place(const Extent& extent) {
    for (size_t i = 0; i < extents_.size(); ++i) {
      if (extents_[i].param == extent.param && extents_[i].dim == extent.dim) return last(i);
    }
    extents_.push_back(extent);
    return extents_.size() - 1;
  }
  size_t last(size_t i) const {
    while (extents_[i].same_as != kItself) i = extents_[i].same_as;
    return i;
  }

  // An extent of which it is known that it fits 31 bits stands for others, or else the first in the kernel.
  void join(size_t a, size_t b) {
    if (a == b) return;
    const auto rank = [&](size_t i) {
      return std::tuple(!fits_31_bits(extents_[i]), extents_[i].param, extents_[i].dim);
    };
    if (rank(b) < rank(a)) std::swap(a, b);
    extents_[b].same_as = a;
    // Where there are two numbers no launch passes both conditions.
    if (extents_[a].number == kDynamic) extents_[a].number = extents_[b].number;
  }

  // What a condition and its numbers are computed from stays as it is.
  void keep(std::vector<OpId> open) {
    while (!open.empty()) {
      const OpId id = open.back();
      open.pop_back();
      for (const ValueId operand : kernel_.op(id).operands) {
        const OpId def = kernel_.value(operand).def;
        if (!valid(def) || kept_[def] != 0) continue;
        kept_.at(def) = 1;
        open.push_back(def);
      }
    }
  }

  void rewrite(OpId id) {
    const bool stays = kernel_.op(id).opcode == Opcode::kRequire || kept_[id] != 0;
    if (stays) return;
    for (size_t i = 0; i < kernel_.op(id).operands.size(); ++i) {
      const ValueId better = better_than(kernel_.op(id).operands[i]);
      if (!valid(better)) continue;
      kernel_.op(id).operands[i] = better;
      changed_ = true;
    }
  }

  // What takes the place of a value: made once, where the value is.
  ValueId better_than(ValueId value) {
    if (valid(made_[value])) return made_[value];
    const OpId def = kernel_.value(value).def;
    if (!valid(def)) return ValueId::kNone;
    const auto extent = extent_of(&kernel_.op(def));
    if (!extent || fixed_layout(kernel_, kernel_.op(def))) return ValueId::kNone;
    const auto known = std::find_if(extents_.begin(), extents_.end(), [&](const Extent& e) {
      return e.param == extent->param && e.dim == extent->dim;
    });
    if (known == extents_.end()) return ValueId::kNone;
    const Extent& same = extents_[last(static_cast<size_t>(known - extents_.begin()))];
    const Type type = kernel_.type(value);
    const bool is_number = same.number != kDynamic && type_range(type.scalar).contains(same.number);
    const bool is_other = same.param != extent->param || same.dim != extent->dim;
    if (!is_number && !is_other) return ValueId::kNone;
    builder_.set_insertion_before(def);
    builder_.set_loc(kernel_.op(def).loc);
    const ValueId made =
        is_number ? builder_.constant_int(type, same.number)
                  : builder_.create(Opcode::kExtent, {kernel_.params()[same.param].value}, type,
                                    {{AttrKey::kDim, same.dim}});
    return made_.at(value) = made;
  }

  Kernel& kernel_;
  Builder builder_;
  std::vector<OpId> requirements_;
  std::vector<Extent> extents_;
  IdMap<OpId, uint8_t> kept_{0};
  IdMap<ValueId, ValueId> made_{ValueId::kNone};
  bool changed_ = false;
};

}  // namespace

bool equal_extents(Kernel& kernel) { return EqualExtents(kernel).run(); }

}  // namespace heddle::ir
