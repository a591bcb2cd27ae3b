#include "heddle/ir/interp/lower/lowering.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "heddle/ir/diagnostic.h"
#include "heddle/ir/interp/scalar/scalar.h"
#include "heddle/ir/launch/launch_program.h"

namespace heddle::ir::interp {
namespace {

// Registers of one warp beyond this are a kernel that nobody wrote.
constexpr uint64_t kMostRegisterBytes = uint64_t{1} << 30;

uint32_t element_bytes(Type type) { return static_cast<uint32_t>(bytes_of(type.scalar)); }

}  // namespace

Lowering::Lowering(const Kernel& kernel, const CompileOptions& options)
    : kernel_(kernel),
      options_(options),
      unwritten_(kernel),
      shared_(shared_layout(kernel)),
      locals_(local_layout(kernel)) {
  code_->name = kernel.name();
  code_->block = kernel.block;
  code_->cluster = kernel.cluster;
  code_->checked = options.checks;
  code_->static_shared_bytes = shared_.bytes;
  code_->local_bytes = (locals_.bytes + 15) / 16 * 16;
  code_->dynamic_shared_offset = shared_.dynamic_offset();
}

absl::StatusOr<Program> Lowering::run() {
  find_needed(kernel_.body());
  lower_params();
  lower_region(kernel_.body());
  emit(end_handler(), {});
  if (!status_.ok()) return status_;
  return finish();
}

// A pure op is left out when nothing that is needed uses it: with checks off, that is all that only
// bounds depend on. Backwards, so that users come before what they use.
void Lowering::find_needed(RegionId region) {
  for (OpId id = kernel_.region(region).last; valid(id); id = kernel_.op(id).prev) {
    const Op& op = kernel_.op(id);
    bool needed = (info(op).traits & (kPure | kFresh)) == 0;
    for (const ValueId result : op.results) needed |= needed_[result];
    if (!needed || has(info(op), kHostOnly)) continue;
    for (const ValueId operand : op.operands) {
      if (!options_.checks && type(operand).kind == TypeKind::kCheck) continue;
      needed_.at(operand) = true;
    }
    for (size_t i = op.regions.size(); i > 0; --i) find_needed(op.regions[i - 1]);
  }
}

void Lowering::lower_region(RegionId region) {
  for (const OpId id : kernel_.ops(region)) {
    if (!status_.ok()) return;
    const Op& op = kernel_.op(id);
    if ((info(op).traits & (kPure | kFresh)) != 0 && !needed_[op.result()]) continue;
    enter(id);
    lower_op(id);
  }
}

void Lowering::lower_op(OpId id) {
  const Op& op = kernel_.op(id);
  const auto axis = [&op] { return static_cast<uint64_t>(op.attr_or(AttrKey::kAxis, 0)); };
  const auto ambient = [&](InitKind kind, uint64_t value) {
    bind(op.result(), initial(kind, Scalar::kI32, 1, value));
  };
  switch (op.opcode) {
    case Opcode::kConst: {
      const Type t = type(op.result());
      bind(op.result(), initial(InitKind::kConst, t.scalar, t.count,
                                static_cast<uint64_t>(op.attr_or(AttrKey::kBits, 0))));
      return;
    }
    case Opcode::kFence:  // lanes, warps and blocks take turns
      if (options_.checks) emit(order_handler(), {});
      return;
    case Opcode::kUndef: {
      const Type t = type(op.result());
      if (!t.is_data() && !t.is_pending()) {
        return unimplemented(absl::StrCat("undef of type ", to_string(t)));
      }
      bind(op.result(), initial(InitKind::kUndef, t.scalar, t.count, 0));
      return;
    }
    case Opcode::kVar: {
      std::vector<Move> moves;
      bound_.at(op.result()) = fresh(op.result(), op.init());
      append_moves(op.result(), bound_[op.result()], op.init(), &moves);
      return emit_moves(std::move(moves), /*blended=*/false);
    }
    case Opcode::kVarLoad: {
      std::vector<Move> moves;
      bound_.at(op.result()) = fresh(op.result(), op.slot());
      append_moves(op.result(), bound_[op.result()], op.slot(), &moves);
      return emit_moves(std::move(moves), /*blended=*/false);
    }
    case Opcode::kVarStore: {
      std::vector<Move> moves;
      append_moves(op.slot(), bound_[op.slot()], op.value(), &moves);
      return emit_moves(std::move(moves), /*blended=*/true);
    }
    case Opcode::kYield:
      return;  // lowered with the op that owns the region
    case Opcode::kFor:
      return lower_for(op);
    case Opcode::kWhile:
      return lower_while(op);
    case Opcode::kIf:
      return lower_if(op);

    case Opcode::kThreadIdx:
      return ambient(InitKind::kThreadIdx, axis());
    case Opcode::kClusterRank:
      return ambient(InitKind::kClusterRank, 0);
    case Opcode::kBlockIdx:
      return ambient(InitKind::kBlockIdx, axis());
    case Opcode::kBlockDim:
      return ambient(InitKind::kBlockDim, axis());
    case Opcode::kGridDim:
      return ambient(InitKind::kGridDim, axis());
    case Opcode::kLaneId:
      return ambient(InitKind::kLaneId, 0);
    case Opcode::kWarpId:
      return ambient(InitKind::kWarpId, 0);

#define HEDDLE_OP(...)
#define HEDDLE_ELEMENTWISE(name, ...) case Opcode::k##name:
#include "heddle/ir/ops.def"
      return lower_elementwise(op);

    case Opcode::kBitcast:
    case Opcode::kAtLaunch:
    case Opcode::kExpect:
      return bind(op.result(), reg(op.a()));
    case Opcode::kPack:
    case Opcode::kSplat:
      return lower_pack(op);
    case Opcode::kE2m1Pack:
    case Opcode::kE2m1Unpack:
      return lower_e2m1(op);
    case Opcode::kExtract:
    case Opcode::kSlice: {
      Operand part = reg(op.a());
      part.delta +=
          static_cast<uint32_t>(op.attr_or(AttrKey::kIndex, 0)) * bytes_for(type(op.a()).scalar, 1);
      return bind(op.result(), part);
    }

    case Opcode::kExtent:
    case Opcode::kStride:
      return lower_index_query(op);
    case Opcode::kShared:
    case Opcode::kDynamicShared:
    case Opcode::kLocal:
    case Opcode::kTable:
    case Opcode::kSubview:
    case Opcode::kMapShared:
    case Opcode::kPointer:
      return lower_view(op);
    case Opcode::kAddress:
      bind(op.result(), new_reg(kI64Type));
      emit(address_handler(type(op.offset()).scalar == Scalar::kI64),
           {.dst = reg(op.result()),
            .a = reg(op.view()),
            .b = reg(op.offset()),
            .aux = static_cast<uint32_t>(bytes_of(type(op.view()).scalar))});
      return emit_poison(op.result(), {op.offset()});
    case Opcode::kBounds:
      return lower_bounds(op);
    case Opcode::kLoad:
    case Opcode::kStore:
    case Opcode::kAtomic:
    case Opcode::kAtomicCas:
    case Opcode::kAtomicLoad:
    case Opcode::kAtomicStore:
      return lower_access(op);
    case Opcode::kCopyAsync:
    case Opcode::kCopyAsyncIf:
      return lower_copy(op);
    case Opcode::kMbarrierInit:
    case Opcode::kMbarrierArrive:
    case Opcode::kMbarrierExpectTx:
    case Opcode::kMbarrierWait:
      return lower_mbarrier(op);
    case Opcode::kBulkLoad:
    case Opcode::kBulkCopy:
    case Opcode::kBulkStore:
    case Opcode::kBulkReduce:
      return lower_bulk(op);
    case Opcode::kAssumeUniform: {
      bind(op.result(), reg(op.a()));
      if (options_.checks && type(op.result()).is_scalar()) {
        emit(require_uniform_handler(bytes_of(type(op.result()).scalar)), {.a = reg(op.a())});
      }
      return;
    }
    case Opcode::kAssumeRange:
      return lower_assume_range(op);
    case Opcode::kUnreachable:
      emit(unreachable_handler(), {});
      return;
    case Opcode::kRequire:
    case Opcode::kLaunchGrid:
      return;  // the launch's, before anything runs
    case Opcode::kBulkCommit:
    case Opcode::kBulkWait:
    case Opcode::kBulkWaitRead:
    case Opcode::kBulkPrefetch:
    case Opcode::kFenceMbarrierInit:
    case Opcode::kGridDependencyWait:
    case Opcode::kGridDependencyLaunch:
    case Opcode::kSetMaxRegisters:
    // Copies are complete when they are issued.
    case Opcode::kCopyCommit:
    case Opcode::kCopyWait:
    case Opcode::kPrefetch:
    case Opcode::kNanoSleep:
      return;

    case Opcode::kBarrierSync:
    case Opcode::kBarrierArrive:
      require_defined(op.id(), DefinedUse::kLaneMask);
      emit(op.opcode == Opcode::kBarrierSync ? named_sync_handler() : named_arrive_handler(),
           {.a = reg(op.id()), .aux = static_cast<uint32_t>(op.attr_or(AttrKey::kThreads, 0))});
      return;
    case Opcode::kClusterArrive:
      emit(cluster_arrive_handler(), {});
      return;
    case Opcode::kClusterWait:
      emit(cluster_wait_handler(), {});
      return;
    case Opcode::kBarrier:
      emit(barrier_handler(), {});
      return;
    case Opcode::kShflIdx:
    case Opcode::kShflUp:
    case Opcode::kShflDown:
    case Opcode::kShflXor:
    case Opcode::kVoteAny:
    case Opcode::kVoteAll:
    case Opcode::kVoteUni:
    case Opcode::kBallot:
    case Opcode::kMatchAny:
    case Opcode::kMatchAll:
    case Opcode::kRedux:
    case Opcode::kElect:
    case Opcode::kWarpSync:
      return lower_collective(op);
    case Opcode::kActiveMask:
      bind(op.result(), new_reg(type(op.result())));
      emit(active_mask_handler(), {.dst = reg(op.result())}, {.ops = 1});
      return;
    case Opcode::kLdMatrix:
    case Opcode::kStMatrix:
      return lower_matrices(op);
    case Opcode::kAssert: {
      require_defined(op.condition(), DefinedUse::kAssert);
      const StringId message{static_cast<uint32_t>(op.attr_or(AttrKey::kMessage, 0))};
      emit(assert_handler(), {.a = reg(op.condition()), .aux = text(kernel_.text(message))});
      return;
    }

    case Opcode::kTrap:
      emit(trap_handler(), {});
      return;
    case Opcode::kPrintf:
      return lower_printf(op);
    case Opcode::kInlinePtx:
    case Opcode::kInlinePtxVolatile:
      return lower_inline_ptx(op);
    case Opcode::kClock:
    case Opcode::kGlobalTimer:
      bind(op.result(), new_reg(type(op.result())));
      emit(clock_handler(), {.dst = reg(op.result())});
      return;

    case Opcode::kSmemDesc:
      return lower_descriptor(op);
    case Opcode::kWgmmaBegin:
      return lower_wgmma_begin(op);
    case Opcode::kWgmma:
      return lower_wgmma(op);
    // Products are complete when their wgmma is, so that nothing is left to wait for or to order.
    case Opcode::kWgmmaWait:
      for (size_t i = 0; i < op.results.size(); ++i) bind(op.results[i], reg(op.fragments()[i]));
      emit(warp_sync_handler(), {});
      return;
    case Opcode::kWgmmaCommit:
      emit(warp_sync_handler(), {});
      return;
    case Opcode::kFenceAsync:
      return;
  }
}

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
  for (const ValueId result : op.results) bind(result, new_reg(type(result)));
  const PtxRule* const rule = kernel_.rule(op.attr_or(AttrKey::kRule, -1));
  if (rule == nullptr) {
    emit(no_rule_handler(), {});
    return;
  }
  if (options_.checks && op.opcode == Opcode::kInlinePtxVolatile) emit(order_handler(), {});
  RuleCall call;
  call.rule = *rule;
  emit(rule_handler(), {.aux = static_cast<uint32_t>(code_->rules.size())});
  const auto value = [&](ValueId id) {
    return RuleCall::Value{table_operand(reg(id)), element_bytes(type(id))};
  };
  for (const ValueId operand : op.operands) call.inputs.push_back(value(operand));
  for (const ValueId result : op.results) call.outputs.push_back(value(result));
  code_->rules.push_back(std::move(call));
}

