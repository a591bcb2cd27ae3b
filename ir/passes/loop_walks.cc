#include "heddle/ir/passes/loop_walks.h"

#include <algorithm>

#include "heddle/ir/analysis/views.h"

namespace heddle::ir {

absl::flat_hash_set<ValueId> values_inside(const Kernel& kernel, OpId loop) {
  const RegionId body = kernel.op(loop).regions[0];
  absl::flat_hash_set<ValueId> inside;
  kernel.walk(body, [&](OpId inner) {
    for (const ValueId result : kernel.op(inner).results) inside.insert(result);
  });
  for (const ValueId arg : kernel.region(body).args) inside.insert(arg);
  return inside;
}

bool walks_by_one(const LinearSum& sum, ValueId index, const absl::flat_hash_set<ValueId>& inside) {
  return sum.factor_of(index) == 1 &&
         std::all_of(sum.terms.begin(), sum.terms.end(), [&](const LinearSum::Term& term) {
           return term.value == index || !inside.contains(term.value);
         });
}

Walks LoopWalks::of(OpId id) {
  const RegionId body = kernel_.op(id).regions[0];
  const absl::flat_hash_set<ValueId> inside = values_inside(kernel_, id);
  const ValueId index = kernel_.region(body).args[0];
  Walks walks;
  for (const OpId inner : kernel_.ops(body)) {
    const Op& op = kernel_.op(inner);
    if (op.opcode != Opcode::kLoad && op.opcode != Opcode::kStore) continue;
    Walk walk{inner, sums_.of(op.offset()), 1};
    if (inside.contains(op.view()) || !walks_by_one(walk.sum, index, inside)) continue;
    if (!is_simple(op) || stands_alone(id, inner)) continue;
    walk.width = width_of(op);
    if (walk.width > 1) walks.push_back(std::move(walk));
  }
  std::stable_sort(walks.begin(), walks.end(),
                   [](const Walk& a, const Walk& b) { return a.width > b.width; });
  if (walks.empty()) return walks;
  // Neighbours of the first one at another distance are never aligned where it is.
  walks.erase(std::remove_if(walks.begin(), walks.end(),
                             [first = walks[0]](const Walk& walk) {
                               return walk.sum.is_beside(first.sum) && !walk.follows(first);
                             }),
              walks.end());
  return walks;
}

bool LoopWalks::is_aligned(const Walk& walk, ValueId index) {
  return walk.sum.constant % walk.width == 0 &&
         std::all_of(walk.sum.terms.begin(), walk.sum.terms.end(),
                     [&](const LinearSum::Term& term) {
                       return term.factor % walk.width == 0 || term.value == index ||
                              ints_.divisible(term.value, walk.width);
                     });
}

// Whether vectorize takes such an access.
bool LoopWalks::is_simple(const Op& op) const {
  const ValueId value = op.opcode == Opcode::kLoad ? op.result() : op.value();
  const Type type = kernel_.type(value);
  if (!type.is_scalar() || type.scalar == Scalar::kBool) return false;
  if (is_unbounded(kernel_, op.view())) return false;
  if (!valid(op.check())) return true;
  const Op* const check = kernel_.def(op.check());
  return check != nullptr && check->opcode == Opcode::kBounds && !check->attr(AttrKey::kTensor) &&
         !check->attr(AttrKey::kDim);
}

// Whether another access of the body keeps the ones of different trips apart.
bool LoopWalks::stands_alone(OpId loop, OpId id) {
  const Op& op = kernel_.op(id);
  const int object = aliasing_.object_of(op.view());
  const bool stores = op.opcode == Opcode::kStore;
  bool alone = false;
  kernel_.walk(kernel_.op(loop).regions[0], [&](OpId other_id) {
    const Op& other = kernel_.op(other_id);
    if (alone || other_id == id || !info(other).effects.touches_memory()) return;
    const bool other_stores = other.opcode == Opcode::kStore;
    if (!stores && !other_stores) return;
    const int theirs = aliasing_.object_of(other.view());
    if (theirs == object) {
      alone = other.view() != op.view() || other.offset() != op.offset();
      return;
    }
    const int read = other_stores ? object : theirs;
    alone = aliasing_.may_change(other_stores ? other : op, read);
  });
  return alone;
}

// Elements of the widest access that the array's start allows.
int64_t LoopWalks::width_of(const Op& op) {
  const int64_t aligned =
      alignment_of(kernel_, op.view(), ints_) / bytes_of(kernel_.type(op.view()).scalar);
  return std::min<int64_t>(most_access_elements(kernel_, op.view()), aligned);
}

}  // namespace heddle::ir
