// Loads and stores, and the checks that guard them.
#include "absl/strings/str_cat.h"
#include "heddle/codegen/ptx_emitter.h"
#include "heddle/ir/analysis/views.h"
#include "heddle/ir/check.h"

namespace heddle::codegen {

using ir::AttrKey;
using ir::Opcode;
using ir::Space;

namespace {

bool is_volatile(const ir::Op& op) { return op.attr_or(AttrKey::kVolatile, 0) != 0; }

// In the order of ir::CacheHint.
constexpr absl::string_view kCacheHints[] = {
    ".cg", ".cs", ".lu", ".wt", ".L1::evict_first", ".L1::evict_last", ".L1::no_allocate"};

}  // namespace

absl::string_view Emitter::state_space(Type view) {
  switch (view.space) {
    case Space::kGlobal:
      return "global";
    case Space::kShared:
      return "shared";
    case Space::kSharedCluster:
      return "shared::cluster";
    case Space::kConst:
      return "const";
    case Space::kLocal:
      return "local";
    case Space::kNone:
    case Space::kParam:
      break;
  }
  return "";
}

std::string Emitter::cache_modifiers(const Op& op) {
  const auto hint = op.attr(AttrKey::kCache);
  const bool has_policy = op.attr(AttrKey::kL2Evict).has_value();
  if (hint || has_policy) use(ir::Feature::kL2Policies);
  return absl::StrCat(hint ? kCacheHints[*hint] : "", has_policy ? ".L2::cache_hint" : "");
}

int Emitter::widest_access(Type view) const {
  // The 32-byte accesses of sm_100 are for global memory alone.
  return view.space == Space::kGlobal ? target_.max_access_bytes : 16;
}

// Whether the access may go through the cache that nobody keeps coherent: what it reads is written
// by nobody while the kernel runs, not even by the grid before.
bool Emitter::may_use_read_only_path(const Op& op) {
  if (starts_early_) return false;
  const Type view = type(op.view());
  if (view.space != Space::kGlobal || !view.read_only || is_volatile(op)) return false;
  // That cache knows no last use.
  if (op.attr(AttrKey::kCache) == static_cast<int64_t>(ir::CacheHint::kLastUse)) return false;
  const int param = view_of(op.view()).param;
  if (param < 0 || !type(kernel_.params()[static_cast<size_t>(param)].value).read_only)
    return false;
  const ir::Aliasing& aliasing = analyses_.get<ir::Aliasing>();
  const int object = aliasing.object_of(op.view());
  return aliasing.is_never_written(object) && aliasing.no_overlap(object);
}

// Whether loads and stores reach the memory behind a view; an error where they do not.
bool Emitter::is_accessible(OpId id, const Op& op) {
  const Type view = type(op.view());
  if (!state_space(view).empty()) return true;
  error(id, absl::StrCat("PTX for accesses to ", name_of(view.space), " memory is not known"),
        "keep the data in global or shared memory");
  return false;
}

// Calls access(first register, count, ".v4.b32") for every instruction that a value of so many
// bytes in registers of that layout takes.
void Emitter::for_each_access(Type view, RegLayout layout, int bytes,
                              absl::FunctionRef<void(int, int, absl::string_view)> access) {
  // A few bytes in a register for more.
  if (layout.reg_class == RegClass::kB32 && bytes < 4)
    return access(0, 1, bytes == 1 ? ".u8" : ".u16");
  const int unit = layout.reg_class == RegClass::kB64   ? 8
                   : layout.reg_class == RegClass::kB32 ? 4
                                                        : 2;
  const int count = std::min(layout.count, widest_access(view) / unit);
  HEDDLE_CHECK((count & (count - 1)) == 0 && layout.count % count == 0,
               "a memory access must be a power of two in size");
  constexpr absl::string_view kVectors[] = {"", "", ".v2", "", ".v4", "", "", "", ".v8"};
  if (count * unit > 16) use(ir::Feature::kWideAccesses);
  const std::string suffix = absl::StrCat(kVectors[count], ".", info(layout.reg_class).type);
  for (int first = 0; first < layout.count; first += count) access(first, count, suffix);
}

void Emitter::emit_load(OpId id, const Op& op) {
  Operand* const d = define(op.result());
  if (!is_accessible(id, op)) return;
  check_bounds(id, op.view(), op.check());
  const Type view = type(op.view());
  const Type value = type(op.result());
  Address at = address(id, op.view());
  std::string mnemonic = is_volatile(op) ? "ld.volatile" : "ld";
  absl::StrAppend(&mnemonic, ".", state_space(view), may_use_read_only_path(op) ? ".nc" : "",
                  cache_modifiers(op));
  const OptionalOperand<Operand> policy = policy_of(op);
  if (value.scalar == Scalar::kBool) {
    return load_bools(mnemonic, view, at, d, value.count, policy);
  }
  const RegLayout layout = layout_of(value);
  for_each_access(view, layout, value.bytes(), [&](int first, int count, absl::string_view suffix) {
    const Vector registers = {d + first, count};
    out_->instruction(guard_, mnemonic, suffix, ' ', registers, ", ", at, policy);
    at.bytes += widest_access(view);
  });
}

void Emitter::emit_store(OpId id, const Op& op) {
  if (!is_accessible(id, op)) return;
  check_bounds(id, op.view(), op.check());
  const Type view = type(op.view());
  const Type value = type(op.value());
  Address at = address(id, op.view());
  std::string mnemonic = is_volatile(op) ? "st.volatile" : "st";
  absl::StrAppend(&mnemonic, ".", state_space(view), cache_modifiers(op));
  const OptionalOperand<Operand> policy = policy_of(op);
  if (value.scalar == Scalar::kBool) {
    return store_bools(mnemonic, view, at, op.value(), policy);
  }
  const RegLayout layout = layout_of(value);
  const Operand* const source = elements(op.value());
  for_each_access(view, layout, value.bytes(), [&](int first, int count, absl::string_view suffix) {
    const Vector registers = {source + first, count};
    out_->instruction(guard_, mnemonic, suffix, ' ', at, ", ", registers, policy);
    at.bytes += widest_access(view);
  });
}

// Bools are bytes in memory, 0 or 1: four or more are read and written as words.
void Emitter::load_bools(const std::string& mnemonic, Type view, Address at, Operand* d, int count,
                         const OptionalOperand<Operand>& policy) {
  if (count < 4) {
    const std::array<Operand, 2> bytes = {fresh(RegClass::kB16), fresh(RegClass::kB16)};
    out_->instruction(mnemonic, count == 2 ? ".v2" : "", ".u8 ", Vector{bytes.data(), count}, ", ",
                      at, policy);
    for (int i = 0; i < count; ++i) {
      out_->instruction("setp.ne.b16 ", d[i], ", ", bytes[static_cast<size_t>(i)], ", 0");
    }
    return;
  }
  absl::InlinedVector<Operand, 8> words(static_cast<size_t>(count / 4));
  for (Operand& word : words) word = fresh(RegClass::kB32);
  const RegLayout layout = {RegClass::kB32, count / 4};
  for_each_access(view, layout, count, [&](int first, int n, absl::string_view suffix) {
    out_->instruction(mnemonic, suffix, ' ', Vector{words.data() + first, n}, ", ", at, policy);
    at.bytes += widest_access(view);
  });
  for (int i = 0; i < count; ++i) {
    const Operand byte = fresh(RegClass::kB32);
    out_->instruction("and.b32 ", byte, ", ", words[static_cast<size_t>(i / 4)], ", ",
                      Operand::b32(0xFFu << 8 * (i % 4)));
    out_->instruction("setp.ne.b32 ", d[i], ", ", byte, ", 0");
  }
}

void Emitter::store_bools(const std::string& mnemonic, Type view, Address at, ValueId value,
                          const OptionalOperand<Operand>& policy) {
  const int count = type(value).count;
  const Operand* const bools = elements(value);
  // Element i of the bools as that bit of a register of the class.
  const auto bit = [&](int i, RegClass c, uint64_t one) {
    if (bools[i].is_constant) return Operand::constant(c, bools[i].payload * one);
    const Operand d = fresh(c);
    out_->instruction("selp.", info(c).type, ' ', d, ", ", Operand::constant(c, one), ", 0, ",
                      bools[i]);
    return d;
  };
  if (count < 4) {
    std::array<Operand, 2> bytes;
    for (int i = 0; i < count; ++i) bytes[static_cast<size_t>(i)] = bit(i, RegClass::kB16, 1);
    out_->instruction(mnemonic, count == 2 ? ".v2" : "", ".u8 ", at, ", ",
                      Vector{bytes.data(), count}, policy);
    return;
  }
  absl::InlinedVector<Operand, 8> words(static_cast<size_t>(count / 4));
  for (int w = 0; w < count / 4; ++w) {
    Operand word = bit(4 * w, RegClass::kB32, 1);
    for (int i = 1; i < 4; ++i) {
      const Operand next = bit(4 * w + i, RegClass::kB32, uint64_t{1} << 8 * i);
      const Operand both = fresh(RegClass::kB32);
      out_->instruction("or.b32 ", both, ", ", word, ", ", next);
      word = both;
    }
    words[static_cast<size_t>(w)] = word;
  }
  const RegLayout layout = {RegClass::kB32, count / 4};
  for_each_access(view, layout, count, [&](int first, int n, absl::string_view suffix) {
    out_->instruction(mnemonic, suffix, ' ', at, ", ", Vector{words.data() + first, n}, policy);
    at.bytes += widest_access(view);
  });
}

// --- Bounds checks on request ---------------------------------------------------------------

// Every coordinate c has 0 <= c and c <= extent - width, in 64 bits; those of the view first.
void Emitter::emit_bounds(const Op& op) {
  const ValueId view = op.view();
  Operand* const d = define(op.result());
  Operand inside = Operand::constant(RegClass::kPred, 1);
  const auto also = [&](absl::string_view comparison, const Operand& c, const Operand& limit) {
    const Operand holds = fresh(RegClass::kPred);
    out_->instruction("setp.", comparison, ".s64 ", holds, ", ", as(Spelling::kSigned, c), ", ",
                      as(Spelling::kSigned, limit));
    const Operand both = fresh(RegClass::kPred);
    out_->instruction("and.pred ", both, ", ", inside, ", ", holds);
    inside = both;
  };
  const bool unbounded = is_unbounded(kernel_, view);
  const auto in_64_bits = [&](ValueId value) {
    return converted({elements(value)[0], type(value).scalar}, Scalar::kI64);
  };
  const auto check = [&](const Operand& c, const Operand& end, int64_t width) {
    Operand limit = Operand::b64(end.payload - static_cast<uint64_t>(width));
    if (!end.is_constant) {
      limit = fresh(RegClass::kB64);
      out_->instruction("sub.s64 ", limit, ", ", end, ", ", width);
    }
    also("ge", c, Operand::b64(0));
    also("le", c, limit);
  };
  const absl::Span<const ValueId> coordinates = op.coordinates();
  const int rank = type(view).rank;
  const auto run_dim = static_cast<int>(op.attr_or(AttrKey::kDim, rank - 1));
  for (int dim = 0; dim < rank && !unbounded; ++dim) {
    check(in_64_bits(coordinates[static_cast<size_t>(dim)]),
          converted(extent(view, dim), Scalar::kI64),
          dim == run_dim ? op.attr_or(AttrKey::kWidth, 1) : 1);
  }
  for (auto i = static_cast<size_t>(rank); i + 1 < coordinates.size(); i += 2) {
    check(in_64_bits(coordinates[i]), in_64_bits(coordinates[i + 1]), 1);
  }
  move(d[0], inside);
}

void Emitter::check_bounds(OpId id, ValueId view, ValueId check) {
  if (valid(check) && options_.device_checks) fail_outside(id, view, elements(check)[0]);
}

void Emitter::fail_outside(OpId id, ValueId view, const Operand& inside) {
  const absl::string_view name = kernel_.text(kernel_.value(view).name);
  fail_unless(id, inside,
              absl::StrCat("index out of the bounds of ", name.empty() ? "a view" : name));
}

}  // namespace heddle::codegen
