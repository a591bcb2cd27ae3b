// Ops on values: elementwise ones, vectors, what the lanes of a warp do together, text and inline PTX.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/lower/lowering.h"
#include "heddle/ir/interp/scalar/lane.h"

namespace heddle::ir::interp {
namespace {

uint32_t element_bytes(Type type) { return static_cast<uint32_t>(bytes_of(type.scalar)); }

}  // namespace

void Lowering::lower_assume_range(const Op& op) {
  const Type promised = type(op.result());
  bind(op.result(), reg(op.a()));
  if (!options_.checks) return;
  emit(require_range_handler(promised.scalar),
       {.a = reg(op.a()),
        .count = promised.count,
        .aux = static_cast<uint32_t>(code_->promises.size())});
  const std::optional<int64_t> name = op.attr(AttrKey::kName);
  code_->promises.push_back(
      {promised_facts(op),
       name ? std::string(kernel_.text(StringId{static_cast<uint32_t>(*name)})) : ""});
}

void Lowering::lower_elementwise(const Op& op) {
  const Type result = type(op.result());
  const bool divides = op.opcode == Opcode::kDiv || op.opcode == Opcode::kRem;
  if (options_.checks && divides && is_integer(result.scalar)) {
    emit(require_nonzero_handler(bytes_of(result.scalar)),
         {.a = reg(op.b()), .count = result.count});
  }
  Handler handler = nullptr;
  const std::optional<int64_t> rounding = op.attr(AttrKey::kRounding);
  if (op.opcode == Opcode::kConvertRounded) {
    handler = rounded_convert_handler(type(op.a()).scalar, result.scalar);
  } else if (rounding) {
    handler = rounded_handler(op.opcode, result.scalar);
  } else if (op.opcode == Opcode::kSelect) {
    handler = select_handler(bytes_of(result.scalar));
  } else if (op.opcode == Opcode::kConvert) {
    handler = convert_handler(type(op.a()).scalar, result.scalar);
  } else {
    handler = elementwise_handler(op.opcode, type(op.a()).scalar);
  }
  if (handler == nullptr) {
    return unimplemented(absl::StrCat(info(op).mnemonic, " on ", to_string(type(op.a()))));
  }
  const bool flushes = op.attr_or(AttrKey::kFtz, 0) != 0;
  std::array<Operand, 3> regs;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    regs[i] = reg(op.operands[i]);
    if (!flushes) continue;
    const Type t = type(op.operands[i]);
    const Operand flushed = new_reg(t);
    emit(flush_handler(), {.dst = flushed, .a = regs[i], .count = t.count});
    regs[i] = flushed;
  }
  bind(op.result(), new_reg(result));
  emit(handler,
       {.dst = reg(op.result()),
        .a = regs[0],
        .b = regs[1],
        .c = regs[2],
        .count = result.count,
        .aux = static_cast<uint32_t>(rounding.value_or(0))},
       {.ops = result.count});
  if (flushes && result.scalar == Scalar::kF32) {
    const bool quotient = op.opcode == Opcode::kDivRounded;
    emit(quotient ? flush_quotient_handler() : flush_handler(),
         {.dst = reg(op.result()),
          .a = quotient ? regs[0] : reg(op.result()),
          .b = regs[1],
          .c = reg(op.result()),
          .count = result.count});
  }
  if (op.opcode == Opcode::kSelect && poisoned(op.result())) {
    emit(
        poison_select_handler(),
        {.dst = reg(op.result()),
         .a = regs[0],
         .b = regs[1],
         .c = regs[2],
         .count = result.count,
         .aux = element_bytes(result) | poison_size(op.condition(), 1) << 8 |
                poison_size(op.a(), result.count) << 16 | poison_size(op.b(), result.count) << 24});
    return;
  }
  emit_poison(op.result(), op.operands);
}

void Lowering::lower_pack(const Op& op) {
  const Type result = type(op.result());
  const int bytes = bytes_of(result.scalar);
  bind(op.result(), new_reg(result));
  if (op.opcode == Opcode::kSplat) {
    emit(splat_handler(bytes), {.dst = reg(op.result()), .a = reg(op.a()), .count = result.count});
    return emit_poison(op.result(), op.operands);
  }
  Operand part = reg(op.result());
  for (const ValueId operand : op.operands) {
    emit_move({.to = part,
               .from = reg(operand),
               .bytes = bytes,
               .count = type(operand).count,
               .to_poison = poisoned(op.result()),
               .from_poison = poisoned(operand)},
              /*blended=*/false);
    part.delta += bytes_for(result.scalar, type(operand).count);
  }
}

void Lowering::lower_e2m1(const Op& op) {
  require_defined(op.a(), DefinedUse::kTakenApart);
  bind(op.result(), new_reg(type(op.result())));
  const bool packs = op.opcode == Opcode::kE2m1Pack;
  const uint32_t pairs = type(packs ? op.result() : op.a()).count;
  emit(e2m1_handler(op.opcode), {.dst = reg(op.result()), .a = reg(op.a()), .count = pairs},
       {.ops = 2 * pairs});
}