uint32_t Lowering::emit(Handler handler, const Fields& fields, Work work) {
  const uint32_t index = next_index();
  Instr instr;
  instr.run = handler;
  instr.count = fields.count;
  instr.aux = fields.aux;
  code_->instrs.push_back(instr);
  const Op* op = valid(current_) ? &kernel_.op(current_) : nullptr;
  code_->sites.push_back(
      {.op = current_, .place = op != nullptr ? place(op->loc) : kNone, .control = control_});
  code_->work.push_back(work);
  const auto operand = [this](Operand part) { return part.used() ? table_operand(part) : kNone; };
  Instr& made = code_->instrs.back();
  made.dst = operand(fields.dst);
  made.a = operand(fields.a);
  made.b = operand(fields.b);
  made.c = operand(fields.c);
  return index;
}

uint32_t Lowering::table_operand(Operand operand) {
  registers_.touch(operand.reg, next_index() - 1);
  operands_.push_back(operand);
  return static_cast<uint32_t>(operands_.size() - 1);
}

uint32_t Lowering::poison_stride(ValueId value) const {
  const Type t = type(value);
  switch (t.kind) {
    case TypeKind::kScalar:
    case TypeKind::kVector:
    case TypeKind::kFragment:
    case TypeKind::kPending:
      return element_bytes(t);
    case TypeKind::kView:
    case TypeKind::kDescriptor:
      return sizeof(uint64_t);  // of the address
    case TypeKind::kNone:
    case TypeKind::kCheck:
      return sizeof(Bool);
  }
  return 0;
}

