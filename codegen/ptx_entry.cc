// The entry block: parameters, coordinates, and what else every thread computes once.
#include <algorithm>
#include <bit>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "heddle/codegen/ptx_emitter.h"
#include "heddle/ir/check.h"

namespace heddle::codegen {
namespace {

using ir::SlotKind;

// The coordinate's special register, by Entry.
constexpr absl::string_view kSpecial[] = {
    "%tid.x",  "%tid.y",  "%tid.z",  "%ctaid.x",  "%ctaid.y",  "%ctaid.z",
    "%ntid.x", "%ntid.y", "%ntid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z",
};

}  // namespace

Operand Emitter::entry(Entry what) {
  std::optional<Operand>& value = entry_values_[static_cast<size_t>(what)];
  if (!value) {
    PtxText* const body = out_;
    out_ = &entry_text_;
    const Operand computed = compute_entry(what);
    out_ = body;
    value = computed;
  }
  return *value;
}

Operand Emitter::special(absl::string_view name) {
  const Operand d = fresh(RegClass::kB32);
  out_->instruction("mov.u32 ", d, ", ", name);
  return d;
}

Operand Emitter::coordinate(Entry first, int64_t axis) {
  return entry(static_cast<Entry>(static_cast<int64_t>(first) + axis));
}

Operand Emitter::extent_of_block(int64_t axis) {
  if (kernel_.has_dynamic_block()) return coordinate(Entry::kNtidX, axis);
  const int64_t extents[] = {kernel_.block.x, kernel_.block.y, kernel_.block.z};
  return Operand::b32(static_cast<uint32_t>(extents[axis]));
}

Operand Emitter::compute_entry(Entry what) {
  const bool is_line = !kernel_.has_dynamic_block() && kernel_.block.y * kernel_.block.z == 1;
  switch (what) {
    case Entry::kTidX:
    case Entry::kTidY:
    case Entry::kTidZ:
    case Entry::kCtaX:
    case Entry::kCtaY:
    case Entry::kCtaZ:
    case Entry::kNtidX:
    case Entry::kNtidY:
    case Entry::kNtidZ:
    case Entry::kNctaX:
    case Entry::kNctaY:
    case Entry::kNctaZ:
      return special(kSpecial[static_cast<size_t>(what)]);
    case Entry::kLinearThread: {
      const Operand x = entry(Entry::kTidX);
      if (is_line) return x;
      const Operand row = fresh(RegClass::kB32);
      out_->instruction("mad.lo.u32 ", row, ", ", entry(Entry::kTidZ), ", ", extent_of_block(1),
                        ", ", entry(Entry::kTidY));
      const Operand d = fresh(RegClass::kB32);
      out_->instruction("mad.lo.u32 ", d, ", ", row, ", ", extent_of_block(0), ", ", x);
      return d;
    }
    case Entry::kLane: {
      // %laneid is the same number, but %tid.x is there already and ptxas knows its range. Where
      // the number in the block takes arithmetic, %laneid is cheaper.
      if (!is_line) return special("%laneid");
      const Operand d = fresh(RegClass::kB32);
      out_->instruction("and.b32 ", d, ", ", entry(Entry::kTidX), ", 31");
      return d;
    }
    case Entry::kWarp: {
      const Operand own = fresh(RegClass::kB32);
      out_->instruction("shr.u32 ", own, ", ", entry(Entry::kLinearThread), ", 5");
      const Operand d = fresh(RegClass::kB32);
      out_->instruction("shfl.sync.idx.b32 ", d, ", ", own, ", 0, 31, ", entry(Entry::kAllLanes));
      return d;
    }
    case Entry::kAllLanes: {
      // A block's last warp may be shorter: lanes that are not there may not be named.
      const int64_t threads = kernel_.block.count();
      if (!kernel_.has_dynamic_block() && threads % 32 == 0) return Operand::b32(0xFFFFFFFF);
      if (!kernel_.has_dynamic_block() && threads < 32) return Operand::b32((1u << threads) - 1);
      const Operand first = fresh(RegClass::kB32);
      out_->instruction("and.b32 ", first, ", ", entry(Entry::kLinearThread), ", 0xFFFFFFE0");
      Operand total = Operand::b32(static_cast<uint32_t>(threads));
      if (kernel_.has_dynamic_block()) {
        const Operand plane = fresh(RegClass::kB32);
        out_->instruction("mul.lo.u32 ", plane, ", ", extent_of_block(0), ", ", extent_of_block(1));
        total = fresh(RegClass::kB32);
        out_->instruction("mul.lo.u32 ", total, ", ", plane, ", ", extent_of_block(2));
      }
      // 2^left - 1, where shl makes 0 of a `left` of 32 or more.
      const Operand left = fresh(RegClass::kB32);
      out_->instruction("sub.u32 ", left, ", ", total, ", ", first);
      const Operand power = fresh(RegClass::kB32);
      out_->instruction("shl.b32 ", power, ", 1, ", left);
      const Operand d = fresh(RegClass::kB32);
      out_->instruction("sub.u32 ", d, ", ", power, ", 1");
      return d;
    }
    case Entry::kArena: {
      uses_arena_ = true;
      const Operand d = fresh(RegClass::kB32);
      out_->instruction("mov.u32 ", d, ", heddle_shared");
      return d;
    }
    case Entry::kArenaField:
      return address_field(entry(Entry::kArena));
    case Entry::kLocals: {
      const Operand d = fresh(RegClass::kB64);
      out_->instruction("mov.u64 ", d, ", heddle_local");
      return d;
    }
  }
  check_failed(__FILE__, __LINE__, "what", "unknown entry value");
}

std::string Emitter::param_name(size_t slot) const { return absl::StrCat(name_, "_param_", slot); }

Operand Emitter::param_slot(SlotKind kind, int param, int dim, Scalar as) {
  const ir::ParamSlot* const slot = params_.find(kind, param, dim);
  HEDDLE_CHECK(slot != nullptr, "the parameter block lacks a value that the kernel reads");
  return load_slot(static_cast<int>(slot - params_.slots.data()), as);
}

Operand Emitter::launch_slot(OpId at_launch) {
  const auto& slots = params_.at_launch;
  const auto slot = std::find_if(slots.begin(), slots.end(), [&](const ir::LaunchSlot& candidate) {
    return absl::c_linear_search(candidate.ops, at_launch);
  });
  HEDDLE_CHECK(slot != slots.end(), "the parameter block lacks a value of the launch");
  return load_slot(static_cast<int>(params_.slots.size()) + static_cast<int>(slot - slots.begin()),
                   type(kernel_.op(at_launch).result()).scalar);
}

Operand Emitter::load_slot(int index, Scalar as) {
  // A 64-bit slot may be read as i32 too: the low half, which comes first.
  const RegClass reg_class = class_of(as);
  const auto [it, inserted] =
      slot_values_.try_emplace(index * kRegClassCount + static_cast<int>(reg_class));
  if (!inserted) return it->second;
  PtxText* const body = out_;
  out_ = &entry_text_;
  const std::string name = param_name(static_cast<size_t>(index));
  Operand d = fresh(as == Scalar::kBool ? RegClass::kB16 : reg_class);
  if (as == Scalar::kBool) {
    out_->instruction("ld.param.u8 ", d, ", [", name, "]");
    const Operand byte = d;
    d = fresh(RegClass::kPred);
    out_->instruction("setp.ne.b16 ", d, ", ", byte, ", 0");
  } else {
    // A byte goes into a wider register.
    const absl::string_view width = bytes_of(as) == 1 ? "u8" : info(reg_class).type;
    out_->instruction("ld.param.", width, ' ', d, ", [", name, "]");
  }
  out_ = body;
  it->second = d;
  return d;
}

Operand Emitter::address_of_param(int param) {
  std::optional<Operand>& address = param_addresses_[static_cast<size_t>(param)];
  if (!address) {
    const Operand generic = param_slot(SlotKind::kAddress, param, 0, Scalar::kI64);
    const Operand d = fresh(RegClass::kB64);
    entry_text_.instruction("cvta.to.global.u64 ", d, ", ", generic);
    address = d;
  }
  return *address;
}

OptionalOperand<Operand> Emitter::policy_of(const Op& op) {
  const auto evict = op.attr(ir::AttrKey::kL2Evict);
  if (!evict) return {};
  use(ir::Feature::kL2Policies);
  const int64_t percent = op.attr_or(ir::AttrKey::kPercent, 100);
  const auto [it, inserted] = policies_.try_emplace(*evict * 128 + percent);
  if (inserted) {
    it->second = fresh(RegClass::kB64);
    const auto fraction = std::bit_cast<uint32_t>(static_cast<float>(percent) / 100.0f);
    entry_text_.instruction("createpolicy.fractional.L2::evict_", ir::kL2EvictNames[*evict],
                            ".b64 ", it->second, ", ",
                            as(Spelling::kFloat, Operand::b32(fraction)));
  }
  return {it->second};
}

void Emitter::load_params() {
  for (size_t i = 0; i < kernel_.params().size(); ++i) {
    const ValueId value = kernel_.params()[i].value;
    if (!plan_.used(value)) continue;
    if (type(value).is_view()) {
      add_view(value).param = static_cast<int>(i);
    } else {
      elements(value)[0] =
          param_slot(SlotKind::kScalar, static_cast<int>(i), 0, type(value).scalar);
    }
  }
}

Operand Emitter::mask(const Op& op) {
  return valid(op.mask()) ? elements(op.mask())[0] : entry(Entry::kAllLanes);
}

}  // namespace heddle::codegen
