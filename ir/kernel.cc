#include "heddle/ir/kernel.h"

#include <utility>

#include "heddle/ir/check.h"

namespace heddle::ir {

void Op::set_attr(AttrKey key, int64_t value) {
  for (Attr& a : attrs) {
    if (a.key == key) {
      a.value = value;
      return;
    }
  }
  attrs.push_back({key, value});
}

Kernel::Kernel(absl::string_view name) : name_(name), regions_(1) {
  constexpr size_t kUsual = 256;
  ops_.reserve(kUsual);
  values_.reserve(kUsual);
}

std::optional<uint64_t> Kernel::constant_bits(ValueId id) const {
  const Op* const op = def(id);
  if (op == nullptr || op->opcode != Opcode::kConst) return std::nullopt;
  return static_cast<uint64_t>(*op->attr(AttrKey::kBits));
}

std::optional<int64_t> Kernel::constant_int(ValueId id) const {
  const Scalar scalar = type(id).scalar;
  if (is_float(scalar)) return std::nullopt;
  const std::optional<uint64_t> bits = constant_bits(id);
  if (!bits) return std::nullopt;
  return number_of(scalar, *bits);
}

ValueId Kernel::add_param(absl::string_view name, Type type, absl::Span<const int64_t> extents,
                          absl::Span<const int64_t> strides) {
  Param param;
  param.value = add_region_arg(body(), type, intern(name));
  param.extents.assign(extents.begin(), extents.end());
  param.strides.assign(strides.begin(), strides.end());
  params_.push_back(std::move(param));
  return params_.back().value;
}

std::optional<int> Kernel::param_index(ValueId id) const {
  if (value(id).region != body()) return std::nullopt;
  return static_cast<int>(value(id).index);
}

int64_t Kernel::add_rule(PtxRule rule) {
  rules_.push_back(std::move(rule));
  return static_cast<int64_t>(rules_.size()) - 1;
}

const PtxRule* Kernel::rule(int64_t id) const {
  const auto index = static_cast<size_t>(id);
  return id < 0 || index >= rules_.size() ? nullptr : &rules_[index];
}

std::optional<int64_t> Kernel::fact_if_read(Fact fact) const {
  for (const Guard& guard : facts_read_) {
    if (guard.fact == fact) return guard.value;
  }
  return std::nullopt;
}

int64_t Kernel::fact(Fact fact) const {
  if (const auto known = fact_if_read(fact)) return *known;
  int64_t value = info(fact.kind).unknown;
  for (const Guard& guard : facts_) {
    if (guard.fact == fact) value = guard.value;
  }
  facts_read_.push_back({fact, value});
  return value;
}

void Kernel::set_fact(Fact fact, int64_t value) {
  for (Guard& guard : facts_) {
    if (guard.fact == fact) {
      guard.value = value;
      return;
    }
  }
  facts_.push_back({fact, value});
}

StringId Kernel::intern(absl::string_view text) {
  const auto [it, inserted] =
      string_ids_.try_emplace(std::string(text), StringId{static_cast<uint32_t>(strings_.size())});
  if (inserted) strings_.emplace_back(text);
  return it->second;
}

absl::string_view Kernel::text(StringId id) const {
  return valid(id) ? absl::string_view(strings_[index_of(id)]) : absl::string_view();
}

LocId Kernel::intern_loc(absl::string_view file, int line) {
  const std::pair<StringId, int> place(intern(file), line);
  if (!locs_.empty() && locs_.back() == place)
    return LocId{static_cast<uint32_t>(locs_.size() - 1)};
  const auto [it, inserted] =
      loc_ids_.try_emplace(place, LocId{static_cast<uint32_t>(locs_.size())});
  if (inserted) locs_.push_back(place);
  return it->second;
}

Loc Kernel::loc(LocId id) const {
  if (!valid(id)) return {};
  return {text(locs_[index_of(id)].first), locs_[index_of(id)].second};
}

int64_t Kernel::intern_ints(absl::Span<const int64_t> list) {
  std::vector<int64_t> numbers(list.begin(), list.end());
  const auto [it, inserted] =
      int_list_ids_.try_emplace(numbers, static_cast<int64_t>(int_lists_.size()));
  if (inserted) int_lists_.push_back(std::move(numbers));
  return it->second;
}

absl::Span<const int64_t> Kernel::ints(int64_t list) const {
  return int_lists_[static_cast<size_t>(list)];
}

OpId Kernel::new_op(Opcode opcode, absl::Span<const ValueId> operands,
                    absl::Span<const Type> results, LocId loc) {
  const OpId id{static_cast<uint32_t>(ops_.size())};
  Op& op = ops_.emplace_back();
  op.opcode = opcode;
  op.loc = loc;
  op.operands.assign(operands.begin(), operands.end());
  for (const Type type : results) add_result(id, type);
  return id;
}

ValueId Kernel::add_result(OpId id, Type type) {
  const ValueId value{static_cast<uint32_t>(values_.size())};
  values_.push_back(
      {.type = type, .def = id, .index = static_cast<uint32_t>(op(id).results.size())});
  op(id).results.push_back(value);
  return value;
}

RegionId Kernel::add_region(OpId id) {
  const RegionId region{static_cast<uint32_t>(regions_.size())};
  regions_.push_back({.parent = id});
  op(id).regions.push_back(region);
  return region;
}

ValueId Kernel::add_region_arg(RegionId id, Type type, StringId name) {
  const ValueId value{static_cast<uint32_t>(values_.size())};
  values_.push_back({.type = type,
                     .region = id,
                     .index = static_cast<uint32_t>(region(id).args.size()),
                     .name = name});
  region(id).args.push_back(value);
  return value;
}

void Kernel::append(RegionId id, OpId new_op) {
  Region& r = region(id);
  op(new_op).parent = id;
  op(new_op).prev = r.last;
  op(new_op).next = OpId::kNone;
  if (valid(r.last)) {
    op(r.last).next = new_op;
  } else {
    r.first = new_op;
  }
  r.last = new_op;
}

void Kernel::insert_before(OpId position, OpId new_op) {
  Op& inserted = op(new_op);
  Op& after = op(position);
  inserted.parent = after.parent;
  inserted.prev = after.prev;
  inserted.next = position;
  if (valid(after.prev)) {
    op(after.prev).next = new_op;
  } else {
    region(after.parent).first = new_op;
  }
  after.prev = new_op;
}

void Kernel::insert_after(OpId position, OpId new_op) {
  const OpId next = op(position).next;
  if (valid(next)) {
    insert_before(next, new_op);
  } else {
    append(op(position).parent, new_op);
  }
}

void Kernel::unlink(OpId id) {
  Op& o = op(id);
  HEDDLE_CHECK(valid(o.parent), "an op was unlinked twice");
  if (valid(o.prev)) {
    op(o.prev).next = o.next;
  } else {
    region(o.parent).first = o.next;
  }
  if (valid(o.next)) {
    op(o.next).prev = o.prev;
  } else {
    region(o.parent).last = o.prev;
  }
  o.parent = RegionId::kNone;
  o.prev = OpId::kNone;
  o.next = OpId::kNone;
}

void Kernel::erase(OpId id) {
  for (const RegionId region_id : op(id).regions) {
    for (const OpId inner : ops(region_id)) erase(inner);
  }
  unlink(id);
}

OpId Kernel::terminator(RegionId id) const {
  const OpId last = region(id).last;
  if (!valid(last) || !has(info(op(last)), kTerminator)) return OpId::kNone;
  return last;
}

void Kernel::replace_all_uses(ValueId from, ValueId to) {
  IdMap<ValueId, ValueId> replacement(ValueId::kNone);
  replacement.at(from) = to;
  replace_uses(replacement);
}

void Kernel::replace_uses(const IdMap<ValueId, ValueId>& replacement) {
  walk([&](OpId id) {
    for (ValueId& operand : op(id).operands) {
      while (valid(replacement[operand])) operand = replacement[operand];
    }
  });
}

bool has_op(const Kernel& kernel, Opcode opcode) {
  bool found = false;
  kernel.walk([&](OpId id) { found |= kernel.op(id).opcode == opcode; });
  return found;
}

std::optional<Scalar> lacking_type(const Kernel& kernel, const Op& op) {
  const Targets& targets = info(op).targets;
  const auto lacks = [&](Scalar scalar) { return !supports(*kernel.target, targets, scalar); };
  if (op.operands.empty() && op.results.empty() && lacks(Scalar::kNone)) return Scalar::kNone;
  const auto first_of = [](const auto& values) {
    return values.empty() ? ValueId::kNone : values[0];
  };
  for (const ValueId value : {first_of(op.operands), first_of(op.results)}) {
    if (valid(value) && lacks(kernel.type(value).scalar)) return kernel.type(value).scalar;
  }
  return std::nullopt;
}

std::optional<size_t> tied_result(const Op& op, size_t operand) {
  const Signature& signature = info(op).signature;
  size_t result = 0;
  for (int i = 0; i < signature.operand_count; ++i) {
    const Position& position = signature.operands[i];
    const auto at = static_cast<size_t>(i);
    if (position.tied && position.arity == Arity::kMany && operand >= at) {
      return result + operand - at;
    }
    if (position.tied && operand == at) return result;
    result += position.tied ? 1 : 0;
  }
  return std::nullopt;
}

}  // namespace heddle::ir
