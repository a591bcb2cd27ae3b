#include "heddle/ir/builder.h"

#include "heddle/ir/check.h"

namespace heddle::ir {
namespace {

// The operand that plays a role, by the signature; kNone where the op has none.
ValueId operand_in_role(const Signature& signature, absl::Span<const ValueId> operands, Role role) {
  for (int i = 0; i < signature.operand_count && i < static_cast<int>(operands.size()); ++i) {
    if (signature.operands[i].role == role) return operands[i];
  }
  return ValueId::kNone;
}

}  // namespace

absl::InlinedVector<Type, 2> infer_results(const Kernel& kernel, Opcode opcode,
                                           absl::Span<const ValueId> operands, Type type) {
  const Signature& signature = info(opcode).signature;
  absl::InlinedVector<Type, 2> results;
  if (signature.result_count == 0) return results;
  const Position& position = signature.results[0];
  if (position.arity == Arity::kMany) {
    // wgmma.wait: each fragment that it lists comes back settled.
    for (const ValueId operand : operands) {
      Type settled = kernel.type(operand);
      settled.kind = TypeKind::kFragment;
      results.push_back(settled);
    }
    return results;
  }
  const auto type_of = [&](OperandName name) {
    return kernel.type(operands[static_cast<size_t>(operand_index(opcode, name))]);
  };
  const ValueId t = operand_in_role(signature, operands, Role::kT);
  switch (position.role) {
    case Role::kT:
      results.push_back(valid(t) ? kernel.type(t) : type);
      break;
    case Role::kBoolLikeT:
      results.push_back(kernel.type(t).with_scalar(Scalar::kBool));
      break;
    case Role::kPending: {
      Type pending = kernel.type(operands.front());  // the tied one
      pending.kind = TypeKind::kPending;
      results.push_back(pending);
      break;
    }
    case Role::kSlot:
      results.push_back(type_of(OperandName::kInit).as_slot());
      break;
    case Role::kCheck:
      results.push_back(Type::check());
      break;
    case Role::kDescriptor:
      results.push_back(Type::descriptor(type_of(OperandName::kView).scalar));
      break;
    case Role::kI32:
      results.push_back(kI32Type);
      break;
    case Role::kU32:
      results.push_back(kU32Type);
      break;
    case Role::kI64:
      results.push_back(kI64Type);
      break;
    case Role::kBool:
      results.push_back(kBoolType);
      break;
    case Role::kAny:
      results.push_back(opcode == Opcode::kVarLoad ? type_of(OperandName::kSlot).content() : type);
      break;
    case Role::kDataLikeT:
    case Role::kIndex:
    case Role::kElement:
    case Role::kView:
    case Role::kTile:
    case Role::kTensorMap:
    case Role::kFragment:
      results.push_back(type);
      break;
  }
  return results;
}

OpId Builder::create_op(Opcode opcode, absl::Span<const ValueId> operands, Type type,
                        absl::Span<const Attr> attrs) {
  return create_op(opcode, operands, infer_results(kernel_, opcode, operands, type), attrs);
}

OpId Builder::create_op(Opcode opcode, absl::Span<const ValueId> operands,
                        absl::Span<const Type> results, absl::Span<const Attr> attrs) {
  const OpId op = kernel_.new_op(opcode, operands, results, loc_);
  kernel_.op(op).attrs.assign(attrs.begin(), attrs.end());
  return insert(op);
}

ValueId Builder::create(Opcode opcode, absl::Span<const ValueId> operands, Type type,
                        absl::Span<const Attr> attrs) {
  return kernel_.op(create_op(opcode, operands, type, attrs)).result();
}

ValueId Builder::constant(Type type, uint64_t bits) {
  const Attr attr{AttrKey::kBits, static_cast<int64_t>(bits)};
  return create(Opcode::kConst, absl::Span<const ValueId>(), type,
                absl::Span<const Attr>(&attr, 1));
}

ValueId Builder::constant_int(Type type, int64_t value) {
  const int bits = type.scalar == Scalar::kBool ? 1 : info(type.scalar).bits;
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  return constant(type, static_cast<uint64_t>(value) & mask);
}

OpId Builder::begin_for(ValueId start, ValueId stop, ValueId step, absl::Span<const ValueId> init) {
  absl::InlinedVector<ValueId, 8> operands = {start, stop, step};
  operands.insert(operands.end(), init.begin(), init.end());
  absl::InlinedVector<Type, 4> types;
  for (const ValueId value : init) types.push_back(kernel_.type(value));
  const OpId op = insert(kernel_.new_op(Opcode::kFor, operands, types, loc_));
  const RegionId body = kernel_.add_region(op);
  kernel_.add_region_arg(body, kernel_.type(start));
  for (const Type type : types) kernel_.add_region_arg(body, type);
  set_insertion_end(body);
  return op;
}

OpId Builder::begin_while(absl::Span<const ValueId> init) {
  absl::InlinedVector<Type, 4> types;
  for (const ValueId value : init) types.push_back(kernel_.type(value));
  const OpId op = insert(kernel_.new_op(Opcode::kWhile, init, types, loc_));
  for (int i = 0; i < 2; ++i) {
    const RegionId region = kernel_.add_region(op);
    for (const Type type : types) kernel_.add_region_arg(region, type);
  }
  set_insertion_end(kernel_.op(op).regions[0]);
  return op;
}

OpId Builder::begin_if(ValueId condition, absl::Span<const Type> results) {
  const OpId op =
      insert(kernel_.new_op(Opcode::kIf, absl::Span<const ValueId>(&condition, 1), results, loc_));
  kernel_.add_region(op);
  kernel_.add_region(op);
  set_insertion_end(kernel_.op(op).regions[0]);
  return op;
}

void Builder::next_region() {
  const OpId owner = kernel_.region(region_).parent;
  HEDDLE_CHECK(kernel_.op(owner).regions.size() == 2, "the op has no second region");
  set_insertion_end(kernel_.op(owner).regions[1]);
}

void Builder::yield(absl::Span<const ValueId> values) { create_op(Opcode::kYield, values); }

void Builder::end_region() {
  const OpId owner = kernel_.region(region_).parent;
  const OpId next = kernel_.op(owner).next;
  if (valid(next)) {
    set_insertion_before(next);
  } else {
    set_insertion_end(kernel_.op(owner).parent);
  }
}

OpId Builder::insert(OpId op) {
  if (valid(before_)) {
    kernel_.insert_before(before_, op);
  } else {
    kernel_.append(region_, op);
  }
  return op;
}

}  // namespace heddle::ir