void Lowering::lower_collective(const Op& op) {
  const ValueId mask = op.mask();
  if (op.opcode == Opcode::kWarpSync) {
    require_defined(mask, DefinedUse::kLaneMask);
    emit(warp_sync_handler(), {.a = reg(mask)});
    return;
  }
  const Type result = type(op.result());
  bind(op.result(), new_reg(result));
  if (op.opcode == Opcode::kElect) {
    require_defined(mask, DefinedUse::kLaneMask);
    emit(elect_handler(options_.checks), {.dst = reg(op.result()), .b = reg(mask)}, {.ops = 1});
    return;
  }
  const ValueId data = op.value();
  Handler gather = match_handler(op.opcode, bytes_of(type(data).scalar), options_.checks);
  const auto kind = static_cast<AtomicOp>(op.attr_or(AttrKey::kOp, 0));
  if (op.opcode == Opcode::kRedux) gather = redux_handler(kind, result.scalar, options_.checks);
  if (gather == nullptr) gather = vote_handler(op.opcode, options_.checks);
  if (gather != nullptr) {
    require_defined(data, DefinedUse::kVote);
    require_defined(mask, DefinedUse::kLaneMask);
    emit(gather, {.dst = reg(op.result()), .a = reg(data), .b = reg(mask)}, {.ops = 1});
    return;
  }
  const uint32_t width = static_cast<uint32_t>(op.attr_or(AttrKey::kWidth, kLanes));
  require_defined(op.lane(), DefinedUse::kShuffleLane);
  require_defined(mask, DefinedUse::kLaneMask);
  emit(shuffle_handler(op.opcode, bytes_of(result.scalar), options_.checks),
       {.dst = reg(op.result()),
        .a = reg(data),
        .b = reg(op.lane()),
        .c = reg(mask),
        .count = result.count,
        .aux = width},
       {.ops = result.count});
  if (poisoned(data)) {
    emit(poison_shuffle_handler(op.opcode), {.dst = reg(op.result()),
                                             .a = reg(data),
                                             .b = reg(op.lane()),
                                             .count = result.count,
                                             .aux = width | element_bytes(result) << 8});
  }
}

void Lowering::lower_printf(const Op& op) {
  const StringId format{static_cast<uint32_t>(*op.attr(AttrKey::kMessage))};
  Print print;
  status_.Update(split_format(kernel_.text(format), &print.parts));
  for (const ValueId operand : op.operands) require_defined(operand, DefinedUse::kPrinted);
  emit(printf_handler(), {.aux = static_cast<uint32_t>(code_->prints.size())});
  for (const ValueId operand : op.operands) {
    print.values.push_back({table_operand(reg(operand)), type(operand).scalar});
  }
  code_->prints.push_back(std::move(print));
}

void Lowering::lower_inline_ptx(const Op& op) {
  for (const ValueId operand : op.operands) require_defined(operand, DefinedUse::kInlinePtx);
  if (options_.checks && op.opcode == Opcode::kInlinePtxVolatile) emit(order_handler(), {});
  const PtxRule* const rule = kernel_.rule(op.attr_or(AttrKey::kRule, -1));
  call_rule(op, rule == nullptr ? nullptr : *rule, nullptr);
}

void Lowering::lower_custom(const Op& op) {
  const CustomOp& custom = *custom_op(op.opcode);
  const bool together = is_convergent(custom.row);
  for (size_t i = 0; i < op.operands.size(); ++i) {
    // What a warp computes depends on all of its lanes.
    if (together || !passes_poison(custom.row, i)) {
      require_defined(op.operands[i], DefinedUse::kCustomOp);
    }
  }
  if (options_.checks && (custom.row.effects.orders || custom.row.effects.unnamed)) {
    emit(order_handler(), {});
  }
  if (options_.checks && together) emit(warp_sync_handler(), {.a = mask_of(op)});
  call_rule(op, custom.meaning, custom.warp_meaning);
  for (const ValueId result : op.results) emit_poison(result, op.operands);
}

// Of the lanes that run a warp op together, where it has one.
Operand Lowering::mask_of(const Op& op) {
  return has_mask(op) ? reg(op.operands.back()) : Operand();
}

// A rule for each element, or for none where there is no rule.
void Lowering::call_rule(const Op& op, const PtxRule& rule, const WarpRule& warp_rule) {
  for (const ValueId result : op.results) bind(result, new_reg(type(result)));
  if (!rule && !warp_rule) {
    emit(no_rule_handler(), {.aux = text(info(op).mnemonic)});
    return;
  }
  const auto count = static_cast<uint32_t>(elements_of(kernel_, op));
  for (uint32_t element = 0; element < count; ++element) {
    // Registers are looked up behind the instruction that touches them.
    emit(warp_rule ? warp_rule_handler() : rule_handler(),
         {.b = mask_of(op), .aux = static_cast<uint32_t>(code_->rules.size())});
    const auto value = [&](ValueId id) {
      const Scalar scalar = type(id).scalar;
      Operand part = reg(id);
      if (!type(id).is_scalar()) part.delta += element * bytes_for(scalar, 1);
      return RuleCall::Value{table_operand(part), static_cast<uint32_t>(bytes_of(scalar)),
                             bits_mask(scalar)};
    };
    RuleCall call{.rule = rule, .warp_rule = warp_rule, .inputs = {}, .outputs = {}};
    for (const ValueId operand : op.operands) call.inputs.push_back(value(operand));
    for (const ValueId result : op.results) call.outputs.push_back(value(result));
    if (takes_mask(info(op)) && !has_mask(op)) call.inputs.emplace_back();
    code_->rules.push_back(std::move(call));
  }
}

}  // namespace heddle::ir::interp
