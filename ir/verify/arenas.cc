// Arrays of arenas are used while they have their bytes: what can be seen of it without running the
// kernel. An array that begins nowhere has its bytes at the start or never, and loses them for good to
// another one that begins. The rule stands above the row of shared.begin in ops.def; the interpreter
// checks all of it.
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/ir/analysis/views.h"
#include "heddle/ir/launch/shared_layout.h"
#include "heddle/ir/verify/verifier_internal.h"

namespace heddle::ir {
namespace {

constexpr int64_t kUnit = 16;  // bytes: arrays are aligned to that

class ArenaCheck {
 public:
  explicit ArenaCheck(Verification& v) : v_(v), kernel_(v.kernel()) {}

  void run() {
    kernel_.walk([&](OpId id) {
      const Op& op = kernel_.op(id);
      if (op.opcode == Opcode::kShared && op.attr(AttrKey::kArena)) {
        arrays_.push_back({.id = id, .region = op.attr_or(AttrKey::kRegion, 0)});
      }
    });
    if (arrays_.empty()) return;
    const SharedLayout layout = shared_layout(kernel_);
    for (Array& array : arrays_) {
      array.first = layout.offset[array.id] / kUnit;
      array.last = (layout.offset[array.id] + array_bytes(kernel_, array.id) - 1) / kUnit;
    }
    kernel_.walk([&](OpId id) {
      const Op& op = kernel_.op(id);
      if (op.opcode != Opcode::kSharedBegin) return;
      if (Array* const array = find(op.view())) array->begins = true;
    });
    State state;
    for (const Array& array : arrays_) {
      if (!array.begins && !has_bytes_at_start(array)) state[array.id] = OpId::kNone;
    }
    sweep(kernel_.body(), state);
  }

 private:
  struct Array {
    OpId id;
    int64_t region;
    int64_t first = 0, last = 0;  // units
    bool begins = false;
  };
  // The arrays that have none of their bytes, and never will: the op that took them, or none.
  using State = std::map<OpId, OpId>;

  Array* find(ValueId view) {
    const OpId root = kernel_.value(root_of(kernel_, view)).def;
    for (Array& array : arrays_) {
      if (array.id == root) return &array;
    }
    return nullptr;
  }

  bool has_bytes_at_start(const Array& array) const {
    for (int64_t unit = array.first; unit <= array.last; ++unit) {
      bool taken = false;
      for (const Array& other : arrays_) {
        taken |= other.region < array.region && other.first <= unit && unit <= other.last;
      }
      if (!taken) return true;
    }
    return false;
  }

  void sweep(RegionId region, State& state) {
    for (const OpId id : kernel_.ops(region)) visit(id, state);
  }

  void visit(OpId id, State& state) {
    const Op& op = kernel_.op(id);
    // What a branch or a trip takes, others may not.
    for (const RegionId region : op.regions) {
      State inner = state;
      sweep(region, inner);
    }
    if (op.opcode == Opcode::kSharedBegin) {
      const Array* const taker = find(op.view());
      for (const Array& array : arrays_) {
        const bool loses = taker != nullptr && !array.begins && array.id != taker->id &&
                           taker->first <= array.first && array.last <= taker->last;
        if (loses) state.try_emplace(array.id, id);
      }
      return;
    }
    const uint32_t touched = info(op).effects.reads | info(op).effects.writes;
    for (size_t i = 0; i < op.operands.size() && touched >> i != 0; ++i) {
      if ((touched >> i & 1) == 0) continue;
      const Array* const array = find(op.operands[i]);
      const auto lost = array == nullptr ? state.end() : state.find(array->id);
      if (lost == state.end()) continue;
      const std::string name = name_of(array->id);
      if (valid(lost->second)) {
        v_.error(id,
                 absl::StrCat(v_.quoted(id), " uses ", name, ", whose bytes belong to ",
                              name_of(kernel_.value(kernel_.op(lost->second).view()).def),
                              " from its begin", v_.at_place(lost->second), " on"),
                 absl::StrCat("begin ", name, " again first, or let the two share no bytes"));
      } else {
        v_.error(id,
                 absl::StrCat(v_.quoted(id), " uses ", name,
                              ", whose bytes belong to another region, and which begins nowhere"),
                 absl::StrCat("begin ", name,
                              " before its first use, behind a barrier behind the last use of what "
                              "has the bytes"));
      }
    }
  }

  std::string name_of(OpId array) {
    const Op& op = kernel_.op(array);
    const auto name = op.attr(AttrKey::kName);
    return name ? absl::StrCat("'", kernel_.text(StringId{static_cast<uint32_t>(*name)}), "'")
                : v_.name(op.result());
  }

  Verification& v_;
  const Kernel& kernel_;
  std::vector<Array> arrays_;
};

}  // namespace

void verify_arenas(Verification& v) { ArenaCheck(v).run(); }

}  // namespace heddle::ir