uint32_t Lowering::poison_size(ValueId value, uint32_t count) const {
  if (!poisoned(value)) return 0;
  return poison_stride(value) | (count > 1 && type(value).count <= 1 ? 0x80u : 0u);
}

void Lowering::emit_poison(ValueId result, absl::Span<const ValueId> operands) {
  if (!poisoned(result)) return;
  const uint32_t count = std::max<uint32_t>(type(result).count, 1);
  // Three operands at a time; from the second time on the result so far is one of them.
  std::vector<ValueId> left;
  for (const ValueId operand : operands) {
    if (poisoned(operand)) left.push_back(operand);
  }
  do {
    Operand regs[3];
    uint32_t sizes = poison_stride(result);
    for (int i = 0; i < 3 && !left.empty(); ++i) {
      regs[i] = reg(left.back());
      sizes |= poison_size(left.back(), count) << (8 * (i + 1));
      left.pop_back();
    }
    emit(poison_union_handler(), {.dst = reg(result),
                                  .a = regs[0],
                                  .b = regs[1],
                                  .c = regs[2],
                                  .count = count,
                                  .aux = sizes});
    if (!left.empty()) left.push_back(result);
  } while (!left.empty());
}

void Lowering::require_defined(ValueId value, DefinedUse use) {
  if (!poisoned(value)) return;
  emit(require_defined_handler(), {.a = reg(value),
                                   .count = std::max<uint32_t>(type(value).count, 1),
                                   .aux = static_cast<uint32_t>(use) | poison_stride(value) << 8});
}

