// vectorize: neighbouring accesses of a thread become one access to a vector.
//
// What: loads of one region from a view, at offsets that differ by constants, become loads of 2, 4, 8 …
// elements, as wide as the target's accesses and as the alignment allows; so do stores. Loads move up to
// the first of them, and stores down to the last, where nothing in between may touch that memory, order
// accesses, end the kernel or wait. Elements beside each other that are too few, or not aligned, stay as
// they are. Facts of alignment, divisors and overlap are read only where the accesses hang on them.
// Volatile accesses stay, and so do those whose bounds are checked by a tensor's layout.
//
// Needs: nothing. Keeps: aliasing, ints, guarded-ints, movable-ints.
//
// Why: an access of 16 bytes costs what one of 4 costs: instructions, address arithmetic, places in the
// queue of the memory pipeline.
//
//   %a = load %x, %i : f32             %v = load %x, %i : vec<f32, 2>
//   %j = add %i, %one : i32      →     %a = extract %v {index = 0} : f32
//   %b = load %x, %j : f32             %b = extract %v {index = 1} : f32
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "heddle/ir/analysis/aliasing.h"
#include "heddle/ir/analysis/linear.h"
#include "heddle/ir/analysis/views.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/passes/passes.h"
#include "heddle/ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

// Groups that are looked at together, and how far apart their elements may lie: both bound the time.
constexpr size_t kMostGroups = 24;
constexpr size_t kMostMembers = 64;
constexpr int64_t kMostDistance = 256;

// Neighbouring elements, as constants in a sum.
struct Span {
  int64_t first, behind;
  bool overlaps(const Span& other) const { return first < other.behind && other.first < behind; }
};

// An access of one element that may join others.
struct Member {
  OpId op;
  int64_t at;  // in elements, beside the terms of its group
};

// Accesses that differ by constants. `sum` and `check` are those of the first one.
struct Group {
  ValueId view;
  int object;
  LinearSum sum;
  OpId check;                                // its bounds, or kNone
  LinearSum check_sum;                       // of the coordinate that runs along the neighbours
  absl::InlinedVector<Member, 8> members{};  // in the order of the program
  // Loads: what has been written since the first one, beside the same terms.
  absl::InlinedVector<Span, 4> written{};
  // Parameters that must not overlap with what is written, or nothing more may join.
  absl::InlinedVector<int, 2> apart{};
};
using Groups = std::vector<Group>;

class Vectorization {
 public:
  explicit Vectorization(PassContext& context)
      : kernel_(context.kernel()),
        aliasing_(context.analysis<Aliasing>()),
        quiet_(context.analysis<Ints>()),
        ints_(context.analysis<GuardedInts>()),
        sums_(context.analysis<Sums>()),
        most_bytes_(static_cast<int>(context.option("bytes"))),
        builder_(kernel_) {}

  bool run() {
    visit(kernel_.body());
    if (!changed_) return false;
    kernel_.replace_uses(replaced_);
    for (const OpId id : merged_) kernel_.erase(id);
    return true;
  }

 private:
  // Whether anything inside touches memory, or keeps accesses from moving past it.
  bool visit(RegionId region) {
    bool touched = false;
    for (const OpId id : kernel_.ops(region)) {
      const size_t regions = kernel_.op(id).regions.size();
      if (regions == 0) {
        touched |= touches(kernel_.op(id));
        step(id);
        continue;
      }
      // What is inside has groups of its own; the ones here wait where it does not concern them.
      Groups loads = std::exchange(loads_, {}), stores = std::exchange(stores_, {});
      bool concerns = kernel_.op(id).opcode == Opcode::kWhile;
      for (size_t i = 0; i < regions; ++i) concerns |= visit(kernel_.op(id).regions[i]);
      loads_ = std::move(loads);
      stores_ = std::move(stores);
      if (concerns) close_all();
      touched |= concerns;
    }
    close_all();
    return touched;
  }

  static bool is_plain(const Op& op) {
    return op.opcode == Opcode::kLoad || op.opcode == Opcode::kStore;
  }
  // Whether accesses may not move past an op whatever they access.
  static bool stands_in_the_way(const Op& op) {
    const OpInfo& row = info(op);
    return has(row, kVolatile) || has(row, kBlocking) || has(row, kMayStop) || row.effects.orders ||
           row.effects.unnamed || op.attr_or(AttrKey::kVolatile, 0) != 0;
  }
  static bool touches(const Op& op) {
    return stands_in_the_way(op) || info(op).effects.touches_memory();
  }

