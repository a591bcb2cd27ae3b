// Tensor cores: mma, matrix descriptors and wgmma.
#include "absl/strings/str_cat.h"
#include "heddle/codegen/ptx_emitter.h"
#include "heddle/ir/check.h"
#include "heddle/ir/mma_atom.h"

namespace heddle::codegen {

using ir::AttrKey;

namespace {

// Bytes of a swizzle row, by the descriptor's code for them.
constexpr int64_t kSwizzles[] = {0, 128, 64, 32};

// Descriptors count 16 bytes.
constexpr int64_t kFieldUnit = 16;

// The 14-bit field for an offset of a multiple of 16 bytes.
uint32_t offset_field(int64_t bytes) { return static_cast<uint32_t>(bytes >> 4) & 0x3FFF; }

// "mma.sync.aligned.m16n8k16": an atom as its instruction begins.
std::string shape_of(const ir::MmaProduct& product) {
  const ir::MmaAtom& atom = *product.atom;
  return absl::StrCat(info(atom.kind).ptx, ".m", atom.m, "n", product.n, "k", atom.k);
}

}  // namespace

// Of a descriptor: the address in 16 bytes. Bits from 18 on are the block's number in its cluster.
Operand Emitter::address_field(const Operand& address) {
  const Operand shifted = fresh(RegClass::kB32);
  out_->instruction("shr.u32 ", shifted, ", ", address, ", 4");
  const Operand d = fresh(RegClass::kB32);
  out_->instruction("and.b32 ", d, ", ", shifted, ", 0x3FFF");
  return d;
}

// The same, computed once in a scope.
Operand Emitter::field_of(const Operand& address) {
  const ScopedCache::Key key = {uint64_t{1} << 62 | address.payload, 0};
  if (const ScopedCache::Operands* known = cache_.find(key)) return (*known)[0];
  const Operand d = address_field(address);
  cache_.add(key, {d, d});
  return d;
}

// field + term, of a term that counts 16 bytes.
Operand Emitter::advanced(const Operand& field, const SplitOffset::Term& term) {
  const Operand& value = elements(term.value)[0];
  const Operand d = fresh(RegClass::kB32);
  if (term.shift == 0) {
    out_->instruction("mad.lo.s32 ", d, ", ", as(Spelling::kSigned, value), ", ", term.factor, ", ",
                      field);
    return d;
  }
  Operand shifted = fresh(value.reg_class);
  const bool is_narrow = type(term.value).scalar == Scalar::kI32;
  out_->instruction(is_narrow ? "shr.s32 " : "shr.s64 ", shifted, ", ", value, ", ", term.shift);
  if (!is_narrow) shifted = converted({shifted, Scalar::kI64}, Scalar::kI32);
  out_->instruction("add.s32 ", d, ", ", field, ", ", shifted);
  return d;
}

// Bits 0-13 the address, 16-29 the leading and 32-45 the stride offset, all in 16 bytes; 62-63 the
// swizzle. Only the address is not constant, so only the low word is computed: the field of the
// view's start, which all descriptors share, plus the offset's terms and one constant. A tile lies
// in the block's shared memory, which ends below 2^18 bytes, so the sum is a number of 14 bits:
// nothing carries into the field above, whatever the parts are on the way. An offset that is not
// known to be a multiple of 16 bytes is added to the address first.
void Emitter::emit_smem_desc(OpId id, const Op& op) {
  Operand* const d = define(op.result());
  const int64_t swizzle_bytes = *op.attr(AttrKey::kSwizzle);
  const auto swizzle = std::find(std::begin(kSwizzles), std::end(kSwizzles), swizzle_bytes);
  if (swizzle == std::end(kSwizzles)) {
    return error(id, absl::StrCat("there is no swizzle of ", swizzle_bytes, " bytes"),
                 "use 0, 32, 64 or 128");
  }
  const View& view = view_of(op.view());
  const SplitOffset& offset = plan_.offset(id);
  const int size = bytes_of(type(op.view()).scalar);
  const int64_t bytes = view.bytes + offset.addend * size;
  const bool in_fields =
      std::all_of(offset.terms.begin(), offset.terms.end(),
                  [](const SplitOffset::Term& term) { return term.factor != 0; });
  // What is added before the address is cut to its field: all of it, or what the view's start needs
  // to be a multiple of 16 bytes.
  Operand start = in_fields ? base_of(view) : moved_base(base_of(view), offset, size);
  const int64_t before = !in_fields ? bytes : view.bytes % kFieldUnit == 0 ? 0 : view.bytes;
  if (before != 0) {
    const Operand sum = fresh(RegClass::kB32);
    out_->instruction("add.s32 ", sum, ", ", start, ", ", before);
    start = sum;
  }
  Operand low = start == entry(Entry::kArena) ? entry(Entry::kArenaField) : field_of(start);
  if (in_fields) low = moved_base(low, offset, size);
  const int64_t behind =
      (bytes - before) / kFieldUnit + (int64_t{offset_field(*op.attr(AttrKey::kLeading))} << 16);
  if (behind != 0) {
    const Operand sum = fresh(RegClass::kB32);
    out_->instruction("add.s32 ", sum, ", ", low, ", ", behind);
    low = sum;
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

// An operand's registers, with braces around a single one too.
Vector Emitter::braced_registers(ValueId value) {
  return {elements(value), layout_of(type(value)).count, true};
}

void Emitter::emit_wgmma(OpId id, const Op& op) {
  const ir::MmaProduct product = product_of(kernel_, op);
  const ir::MmaTypes& types = product.types;
  const ir::MmaAtom& atom = *product.atom;
  use(atom.feature);
  if (!keeps_registers(id, op.accumulator(), op.result())) return;
  // Orders what was done to the registers before against the tensor cores, once a commit group.
  if (!wgmma_fenced_) out_->instruction("wgmma.fence.sync.aligned");
  wgmma_fenced_ = true;
  Operand scale = Operand::constant(RegClass::kPred, 1);
  if (valid(op.scale())) scale = elements(op.scale())[0];
  const bool in_registers = type(op.a()).is_pending();
  const auto flag = [&op](AttrKey key) { return op.attr_or(key, 0) != 0; };
  std::string immediates;
  if (!is_integer(types.accumulator)) {
    absl::StrAppend(&immediates, flag(AttrKey::kNegateA) ? ", -1" : ", 1",
                    flag(AttrKey::kNegateB) ? ", -1" : ", 1");
  }
  if (atom.majors == ir::MmaMajors::kEitherMajor) {
    if (!in_registers) absl::StrAppend(&immediates, flag(AttrKey::kTransposeA) ? ", 1" : ", 0");
    absl::StrAppend(&immediates, flag(AttrKey::kTransposeB) ? ", 1" : ", 0");
  }
  const Vector a = in_registers ? braced_registers(op.a()) : Vector{elements(op.a()), 1};
  out_->instruction(shape_of(product), '.', spelling_of(types.accumulator).name, '.',
                    spelling_of(types.a).name, '.', spelling_of(types.b).name, ' ',
                    braced_registers(op.result()), ", ", a, ", ", elements(op.b())[0], ", ", scale,
                    immediates);
}

void Emitter::emit_mma(const Op& op) {
  const ValueId operands[] = {op.a(), op.b(), op.accumulator()};
  const ir::MmaProduct product = product_of(kernel_, op);
  const ir::MmaTypes& types = product.types;
  use(product.atom->feature);
  absl::InlinedVector<Operand, 4> registers[3];
  Vector vectors[3];
  for (int i = 0; i < 3; ++i) {
    const Operand* const parts = elements(operands[i]);
    for (int r = 0; r < layout_of(type(operands[i])).count; ++r) {
      registers[i].push_back(in_register(parts[r]));
    }
    vectors[i] = {registers[i].data(), static_cast<int>(registers[i].size()), true};
  }
  define(op.result());
  const absl::string_view accumulator = spelling_of(types.accumulator).name;
  out_->instruction(shape_of(product), ".row.col.", accumulator, '.', spelling_of(types.a).name,
                    '.', spelling_of(types.b).name, '.', accumulator, ' ',
                    braced_registers(op.result()), ", ", vectors[0], ", ", vectors[1], ", ",
                    vectors[2]);
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
