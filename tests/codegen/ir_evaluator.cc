#include "codegen/ir_evaluator.h"

#include <array>
#include <cstring>

#include "gtest/gtest.h"
#include "heddle/ir/op_info.h"

namespace heddle::codegen {
namespace {

using ir::AttrKey;
using ir::Kernel;
using ir::Op;
using ir::Opcode;
using ir::OpId;
using ir::RegionId;
using ir::Scalar;
using ir::Type;
using ir::ValueId;

class Evaluator {
 public:
  using Elements = std::vector<uint64_t>;

  Evaluator(const Kernel& kernel, const EvaluatedThread& thread, std::vector<uint8_t>& memory)
      : kernel_(kernel), values_(kernel.value_count()), thread_(thread), memory_(memory) {
    for (const ir::Param& param : kernel.params()) {
      if (param.value != ir::ValueId::kNone && kernel.type(param.value).is_scalar()) {
        values_[ir::index_of(param.value)] = {thread.params.back()};
      }
    }
    run(kernel.body());
  }

 private:
  Elements& of(ValueId value) { return values_[ir::index_of(value)]; }
  Scalar scalar(ValueId value) const { return kernel_.type(value).scalar; }
  static int width(Scalar s) { return s == Scalar::kBool ? 1 : ir::info(s).bits; }
  static uint64_t cut(uint64_t v, Scalar s) {
    return width(s) == 64 ? v : v & ((uint64_t{1} << width(s)) - 1);
  }
  // Extended to 64 bits by its sign.
  static int64_t extended(uint64_t v, Scalar s) {
    if (!is_signed(s)) return static_cast<int64_t>(v);
    const int unused = 64 - width(s);
    return static_cast<int64_t>(v << unused) >> unused;
  }
  static bool less(uint64_t a, uint64_t b, Scalar s) {
    return is_signed(s) ? extended(a, s) < extended(b, s) : a < b;
  }

  void assign(absl::Span<const ValueId> to, absl::Span<const ValueId> from) {
    std::vector<Elements> copies;
    for (const ValueId value : from) copies.push_back(of(value));
    for (size_t i = 0; i < to.size(); ++i) of(to[i]) = copies[i];
  }

  void run(RegionId region) {
    for (const OpId id : kernel_.ops(region)) step(kernel_.op(id));
  }
  absl::Span<const ValueId> yielded(RegionId region) const {
    return kernel_.op(kernel_.terminator(region)).operands;
  }

  void step(const Op& op) {
    switch (op.opcode) {
      case Opcode::kYield:
        return;
      case Opcode::kFor:
        return run_for(op);
      case Opcode::kWhile:
        return run_while(op);
      case Opcode::kIf: {
        const RegionId region = op.regions[of(op.condition())[0] != 0 ? 0 : 1];
        run(region);
        return assign(op.results, yielded(region));
      }
      case Opcode::kLoad:
      case Opcode::kStore:
        return access(op);
      case Opcode::kPack: {
        Elements all;
        for (const ValueId v : op.operands) all.insert(all.end(), of(v).begin(), of(v).end());
        of(op.result()) = all;
        return;
      }
      case Opcode::kExtract:
      case Opcode::kSlice: {
        const auto first = of(op.a()).begin() + *op.attr(AttrKey::kIndex);
        of(op.result()) = Elements(first, first + kernel_.type(op.result()).count);
        return;
      }
      default:
        break;
    }
    const Type type = kernel_.type(op.result());
    Elements result;
    for (int i = 0; i < type.count; ++i) {
      std::array<uint64_t, 3> in{};
      for (size_t j = 0; j < op.operands.size(); ++j) {
        const Elements& from = of(op.operands[j]);
        in[j] = from[from.size() == 1 ? 0 : static_cast<size_t>(i)];
      }
      result.push_back(cut(compute(op, in), type.scalar));
    }
    of(op.result()) = result;
  }

