// Parameters, control flow, and the copies by which values pass from region to region.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/lower/lowering.h"
#include "heddle/ir/launch/abi.h"

namespace heddle::ir::interp {

void Lowering::lower_params() {
  const ParamLayout layout = param_layout(kernel_);
  code_->param_bytes = layout.bytes;
  for (int i = 0; i < static_cast<int>(kernel_.params().size()); ++i) {
    const ValueId value = kernel_.params()[i].value;
    const Type t = type(value);
    if (!t.is_view()) {
      const int offset = layout.find(SlotKind::kScalar, i)->offset;
      bind(value, initial(InitKind::kParam, t.scalar, 1, static_cast<uint64_t>(offset)));
      continue;
    }
    const int offset = layout.find(SlotKind::kAddress, i)->offset;
    Bound& bound = bound_.at(value);
    bound.reg = initial(InitKind::kParam, Scalar::kU64, 1, static_cast<uint64_t>(offset));
    bound.view = static_cast<uint32_t>(views_.size());
    views_.push_back(param_view(i, layout));
  }
}

Bound Lowering::fresh(ValueId value, ValueId like) {
  const Type t = type(value).content();
  Bound bound;
  switch (t.kind) {
    case TypeKind::kScalar:
    case TypeKind::kVector:
    case TypeKind::kFragment:
    case TypeKind::kPending:
      bound.reg = new_reg(t);
      break;
    case TypeKind::kCheck:
      bound.reg = new_reg(kBoolType);
      break;
    case TypeKind::kDescriptor:
      bound.reg = new_reg(Type::of(Scalar::kU64));
      bound.format = new_reg(Type::of(Scalar::kU64));
      break;
    case TypeKind::kView: {
      bound.reg = new_reg(Type::of(Scalar::kU64));
      bound.view = static_cast<uint32_t>(views_.size());
      ViewInfo view;
      view.name = views_[bound_[like].view].name;
      for (int dim = 0; dim < t.rank; ++dim) {
        for (auto* list : {&view.extents, &view.strides}) {
          list->push_back(
              {.kind = IndexSource::Kind::kReg, .reg = new_index_reg(/*wide=*/true), .wide = true});
        }
      }
      views_.push_back(std::move(view));
      break;
    }
    case TypeKind::kNone:
    case TypeKind::kTensorMap:
      unimplemented("values without a type");
      break;
  }
  return bound;
}

void Lowering::append_moves(ValueId to_value, const Bound& to, ValueId from_value,
                            std::vector<Move>* moves) {
  const Bound from = bound_[from_value];
  const Type t = type(from_value).content();
  const bool to_poison = poisoned(to_value);
  const bool from_poison = poisoned(from_value);
  const int address_bytes = sizeof(uint64_t);
  switch (t.kind) {
    case TypeKind::kScalar:
    case TypeKind::kVector:
    case TypeKind::kFragment:
    case TypeKind::kPending:
      moves->push_back(
          {to.reg, from.reg, bytes_of(t.scalar), t.count, to_poison, from_poison, t.is_pending()});
      break;
    case TypeKind::kCheck:
      if (!options_.checks) break;  // nothing has computed it
      moves->push_back({to.reg, from.reg, 1, 1, to_poison, from_poison});
      break;
    case TypeKind::kDescriptor:
      moves->push_back({to.reg, from.reg, address_bytes, 1, to_poison, from_poison});
      moves->push_back({to.format, from.format, address_bytes, 1, false, false});
      break;
    case TypeKind::kView: {
      moves->push_back({to.reg, from.reg, address_bytes, 1, to_poison, from_poison});
      // Copies: index_operand may add views.
      const ViewInfo target = views_[to.view];
      const ViewInfo source = views_[from.view];
      for (size_t dim = 0; dim < target.extents.size(); ++dim) {
        IndexSource stride = source.strides[dim];
        if (stride.kind == IndexSource::Kind::kRowMajor) stride = row_major_stride(source, dim);
        moves->push_back({target.extents[dim].reg, index_operand(source.extents[dim], true),
                          address_bytes, 1, false, false});
        moves->push_back(
            {target.strides[dim].reg, index_operand(stride, true), address_bytes, 1, false, false});
      }
      break;
    }
    case TypeKind::kNone:
    case TypeKind::kTensorMap:
      break;
  }
}

void Lowering::emit_move(const Move& move, bool blended) {
  emit(copy_handler(move.bytes, blended), {.dst = move.to, .a = move.from, .count = move.count});
  if (watched_ && move.pending) emit(watched_move_handler(), {.dst = move.to, .a = move.from});
  if (!move.to_poison) return;
  const uint32_t size = static_cast<uint32_t>(move.bytes);
  emit(blended ? poison_blend_handler() : poison_union_handler(),
       {.dst = move.to,
        .a = move.from,
        .count = move.count,
        .aux = size | (move.from_poison ? size : 0) << 8});
}

void Lowering::emit_moves(std::vector<Move> moves, bool blended) {
  moves.erase(std::remove_if(moves.begin(), moves.end(),
                             [](const Move& move) { return move.to == move.from; }),
              moves.end());
  while (!moves.empty()) {
    // A move whose target no other move still reads may go first.
    const auto ready = std::find_if(moves.begin(), moves.end(), [&](const Move& move) {
      return std::none_of(moves.begin(), moves.end(),
                          [&](const Move& other) { return other.from.reg == move.to.reg; });
    });
    if (ready != moves.end()) {
      emit_move(*ready, blended);
      moves.erase(ready);
      continue;
    }
    // Only cycles are left: one source steps aside.
    Move& first = moves.front();
    const Operand aside{registers_.add(static_cast<uint32_t>(first.bytes) * kLanes * first.count)};
    Move step = first;
    step.to = aside;
    step.to_poison = first.from_poison;
    emit_move(step, /*blended=*/false);
    first.from = aside;
  }
}

void Lowering::lower_for(const Op& op) {
  const ValueId start = op.start();
  const ValueId stop = op.stop();
  const ValueId step = op.step();
  const OpId id = current_;
  const Region& body = kernel_.region(op.regions[0]);
  const bool wide = type(start).scalar == Scalar::kI64;
  for (const ValueId bound : {start, stop, step}) require_defined(bound, DefinedUse::kLoopBounds);

  std::vector<Move> moves;
  for (size_t i = 0; i < op.results.size(); ++i) {
    const ValueId argument = body.args[i + 1];
    bound_.at(argument) = fresh(argument, op.inits()[i]);
    append_moves(argument, bound_[argument], op.inits()[i], &moves);
  }
  emit_moves(std::move(moves), /*blended=*/false);
  moves.clear();

  const uint32_t loop_index = static_cast<uint32_t>(code_->loops.size());
  code_->loops.emplace_back();
  const uint32_t frame = depth_++;
  code_->frame_count = std::max(code_->frame_count, depth_);
  const Operand trips = new_reg(Type::of(Scalar::kU64));
  const ValueId counter = body.args[0];
  bind(counter, new_reg(type(counter)));
  emit(for_handler(wide), {.dst = reg(counter),
                           .a = reg(start),
                           .b = reg(stop),
                           .c = reg(step),
                           .count = frame,
                           .aux = loop_index});
  code_->loops[loop_index].trips = table_operand(trips);
  code_->loops[loop_index].body = next_index();
  code_->loops[loop_index].direction = kernel_.constant_int(step).value_or(1) < 0 ? -1 : 1;

  const uint32_t outer = control_;
  control_ = static_cast<uint32_t>(code_->controls.size());
  code_->controls.push_back({ControlKind::kFor, frame, place(op.loc), outer});
  registers_.begin_loop(next_index());
  lower_region(op.regions[0]);
  if (!status_.ok()) return;
  const Op& yield = kernel_.op(kernel_.terminator(op.regions[0]));
  enter(kernel_.terminator(op.regions[0]));
  for (size_t i = 0; i < op.results.size(); ++i) {
    append_moves(body.args[i + 1], bound_[body.args[i + 1]], yield.operands[i], &moves);
  }
  emit_moves(std::move(moves), /*blended=*/true);
  enter(id);
  const uint32_t last =
      emit(for_next_handler(wide),
           {.dst = reg(counter), .c = reg(step), .count = frame, .aux = loop_index});
  table_operand(trips);
  registers_.end_loop(last);
  control_ = outer;
  --depth_;
  Loop& loop = code_->loops[loop_index];
  loop.exit = next_index();
  loop.length = loop.exit - loop.body;
  for (size_t i = 0; i < op.results.size(); ++i) {
    bound_.copy(op.results[i], body.args[i + 1]);
  }
}

void Lowering::lower_while(const Op& op) {
  const OpId id = current_;
  const Region& test = kernel_.region(op.regions[0]);
  const Region& body = kernel_.region(op.regions[1]);
  std::vector<Move> moves;
  for (size_t i = 0; i < op.results.size(); ++i) {
    bound_.at(test.args[i]) = fresh(test.args[i], op.inits()[i]);
    append_moves(test.args[i], bound_[test.args[i]], op.inits()[i], &moves);
    // One register holds the carried value everywhere: lanes that left keep what they had.
    bound_.copy(body.args[i], test.args[i]);
    bound_.copy(op.results[i], test.args[i]);
  }
  emit_moves(std::move(moves), /*blended=*/false);
  moves.clear();

  const uint32_t loop_index = static_cast<uint32_t>(code_->loops.size());
  code_->loops.emplace_back();
  const uint32_t frame = depth_++;
  code_->frame_count = std::max(code_->frame_count, depth_);
  emit(while_handler(), {.count = frame});
  code_->loops[loop_index].body = next_index();

  const uint32_t outer = control_;
  control_ = static_cast<uint32_t>(code_->controls.size());
  code_->controls.push_back({ControlKind::kWhile, frame, place(op.loc), outer});
  registers_.begin_loop(next_index());
  lower_region(op.regions[0]);
  if (!status_.ok()) return;
  const ValueId condition = kernel_.op(kernel_.terminator(op.regions[0])).values().front();
  enter(id);
  require_defined(condition, DefinedUse::kWhile);
  emit(while_test_handler(), {.a = reg(condition), .count = frame, .aux = loop_index});
  lower_region(op.regions[1]);
  if (!status_.ok()) return;
  const Op& yield = kernel_.op(kernel_.terminator(op.regions[1]));
  enter(kernel_.terminator(op.regions[1]));
  for (size_t i = 0; i < op.results.size(); ++i) {
    append_moves(test.args[i], bound_[test.args[i]], yield.operands[i], &moves);
  }
  emit_moves(std::move(moves), /*blended=*/true);
  enter(id);
  const uint32_t last = emit(while_next_handler(), {.count = frame, .aux = loop_index});
  registers_.end_loop(last);
  control_ = outer;
  --depth_;
  Loop& loop = code_->loops[loop_index];
  loop.exit = next_index();
  loop.length = loop.exit - loop.body;
  loop.condition = static_cast<uint32_t>(code_->conditions.size());
  code_->conditions.push_back(describe_condition(op));
}

void Lowering::lower_if(const Op& op) {
  const OpId id = current_;
  require_defined(op.condition(), DefinedUse::kIf);
  const uint32_t frame = depth_++;
  code_->frame_count = std::max(code_->frame_count, depth_);
  const uint32_t branch = emit(if_handler(), {.a = reg(op.condition()), .count = frame});
  const uint32_t outer = control_;

  // The first branch's results are written whole, the second's only in its own lanes.
  const auto lower_branch = [&](size_t which) {
    control_ = static_cast<uint32_t>(code_->controls.size());
    code_->controls.push_back(
        {which == 0 ? ControlKind::kThen : ControlKind::kElse, frame, place(op.loc), outer});
    lower_region(op.regions[which]);
    if (!status_.ok()) return;
    const Op& yield = kernel_.op(kernel_.terminator(op.regions[which]));
    enter(kernel_.terminator(op.regions[which]));
    std::vector<Move> moves;
    for (size_t i = 0; i < op.results.size(); ++i) {
      if (which == 0) bound_.at(op.results[i]) = fresh(op.results[i], yield.operands[i]);
      append_moves(op.results[i], bound_[op.results[i]], yield.operands[i], &moves);
    }
    emit_moves(std::move(moves), /*blended=*/which != 0);
    enter(id);
  };

  lower_branch(0);
  const Region& second = kernel_.region(op.regions[1]);
  const bool has_else = !op.results.empty() || second.first != second.last;
  if (has_else && status_.ok()) {
    const uint32_t leave = emit(else_handler(), {.count = frame});
    code_->instrs[branch].aux = next_index();
    lower_branch(1);
    code_->instrs[leave].aux = next_index();
  }
  control_ = outer;
  emit(end_if_handler(), {.count = frame});
  if (!has_else) code_->instrs[branch].aux = next_index();
  --depth_;
}

}  // namespace heddle::ir::interp