  void step(OpId id) {
    if (!touches(kernel_.op(id))) return;
    if (stands_in_the_way(kernel_.op(id))) return close_all();
    keep_stores([&](Group& group) { return lets_pass(group, kernel_.op(id)); });
    keep_loads([&](Group& group) { return lets_pass(group, kernel_.op(id)); });
    if (is_plain(kernel_.op(id))) join_or_open(id);
  }

  static bool is_store(const Op& op) { return op.opcode == Opcode::kStore; }
  bool is_store(const Group& group) const { return is_store(kernel_.op(group.members[0].op)); }

  // Whether later accesses may still join a group past this op. Remembers under which conditions.
  bool lets_pass(Group& group, const Op& op) {
    const bool stores = is_store(group);
    const Effects& effects = info(op).effects;
    if (!stores && effects.writes == 0 && !Aliasing::may_clobber(op)) return true;
    if (is_plain(op) && aliasing_.object_of(op.view()) == group.object) {
      return lets_same_pass(group, op, stores);
    }
    if (!is_plain(op) && stores) return false;
    // A store that moves down must change nothing that this op reads or writes; a load that moves up must
    // not miss what this op writes.
    const bool moves_past_load = stores && op.opcode == Opcode::kLoad;
    const int object = moves_past_load ? aliasing_.object_of(op.view()) : group.object;
    const Op& writer = moves_past_load ? kernel_.op(group.members[0].op) : op;
    const Clobber clobber = aliasing_.clobber(writer, object);
    if (clobber == Clobber::kUnlessNoOverlap &&
        std::find(group.apart.begin(), group.apart.end(), object) == group.apart.end()) {
      group.apart.push_back(object);
    }
    return clobber != Clobber::kYes;
  }

  // Of an access to the same object: elements at constant distances are told apart.
  bool lets_same_pass(Group& group, const Op& op, bool stores) {
    if (!stores && op.opcode == Opcode::kLoad) return true;
    if (op.view() != group.view) return false;
    const LinearSum sum = sums_.of(op.offset());
    if (!sum.is_beside(group.sum) || !fits(op)) return false;
    const Span span{sum.constant, sum.constant + kernel_.type(accessed(op)).count};
    if (!stores) {
      group.written.push_back(span);
      return group.written.size() <= kMostMembers;
    }
    return std::none_of(group.members.begin(), group.members.end(), [&](const Member& member) {
      return span.overlaps({member.at, member.at + 1});
    });
  }

  static ValueId accessed(const Op& op) { return is_store(op) ? op.value() : op.result(); }

  // Whether neighbours of an offset are neighbours in memory: it wraps nowhere among offsets that are in
  // bounds, which are never negative.
  bool fits(const Op& op) const {
    return kernel_.type(op.offset()).scalar == Scalar::kI64 || !is_unbounded(kernel_, op.view());
  }

  void join_or_open(OpId id) {
    const Op& op = kernel_.op(id);
    const Type type = kernel_.type(accessed(op));
    if (!type.is_scalar() || type.scalar == Scalar::kBool || !fits(op)) return;
    Group access{.view = op.view(),
                 .object = aliasing_.object_of(op.view()),
                 .sum = sums_.of(op.offset()),
                 .check = OpId::kNone,
                 .check_sum = {}};
    if (valid(op.check()) && !take_check(op, access)) return;
    const Member member{id, access.sum.constant};
    const bool stores = is_store(op);
    Groups& groups = stores ? stores_ : loads_;
    for (Group& group : groups) {
      if (!belongs(group, access, op)) continue;
      if (may_join(group, member)) {
        group.members.push_back(member);
        return;
      }
      drop(stores, group);
      break;
    }
    if (groups.size() == kMostGroups) drop(stores, groups[0]);
    access.members.push_back(member);
    groups.push_back(std::move(access));
  }

