// What the threads of a block or a warp do together, and assertions.
#include "absl/strings/str_cat.h"
#include "heddle/codegen/ptx_emitter.h"
#include "heddle/ir/check.h"

namespace heddle::codegen {

using ir::AttrKey;
using ir::Opcode;

void Emitter::emit_warp_sync(const Op& op) { out_->instruction("bar.warp.sync ", mask(op)); }

void Emitter::emit_vote(const Op& op) {
  const absl::string_view mode = op.opcode == Opcode::kVoteAny   ? "any"
                                 : op.opcode == Opcode::kVoteAll ? "all"
                                                                 : "uni";
  const Operand predicate = in_register(elements(op.value())[0]);
  const Operand lanes = mask(op);
  out_->instruction("vote.sync.", mode, ".pred ", define(op.result())[0], ", ", predicate, ", ",
                    lanes);
}

void Emitter::emit_ballot(const Op& op) {
  const Operand predicate = in_register(elements(op.value())[0]);
  const Operand lanes = mask(op);
  out_->instruction("vote.sync.ballot.b32 ", define(op.result())[0], ", ", predicate, ", ", lanes);
}

void Emitter::emit_match(const Op& op) {
  const Operand value = in_register(elements(op.value())[0]);
  const Operand lanes = mask(op);
  const bool any = op.opcode == Opcode::kMatchAny;
  out_->instruction("match.", any ? "any" : "all", ".sync.", info(value.reg_class).type, ' ',
                    define(op.result())[0], ", ", value, ", ", lanes);
}

void Emitter::emit_redux(const Op& op) {
  const auto kind = static_cast<ir::AtomicOp>(*op.attr(AttrKey::kOp));
  const bool bitwise = kind >= ir::AtomicOp::kAnd;
  const TypeSpelling& spelling = spelling_of(type(op.result()).scalar);
  const Operand value = in_register(elements(op.value())[0]);
  const Operand lanes = mask(op);
  out_->instruction("redux.sync.", ir::kAtomicOpNames[static_cast<size_t>(kind)], '.',
                    bitwise ? spelling.bits : spelling.name, ' ', define(op.result())[0], ", ",
                    value, ", ", lanes);
}

void Emitter::emit_elect(const Op& op) {
  const Operand lanes = mask(op);
  out_->instruction("elect.sync _|", define(op.result())[0], ", ", lanes);
}

// A lane's part of each matrix is one register, however many elements that holds.
void Emitter::emit_matrices(OpId id, const Op& op) {
  const bool store = op.opcode == Opcode::kStMatrix;
  const auto count = static_cast<int>(*op.attr(AttrKey::kCount));
  if (valid(op.check()) && options_.device_checks) {
    // Lanes that give no row may be anywhere.
    Operand inside = elements(op.check())[0];
    if (count < 4) {
      const Operand gives_none = fresh(RegClass::kPred), either = fresh(RegClass::kPred);
      out_->instruction("setp.ge.s32 ", gives_none, ", ", entry(Entry::kLane), ", ", 8 * count);
      out_->instruction("or.pred ", either, ", ", in_register(inside), ", ", gives_none);
      inside = either;
    }
    fail_outside(id, op.view(), inside);
  }
  const Address at = address(id, op.view());
  absl::InlinedVector<Operand, 4> parts;
  const Operand* const fragment = store ? elements(op.value()) : define(op.result());
  for (int i = 0; i < count; ++i) {
    parts.push_back(store ? in_register(fragment[i]) : fragment[i]);
  }
  const std::string shape =
      absl::StrCat(".sync.aligned.m8n8.x", count,
                   op.attr_or(AttrKey::kTranspose, 0) != 0 ? ".trans" : "", ".shared.b16 ");
  // A vector, even of one.
  const absl::string_view open = count == 1 ? "{" : "", close = count == 1 ? "}" : "";
  const Vector registers = {parts.data(), count};
  if (store) {
    out_->instruction("stmatrix", shape, at, ", ", open, registers, close);
  } else {
    out_->instruction("ldmatrix", shape, open, registers, close, ", ", at);
  }
}

// --- Shuffles -------------------------------------------------------------------------------

// Whether the lane that a shuffle asks for is one that PTX, which looks at its lowest five bits
// alone, takes as it is meant: true or false where that is known beforehand.
std::optional<bool> Emitter::source_lane_in_range(const Op& op) {
  const auto constant = kernel_.constant_int(op.lane());
  const ir::IntRange range =
      constant ? ir::IntRange{*constant, *constant} : analyses_.get<ir::Ints>().range(op.lane());
  const int64_t width = op.attr_or(AttrKey::kWidth, 32);
  // Beyond 31 lanes up or down is nobody. An index or an xor has to stay in the segment: PTX wraps
  // the one and lets the other into the segments before.
  const bool by_distance = op.opcode == Opcode::kShflUp || op.opcode == Opcode::kShflDown;
  const int64_t last = by_distance ? 31 : width - 1;
  if (range.min >= 0 && range.max <= last) return true;
  if (range.max < 0 || range.min > last) return false;
  return std::nullopt;
}

void Emitter::emit_shuffle(const Op& op) {
  const ValueId source = op.value();
  const RegLayout layout = layout_of(type(source));
  const Operand* const a = elements(source);
  const std::optional<bool> reached = source_lane_in_range(op);
  Operand* const d = define(op.result());
  if (reached == false) {
    for (int i = 0; i < layout.count; ++i) move(d[i], a[i]);
    return;
  }
  const Operand lane = elements(op.lane())[0];
  const Operand lanes = mask(op);
  std::optional<Operand> in_reach;
  if (!reached) {
    const bool by_distance = op.opcode == Opcode::kShflUp || op.opcode == Opcode::kShflDown;
    const int64_t width = by_distance ? 32 : op.attr_or(AttrKey::kWidth, 32);
    in_reach = fresh(RegClass::kPred);
    out_->instruction("setp.lt.u32 ", *in_reach, ", ", lane, ", ", width);
  }
  const Lanes from = {lane, lanes, in_reach};
  for (int i = 0; i < layout.count; ++i) {
    const Operand own = in_register(a[i]);
    switch (layout.reg_class) {
      case RegClass::kB8:  // of no value
      case RegClass::kB32:
        shuffle_word(op, own, from, d[i]);
        break;
      case RegClass::kPred: {
        const Operand word = fresh(RegClass::kB32);
        const Operand other = fresh(RegClass::kB32);
        out_->instruction("selp.b32 ", word, ", 1, 0, ", own);
        shuffle_word(op, word, from, other);
        out_->instruction("setp.ne.b32 ", d[i], ", ", other, ", 0");
        break;
      }
      case RegClass::kB16: {
        const Operand other = fresh(RegClass::kB32);
        shuffle_word(op, packed(own, own), from, other);
        const std::array<Operand, 2> halves = {d[i], fresh(RegClass::kB16)};
        out_->instruction("mov.b32 ", Vector{halves.data(), 2}, ", ", other);
        break;
      }
      case RegClass::kB64: {
        const std::array<Operand, 2> words = {fresh(RegClass::kB32), fresh(RegClass::kB32)};
        const std::array<Operand, 2> others = {fresh(RegClass::kB32), fresh(RegClass::kB32)};
        out_->instruction("mov.b64 ", Vector{words.data(), 2}, ", ", own);
        for (size_t half = 0; half < 2; ++half) shuffle_word(op, words[half], from, others[half]);
        out_->instruction("mov.b64 ", d[i], ", ", Vector{others.data(), 2});
        break;
      }
    }
  }
}

void Emitter::shuffle_word(const Op& op, const Operand& source, const Lanes& from,
                           const Operand& d) {
  const bool up = op.opcode == Opcode::kShflUp;
  const absl::string_view mode = up                               ? "up"
                                 : op.opcode == Opcode::kShflDown ? "down"
                                 : op.opcode == Opcode::kShflXor  ? "bfly"
                                                                  : "idx";
  // Bits 8 to 12 pick the segment's number out of a lane's; the rest is where lanes end.
  const int64_t clamp = (32 - op.attr_or(AttrKey::kWidth, 32)) << 8 | (up ? 0 : 31);
  // d may be the source's register.
  const Operand other = from.in_reach ? fresh(RegClass::kB32) : d;
  out_->instruction("shfl.sync.", mode, ".b32 ", other, ", ", source, ", ", from.lane, ", ", clamp,
                    ", ", from.mask);
  if (from.in_reach) {
    out_->instruction("selp.b32 ", d, ", ", other, ", ", source, ", ", *from.in_reach);
  }
}

// --- Text -----------------------------------------------------------------------------------

// The name of a zero-terminated string in global memory.
std::string Emitter::global_string(absl::string_view text) {
  const auto known = std::find(strings_.begin(), strings_.end(), text);
  const auto index = known - strings_.begin();
  if (known == strings_.end()) strings_.emplace_back(text);
  return absl::StrCat(name_, "_str_", index);
}

void Emitter::emit_assert(OpId id, const Op& op) {
  const auto message = static_cast<ir::StringId>(*op.attr(AttrKey::kMessage));
  fail_unless(id, elements(op.condition())[0], kernel_.text(message));
}

// The driver's vprintf takes the values as C lays them out, each at a multiple of its size.
void Emitter::emit_printf(const Op& op) {
  const auto format = static_cast<ir::StringId>(*op.attr(AttrKey::kMessage));
  const Operand text = fresh(RegClass::kB64);
  out_->instruction("cvta.global.u64 ", text, ", ", global_string(kernel_.text(format)));
  int bytes = 0;
  for (const ValueId operand : op.operands) {
    const RegClass reg_class = layout_of(type(operand)).reg_class;
    const int size = reg_class == RegClass::kB64 ? 8 : 4;
    bytes = (bytes + size - 1) / size * size;
    out_->instruction("st.local.", info(reg_class).type, " [heddle_printed+", bytes, "], ",
                      in_register(elements(operand)[0]));
    bytes += size;
  }
  print_bytes_ = std::max({print_bytes_, bytes, 8});
  const Operand values = fresh(RegClass::kB64);
  out_->instruction("mov.u64 ", values, ", heddle_printed");
  const Operand generic = fresh(RegClass::kB64);
  out_->instruction("cvta.local.u64 ", generic, ", ", values);
  out_->line("\t{");
  out_->instruction(".param .b64 format");
  out_->instruction(".param .b64 values");
  out_->instruction(".param .b32 status");
  out_->instruction("st.param.b64 [format], ", text);
  out_->instruction("st.param.b64 [values], ", generic);
  out_->instruction("call.uni (status), vprintf, (format, values)");
  out_->line("\t}");
}

// The driver's __assertfail prints message, place, block and thread, and ends the kernel.
void Emitter::fail_unless(OpId id, const Operand& condition, absl::string_view message) {
  uses_assert_ = true;
  const ir::Loc loc = kernel_.loc(id);
  const Label holds = new_label();
  branch(in_register(condition), true, holds, false);
  const std::array<std::string, 3> texts = {
      global_string(message), global_string(loc.file.empty() ? "unknown file" : loc.file),
      global_string(kernel_.name())};
  std::array<Operand, 3> addresses;
  for (size_t i = 0; i < texts.size(); ++i) {
    addresses[i] = fresh(RegClass::kB64);
    out_->instruction("cvta.global.u64 ", addresses[i], ", ", texts[i]);
  }
  out_->line("\t{");
  out_->instruction(".param .b64 message");
  out_->instruction(".param .b64 file");
  out_->instruction(".param .b32 line");
  out_->instruction(".param .b64 function");
  out_->instruction(".param .b64 char_bytes");
  out_->instruction("st.param.b64 [message], ", addresses[0]);
  out_->instruction("st.param.b64 [file], ", addresses[1]);
  out_->instruction("st.param.b32 [line], ", loc.line);
  out_->instruction("st.param.b64 [function], ", addresses[2]);
  out_->instruction("st.param.b64 [char_bytes], 1");
  out_->instruction("call.uni __assertfail, (message, file, line, function, char_bytes)");
  out_->line("\t}");
  put_label(holds);
}

}  // namespace heddle::codegen
