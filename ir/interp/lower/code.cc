// The code as it grows: instructions, registers and the tables beside them; and, at the end, the place of
// each register in a warp's arena.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "heddle/ir/diagnostic.h"
#include "heddle/ir/interp/lower/lowering.h"

namespace heddle::ir::interp {
namespace {

// Registers of one warp beyond this are a kernel that nobody wrote.
constexpr uint64_t kMostRegisterBytes = uint64_t{1} << 30;

}  // namespace

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
  status_ = UnimplementedError(to_string(diagnostic));
}

StatusOr<Program> Lowering::finish() {
  const uint64_t bytes = registers_.allocate();
  if (bytes > kMostRegisterBytes) {
    return ResourceExhaustedError(absl::StrCat(
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
  for (BoxCopy& copy : code_->boxes) {
    place_operand(&copy.address);
    place_operand(&copy.ranks);
    for (size_t d = 0; d < static_cast<size_t>(copy.shape.rank); ++d) {
      for (auto* list : {&copy.extents, &copy.strides, &copy.coordinates}) {
        place_operand(&(*list)[d]);
      }
    }
    for (int i = 0; copy.shape.im2col && i < copy.shape.image_rank(); ++i) {
      place_operand(&copy.offsets[static_cast<size_t>(i)]);
    }
  }
  for (MapReplacement& map : code_->map_replacements) {
    place_operand(&map.address);
    for (size_t d = 0; d < static_cast<size_t>(map.rank); ++d) {
      place_operand(&map.extents[d]);
      if (d > 0) place_operand(&map.strides[d]);
    }
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

}  // namespace heddle::ir::interp