  uint64_t compute(const Op& op, const std::array<uint64_t, 3>& in) const {
    const auto [a, b, c] = in;
    const bool has_a = !op.operands.empty() && op.opcode != Opcode::kSelect;
    const Scalar s = has_a ? scalar(op.a()) : Scalar::kI32;
    switch (op.opcode) {
      case Opcode::kConst:
        return static_cast<uint64_t>(*op.attr(AttrKey::kBits));
      case Opcode::kThreadIdx:
        return thread_.thread;
      case Opcode::kSplat:
      case Opcode::kBitcast:
      case Opcode::kAssumeUniform:
      case Opcode::kAssumeRange:
      case Opcode::kExpect:
        return a;
      case Opcode::kAdd:
        return a + b;
      case Opcode::kSub:
        return a - b;
      case Opcode::kMul:
        return a * b;
      case Opcode::kFma:
        return a * b + c;
      case Opcode::kNeg:
        return 0 - a;
      case Opcode::kAbs:
        return extended(a, s) < 0 && is_signed(s) ? 0 - a : a;
      case Opcode::kMin:
        return less(a, b, s) ? a : b;
      case Opcode::kMax:
        return less(a, b, s) ? b : a;
      case Opcode::kAnd:
        return a & b;
      case Opcode::kOr:
        return a | b;
      case Opcode::kXor:
        return a ^ b;
      case Opcode::kNot:
        return ~a;
      case Opcode::kShl:
        return b >= static_cast<uint64_t>(width(s)) ? 0 : a << b;
      case Opcode::kShr: {
        const auto count = std::min<uint64_t>(b, 63);
        if (is_signed(s)) return static_cast<uint64_t>(extended(a, s) >> count);
        return b >= static_cast<uint64_t>(width(s)) ? 0 : a >> b;
      }
      case Opcode::kEq:
        return a == b;
      case Opcode::kNe:
        return a != b;
      case Opcode::kLt:
        return less(a, b, s);
      case Opcode::kLe:
        return !less(b, a, s);
      case Opcode::kGt:
        return less(b, a, s);
      case Opcode::kGe:
        return !less(a, b, s);
      case Opcode::kSelect:
        return a != 0 ? b : c;
      case Opcode::kConvert: {
        const bool to_bool = scalar(op.result()) == Scalar::kBool;
        return to_bool ? a != 0 : static_cast<uint64_t>(extended(a, s));
      }
      default:
        ADD_FAILURE() << "the oracle does not know " << info(op).mnemonic;
        return 0;
    }
  }

  void run_for(const Op& op) {
    const auto& args = kernel_.region(op.regions[0]).args;
    const Scalar s = scalar(op.start());
    __extension__ typedef __int128 Wide;
    Wide i = extended(of(op.start())[0], s);
    const Wide stop = extended(of(op.stop())[0], s);
    const Wide step = extended(of(op.step())[0], s);
    const absl::Span<const ValueId> carried = absl::MakeConstSpan(args).subspan(1);
    assign(carried, op.inits());
    for (; step > 0 ? i < stop : i > stop; i += step) {
      of(args[0]) = {cut(static_cast<uint64_t>(i), s)};
      run(op.regions[0]);
      assign(carried, yielded(op.regions[0]));
    }
    assign(op.results, carried);
  }

  void run_while(const Op& op) {
    const auto& before = kernel_.region(op.regions[0]).args;
    assign(before, op.inits());
    for (;;) {
      run(op.regions[0]);
      if (of(yielded(op.regions[0])[0])[0] == 0) break;
      assign(kernel_.region(op.regions[1]).args, before);
      run(op.regions[1]);
      assign(before, yielded(op.regions[1]));
    }
    assign(op.results, before);
  }

  void access(const Op& op) {
    const bool is_load = op.opcode == Opcode::kLoad;
    const Type view = kernel_.type(op.view());
    const auto bytes = static_cast<size_t>(bytes_of(view.scalar));
    const auto param = static_cast<size_t>(*kernel_.param_index(op.view()));
    const Type type = is_load ? kernel_.type(op.result()) : kernel_.type(op.value());
    auto at = static_cast<size_t>(static_cast<int64_t>(thread_.params[2 * param] - thread_.base) +
                                  extended(of(op.offset())[0], scalar(op.offset())) *
                                      static_cast<int64_t>(bytes));
    if (is_load) of(op.result()).assign(type.count, 0);
    for (size_t i = 0; i < type.count; ++i, at += bytes) {
      ASSERT_LE(at + bytes, memory_.size());
      if (is_load) {
        std::memcpy(&of(op.result())[i], &memory_[at], bytes);
      } else {
        std::memcpy(&memory_[at], &of(op.value())[i], bytes);
      }
    }
  }

  const Kernel& kernel_;
  std::vector<Elements> values_;
  const EvaluatedThread& thread_;
  std::vector<uint8_t>& memory_;
};

}  // namespace

void evaluate(const Kernel& kernel, const EvaluatedThread& thread, std::vector<uint8_t>& memory) {
  Evaluator(kernel, thread, memory);
}

}  // namespace heddle::codegen