  // The bounds of an access, if they can be widened: false where they cannot.
  bool take_check(const Op& op, Group& access) {
    access.check = kernel_.value(op.check()).def;
    if (!valid(access.check)) return false;
    const Op& check = kernel_.op(access.check);
    if (check.opcode != Opcode::kBounds || check.attr(AttrKey::kTensor) ||
        check.attr_or(AttrKey::kWidth, 1) != 1) {
      return false;
    }
    access.check_sum = sums_.of(check.coordinates()[running_mode(check)]);
    return true;
  }
  // Of a check's coordinates, the one along which neighbours lie.
  size_t running_mode(const Op& check) const {
    return static_cast<size_t>(check.attr_or(AttrKey::kDim, kernel_.type(check.view()).rank - 1));
  }

  bool belongs(const Group& group, const Group& access, const Op& op) const {
    const Op& first = kernel_.op(group.members[0].op);
    return first.opcode == op.opcode && group.view == access.view &&
           group.sum.is_beside(access.sum) && first.attrs == op.attrs &&
           checks_agree(group, access);
  }

  bool checks_agree(const Group& group, const Group& access) const {
    if (valid(group.check) != valid(access.check)) return false;
    if (!valid(group.check)) return true;
    const Op& a = kernel_.op(group.check);
    const Op& b = kernel_.op(access.check);
    if (a.view() != b.view() || a.attrs != b.attrs) return false;
    const auto left = a.coordinates(), right = b.coordinates();
    const size_t running = running_mode(a);
    for (size_t i = 0; i < left.size(); ++i) {
      if (i != running && left[i] != right[i]) return false;
    }
    return group.check_sum.is_beside(access.check_sum) &&
           access.check_sum.constant - group.check_sum.constant ==
               access.sum.constant - group.sum.constant;
  }

  bool may_join(Group& group, const Member& member) {
    if (group.members.size() == kMostMembers) return false;
    const int64_t distance = member.at - group.sum.constant;
    if (distance >= kMostDistance || distance <= -kMostDistance) return false;
    const Span span{member.at, member.at + 1};
    for (const Member& other : group.members) {
      if (other.at == member.at) return false;
    }
    for (const Span& written : group.written) {
      if (span.overlaps(written)) return false;
    }
    for (const int object : group.apart) {
      if (!aliasing_.no_overlap(object)) return false;
    }
    group.apart.clear();
    return true;
  }

  // Merging makes ops, which may move all others: no reference to one is held over these.
  void close_all() {
    for (const Group& group : std::exchange(loads_, {})) merge(group);
    for (const Group& group : std::exchange(stores_, {})) merge(group);
  }
  void drop(bool stores, const Group& group) {
    const auto others = [&group](Group& other) { return &other != &group; };
    stores ? keep_stores(others) : keep_loads(others);
  }

  using Keeps = absl::FunctionRef<bool(Group&)>;
  static Groups taken_out(Groups& groups, Keeps keeps) {
    Groups taken, kept;
    for (Group& group : groups) (keeps(group) ? kept : taken).push_back(std::move(group));
    groups = std::move(kept);
    return taken;
  }
  void keep_loads(Keeps keeps) {
    for (const Group& group : taken_out(loads_, keeps)) merge(group);
  }
  // Stores that move down to the last of them are made there: loads behind them may not move up past it.
  void keep_stores(Keeps keeps) {
    for (const Group& group : taken_out(stores_, keeps)) {
      merge(group);
      if (group.members.size() < 2) continue;
      for (const Member& member : group.members) {
        keep_loads([&](Group& loads) { return lets_pass(loads, kernel_.op(member.op)); });
      }
    }
  }