Operand Lowering::initial(InitKind kind, Scalar scalar, uint32_t count, uint64_t value,
                          absl::string_view name) {
  const InitKey key{kind, scalar, count, value};
  const auto [it, inserted] = initial_.try_emplace(key, 0);
  if (inserted) {
    it->second = registers_.add_permanent(bytes_for(scalar, count));
    operands_.push_back({it->second});
    code_->inits.push_back({.kind = kind,
                            .scalar = scalar,
                            .count = count,
                            .reg = static_cast<uint32_t>(operands_.size() - 1),
                            .value = value,
                            .name = name.empty() ? kNone : text(name)});
  }
  return {it->second};
}

Operand Lowering::constant_index(int64_t value, bool wide) {
  return initial(InitKind::kConst, wide ? Scalar::kI64 : Scalar::kI32, 1,
                 static_cast<uint64_t>(value));
}

uint32_t Lowering::place(LocId loc) {
  const Loc line = kernel_.loc(loc);
  if (line.file.empty()) return kNone;
  uint32_t& index = place_of_.at(loc);
  if (index == kNone) {
    index = static_cast<uint32_t>(code_->places.size());
    const auto file = std::find(code_->files.begin(), code_->files.end(), line.file);
    code_->places.push_back({static_cast<uint32_t>(file - code_->files.begin()), line.line});
    if (file == code_->files.end()) code_->files.emplace_back(line.file);
  }
  return index;
}

