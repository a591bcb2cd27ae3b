// Hopper's tensor cores: matrix descriptors and wgmma.
#include "absl/strings/str_cat.h"
#include "heddle/codegen/ptx_emitter.h"
#include "heddle/ir/check.h"

namespace heddle::codegen {

using ir::AttrKey;

namespace {

// Bytes of a swizzle row, by the descriptor's code for them.
constexpr int64_t kSwizzles[] = {0, 128, 64, 32};

// The 14-bit field for an offset of a multiple of 16 bytes.
uint32_t offset_field(int64_t bytes) { return static_cast<uint32_t>(bytes >> 4) & 0x3FFF; }

}  // namespace

// Bits 0-13 the address, 16-29 the leading and 32-45 the stride offset, all in 16 bytes; 62-63 the
// swizzle. Only the address is not constant, so only the low word is computed.
void Emitter::emit_smem_desc(OpId id, const Op& op) {
  Operand* const d = define(op.result());
  const int64_t swizzle_bytes = *op.attr(AttrKey::kSwizzle);
  const auto swizzle = std::find(std::begin(kSwizzles), std::end(kSwizzles), swizzle_bytes);
  if (swizzle == std::end(kSwizzles)) {
    return error(id, absl::StrCat("there is no swizzle of ", swizzle_bytes, " bytes"),
                 "use 0, 32, 64 or 128");
  }
  const Address at = address(id, op.view());
  Operand start;
  if (!at.base) {
    start = fresh(RegClass::kB32);
    out_->instruction("mov.u32 ", start, ", heddle_shared+", at.bytes);
  } else if (at.bytes != 0) {
    start = fresh(RegClass::kB32);
    out_->instruction("add.s32 ", start, ", ", *at.base, ", ", at.bytes);
  } else {
    start = *at.base;
  }
  const Operand shifted = fresh(RegClass::kB32);
  out_->instruction("shr.u32 ", shifted, ", ", start, ", 4");
  Operand low = fresh(RegClass::kB32);
  out_->instruction("and.b32 ", low, ", ", shifted, ", 0x3FFF");
  if (const uint32_t leading = offset_field(*op.attr(AttrKey::kLeading)); leading != 0) {
    const Operand with_leading = fresh(RegClass::kB32);
    out_->instruction("or.b32 ", with_leading, ", ", low, ", ", Operand::b32(leading << 16));
    low = with_leading;
  }
  const uint32_t stride = offset_field(*op.attr(AttrKey::kStride));
  const auto code = static_cast<uint32_t>(swizzle - std::begin(kSwizzles));
  const std::array<Operand, 2> words = {low, Operand::b32(stride | code << 30)};
  out_->instruction("mov.b64 ", d[0], ", ", Vector{words.data(), 2});
}

void Emitter::emit_wgmma_begin(const Op& op) {
  // The tensor cores have to see what was written to the registers last.
  wgmma_fenced_ = false;
  // Where the fragment is still needed, or is no registers yet but constants, it is copied.
  const ValueId source = op.fragment();
  Operand* const d = define(op.result());
  const Op* const def = kernel_.def(source);
  if (def != nullptr && def->opcode == ir::Opcode::kUndef) return;
  const Operand* const a = elements(source);
  for (int i = 0; i < layout_of(type(source)).count; ++i) {
    if (!(d[i] == a[i])) move(d[i], a[i]);
  }
}

// A pending accumulator and what an op makes of it have to be the same registers.
bool Emitter::keeps_registers(OpId id, ValueId before, ValueId after) {
  define(after);
  if (plan_.home(before) == plan_.home(after)) return true;
  error(id, "this accumulator would have to be moved while the tensor cores still write it",
        "use each result of wgmma once, in the next wgmma or wgmma.wait");
  return false;
}

void Emitter::emit_wgmma(OpId id, const Op& op) {
  const Type accumulator = type(op.result());
  const int n = 2 * accumulator.count;
  if (accumulator.scalar != Scalar::kF32 || n % 8 != 0 || n < 8 || n > 256) {
    return error(id,
                 absl::StrCat("wgmma has no shape for an accumulator of ", to_string(accumulator)),
                 "use an f32 fragment of 4, 8, 12, … 128 elements: m64nNk16 takes N / 2");
  }
  if (!keeps_registers(id, op.accumulator(), op.result())) return;
  // Orders what was done to the registers before against the tensor cores, once a commit group.
  if (!wgmma_fenced_) out_->instruction("wgmma.fence.sync.aligned");
  wgmma_fenced_ = true;
  Operand scale = Operand::constant(RegClass::kPred, 1);
  if (valid(op.scale())) scale = elements(op.scale())[0];
  const absl::string_view ab = spelling_of(type(op.a()).scalar).name;
  out_->instruction("wgmma.mma_async.sync.aligned.m64n", n, "k16.f32.", ab, '.', ab, ' ',
                    Vector{elements(op.result()), accumulator.count}, ", ", elements(op.a())[0],
                    ", ", elements(op.b())[0], ", ", scale, ", 1, 1, 0, 0");
}

void Emitter::emit_wgmma_commit() {
  out_->instruction("wgmma.commit_group.sync.aligned");
  wgmma_fenced_ = false;
}

void Emitter::emit_wgmma_wait(OpId id, const Op& op) {
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (!keeps_registers(id, op.operands[i], op.results[i])) return;
  }
  out_->instruction("wgmma.wait_group.sync.aligned ", *op.attr(AttrKey::kGroups));
}

}  // namespace heddle::codegen