  // Cuts a group into accesses to vectors.
  void merge(const Group& group) {
    if (group.members.size() < 2) return;
    absl::InlinedVector<Member, 8> sorted(group.members.begin(), group.members.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const Member& a, const Member& b) { return a.at < b.at; });
    const absl::Span<const Member> members = sorted;
    for (size_t first = 0; first < members.size();) {
      size_t run = 1;
      while (first + run < members.size() &&
             members[first + run].at == members[first].at + static_cast<int64_t>(run)) {
        ++run;
      }
      const size_t width = width_of(group, members.subspan(first, run));
      if (width > 1) merge_into_one(group, members.subspan(first, width));
      first += width;
    }
  }

  // How many elements from the first one on may be one access.
  size_t width_of(const Group& group, absl::Span<const Member> run) {
    const Op& op = kernel_.op(run[0].op);
    const int bytes = bytes_of(kernel_.type(group.view).scalar);
    const size_t most =
        std::min(run.size(), static_cast<size_t>(std::min(most_access_elements(kernel_, group.view),
                                                          std::max(most_bytes_ / bytes, 1))));
    size_t width = 1;
    while (2 * width <= most) width *= 2;
    for (; width > 1; width /= 2) {
      const auto elements = static_cast<int64_t>(width);
      if (ints_.divisible(op.offset(), elements) &&
          alignment_of(kernel_, group.view, ints_) >= elements * bytes) {
        break;
      }
    }
    return width;
  }

  // Puts one access in the place of some, which are sorted: of loads where the first one in the program
  // stands, of stores where the last one does.
  void merge_into_one(const Group& group, absl::Span<const Member> members) {
    changed_ = true;
    const bool stores = is_store(group);
    const Member place = place_of(group, members, stores);
    const int width = static_cast<int>(members.size());
    const Type type = Type::vector(kernel_.type(group.view).scalar, width);
    builder_.set_insertion_before(place.op);
    builder_.set_loc(kernel_.op(members[0].op).loc);
    // What is known at the place: the offset of the first of the elements, or of the one that stands there.
    const Member known = stores ? members[0] : place;
    const int64_t back = members[0].at - known.at;
    const Op op = kernel_.op(known.op);  // a copy: new ops may move all others
    absl::InlinedVector<ValueId, 4> operands = {group.view};
    if (stores) {
      absl::InlinedVector<ValueId, 16> elements;
      for (const Member& member : members) elements.push_back(kernel_.op(member.op).value());
      operands.push_back(builder_.create(Opcode::kPack, elements, type));
    }
    operands.push_back(moved(op.offset(), back));
    if (valid(group.check)) operands.push_back(widened(op.check(), back, width));
    const ValueId loaded =
        builder_.create(op.opcode, operands, stores ? Type::none() : type, op.attrs);
    for (int i = 0; i < width; ++i) {
      const Member& member = members[static_cast<size_t>(i)];
      merged_.push_back(member.op);
      if (stores) continue;
      const ValueId old = kernel_.op(member.op).result();
      replaced_.at(old) =
          builder_.create(Opcode::kExtract, {loaded}, type.element(), {{AttrKey::kIndex, i}});
      inherit_name(kernel_, replaced_[old], old);
    }
  }

  static Member place_of(const Group& group, absl::Span<const Member> members, bool stores) {
    const auto is_one = [&](const Member& member) {
      return std::any_of(members.begin(), members.end(),
                         [&](const Member& other) { return other.op == member.op; });
    };
    const auto& all = group.members;
    return stores ? *std::find_if(all.rbegin(), all.rend(), is_one)
                  : *std::find_if(all.begin(), all.end(), is_one);
  }

  ValueId moved(ValueId index, int64_t by) {
    if (by == 0) return index;
    return builder_.create(Opcode::kAdd, {index, builder_.constant_int(kernel_.type(index), by)});
  }

  // The check of an element, of so many from `by` past it.
  ValueId widened(ValueId check, int64_t by, int width) {
    const Op one = *kernel_.def(check);
    absl::InlinedVector<ValueId, 4> operands = one.operands;
    ValueId& coordinate = operands[one.index_of(OperandName::kCoordinates) + running_mode(one)];
    coordinate = moved(coordinate, by);
    absl::InlinedVector<Attr, 2> attrs = one.attrs;
    attrs.erase(std::remove_if(attrs.begin(), attrs.end(),
                               [](const Attr& attr) { return attr.key == AttrKey::kWidth; }),
                attrs.end());
    attrs.push_back({AttrKey::kWidth, width});
    return builder_.create(Opcode::kBounds, operands, Type::none(), attrs);
  }

  Kernel& kernel_;
  const Aliasing& aliasing_;
  IntAnalysis &quiet_, &ints_;  // which asks no facts, and which may
  LinearSums& sums_;
  int most_bytes_;  // of an access
  Builder builder_;
  Groups loads_, stores_;  // of the region at hand, which more accesses may join
  IdMap<ValueId, ValueId> replaced_{ValueId::kNone};
  std::vector<OpId> merged_;
  bool changed_ = false;
};

}  // namespace

bool vectorize(PassContext& context) { return Vectorization(context).run(); }

}  // namespace heddle::ir