uint32_t Lowering::text(absl::string_view text) {
  const auto [it, inserted] =
      text_ids_.try_emplace(std::string(text), static_cast<uint32_t>(code_->texts.size()));
  if (inserted) code_->texts.emplace_back(text);
  return it->second;
}

void Lowering::unimplemented(absl::string_view what) {
  if (!status_.ok()) return;
  Diagnostic diagnostic;
  const Loc line = valid(current_) ? kernel_.loc(current_) : Loc{};
  diagnostic.place = {std::string(line.file), line.line};
  diagnostic.message =
      absl::StrCat("the interpreter does not run ", what, " (kernel '", kernel_.name(), "')");
  status_ = absl::UnimplementedError(to_string(diagnostic));
}

absl::StatusOr<Program> Lowering::finish() {
  const uint64_t bytes = registers_.allocate();
  if (bytes > kMostRegisterBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "kernel '", kernel_.name(), "' needs ", bytes,
        " bytes of registers for each warp; the interpreter has ", kMostRegisterBytes));
  }
  const auto place_operand = [this](uint32_t* field) {
    if (*field == kNone) return;
    const Operand& operand = operands_[*field];
    *field = registers_.offset(operand.reg) + operand.delta;
  };
  for (Instr& instr : code_->instrs) {
    for (uint32_t* field : {&instr.dst, &instr.a, &instr.b, &instr.c}) place_operand(field);
  }
  for (Init& init : code_->inits) place_operand(&init.reg);
  for (Access& access : code_->accesses) {
    place_operand(&access.ok);
    place_operand(&access.compare);
    place_operand(&access.ranks);
    place_operand(&access.offset.reg);
  }
  for (BoundsCheck& bounds : code_->bounds) {
    for (IndexReg& index : bounds.coordinates) place_operand(&index.reg);
    for (IndexReg& index : bounds.extents) place_operand(&index.reg);
  }
  for (Loop& loop : code_->loops) place_operand(&loop.trips);
  for (Print& print : code_->prints) {
    for (Print::Value& value : print.values) place_operand(&value.reg);
  }
  for (RuleCall& call : code_->rules) {
    for (RuleCall::Value& value : call.inputs) place_operand(&value.reg);
    for (RuleCall::Value& value : call.outputs) place_operand(&value.reg);
  }
  for (Wgmma& wgmma : code_->wgmmas) {
    place_operand(&wgmma.a_format);
    place_operand(&wgmma.b_format);
  }
  const uint32_t arena = static_cast<uint32_t>(bytes);
  code_->poison_offset = arena;
  const bool has_poison = options_.checks && unwritten_.any();
  code_->register_bytes = arena + (has_poison ? (poison_of(arena) + 63) / 64 * 64 : 0);
  return Program(code_);
}

absl::StatusOr<Program> compile(const Kernel& kernel, const CompileOptions& options) {
  return Lowering(kernel, options).run();
}

const std::string& Program::name() const { return code_->name; }
Dim3 Program::block() const { return code_->block; }
int Program::param_bytes() const { return code_->param_bytes; }
bool Program::checks() const { return code_->checked; }
int Program::instruction_count() const { return static_cast<int>(code_->instrs.size()); }
int64_t Program::register_bytes() const { return code_->register_bytes; }

}  // namespace heddle::ir::interp
