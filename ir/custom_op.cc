#include "heddle/ir/custom_op.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/check.h"
#include "heddle/ir/text/format.h"

namespace heddle::ir {
namespace {

constexpr size_t kMostOps = 1024;

// What is registered stays where it is for good, so that opcodes are looked up without a lock.
struct Registry {
  std::mutex mutex;  // of whoever registers, and of names
  std::map<std::string, Opcode, std::less<>> by_mnemonic;
  std::vector<RefusedOp> refused;
  std::atomic<size_t> count{0};
  std::array<std::atomic<const CustomOp*>, kMostOps> ops{};

  static Registry& instance() {
    static Registry* const one = new Registry();
    return *one;
  }
};

// Traits that say something of an op which computes values, and need no code of their own.
constexpr uint32_t kAllowedTraits = kPure | kCommutative | kNotSpeculatable | kVolatile |
                                    kApproximate | kOpaque | kMayStop | kTellsHost | kCheap |
                                    kCanonicalNans | kNeverFused;

bool holds_data(Role role) {
  switch (role) {
    case Role::kT:
    case Role::kBoolLikeT:
    case Role::kDataLikeT:
    case Role::kIndex:
    case Role::kAny:
    case Role::kI32:
    case Role::kU32:
    case Role::kI64:
    case Role::kBool:
      return true;
    case Role::kElement:
    case Role::kView:
    case Role::kSlot:
    case Role::kCheck:
    case Role::kFragment:
    case Role::kPending:
    case Role::kDescriptor:
    case Role::kTile:
    case Role::kTensorMap:
      return false;
  }
  return false;
}

bool is_mnemonic(absl::string_view name) {
  for (const char c : name) {
    if (!absl::ascii_islower(static_cast<unsigned char>(c)) &&
        !absl::ascii_isdigit(static_cast<unsigned char>(c)) && c != '.' && c != '_') {
      return false;
    }
  }
  return absl::StrContains(name, '.') && absl::ascii_islower(static_cast<unsigned char>(name[0]));
}

Status check_position(const Position& position, bool may_be_mask) {
  if (!holds_data(position.role) || position.tied) {
    return InvalidArgumentError(
        absl::StrCat("it takes or gives a '", name_of(position.role), position.tied ? "!" : "",
                     "', and ops from outside have scalars, vectors and fragments alone"));
  }
  if (position.arity == Arity::kMany) {
    return InvalidArgumentError("it takes any number of values, which its PTX cannot name");
  }
  if (position.arity == Arity::kOptional && !may_be_mask) {
    return InvalidArgumentError(
        "only the mask of a warp's op need not be given, the last operand: mask:u32?");
  }
  if (position.name == OperandName::kOffset) {
    return InvalidArgumentError("an operand called offset is part of an access; call it otherwise");
  }
  return OkStatus();
}

Status check_signature(const OpInfo& row) {
  const Signature& s = row.signature;
  bool has_t = false, is_shaped = false;
  const auto visit = [&](const Position& position, bool may_be_mask) {
    has_t |= position.role == Role::kT;
    is_shaped |= position.role == Role::kBoolLikeT || position.role == Role::kDataLikeT;
    return check_position(position, may_be_mask);
  };
  for (int i = 0; i < s.operand_count; ++i) {
    const bool may_be_mask = takes_mask(row) && i + 1 == s.operand_count;
    if (Status wrong = visit(s.operands[i], may_be_mask); !wrong.ok()) return wrong;
  }
  for (int i = 0; i < s.result_count; ++i) {
    if (Status wrong = visit(s.results[i], false); !wrong.ok()) return wrong;
  }
  if (is_shaped && !has_t) {
    return InvalidArgumentError("B and U are shaped like T, and its signature has no T");
  }
  return OkStatus();
}

// Passes take a row at its word: what it says has to go together.
Status check_traits(const OpInfo& row) {
  const Signature& s = row.signature;
  if ((row.traits & ~kAllowedTraits) != 0 || row.attr_count != 0 || row.effects.reads != 0 ||
      row.effects.writes != 0 || row.effects.async) {
    return InvalidArgumentError(
        "its row has attributes, effects on operands or traits that need code inside Heddle");
  }
  if (has(row, kPure)) {
    if (has_side_effect(row)) return InvalidArgumentError("it is pure and has a side effect");
    if (is_convergent(row)) {
      return InvalidArgumentError(
          "it is pure, and what threads do together depends on who is there; leave kPure out");
    }
    if (s.result_count != 1) {
      return InvalidArgumentError(absl::StrCat("it is pure and has ", s.result_count,
                                               " results; leave kPure out, or give it one result"));
    }
  }
  if (has(row, kCheap) && (!has(row, kPure) || has(row, kNotSpeculatable) || has(row, kMayStop))) {
    return InvalidArgumentError(
        "it is cheap, which is for ops that may run where the program does not reach them: pure "
        "ones "
        "that are legal with any operands");
  }
  const bool swaps = s.operand_count >= 2 && s.operands[0].name == OperandName::kA &&
                     s.operands[1].name == OperandName::kB &&
                     s.operands[0].role == s.operands[1].role;
  if (has(row, kCommutative) && !swaps) {
    return InvalidArgumentError(
        "it is commutative, and its first two operands are not a and b of one kind");
  }
  return OkStatus();
}

Status check_row(const OpInfo& row) {
  if (!is_mnemonic(row.mnemonic)) {
    return InvalidArgumentError(
        "an op from outside is called by its owner's name, a dot and a name, in small letters, "
        "digits and '_', "
        "such as acme.dot4");
  }
  if (Status wrong = check_signature(row); !wrong.ok()) return wrong;
  return check_traits(row);
}

Status check_forms(const CustomOp& op) {
  const Signature& s = op.row.signature;
  const bool runs = !op.ptx.empty() || op.meaning || op.warp_meaning;
  if (runs && op.row.convergence > Scope::kWarp) {
    return InvalidArgumentError(
        "more than a warp's threads run it together, and it is more than a mark for a pass");
  }
  for (const PtxForm& form : op.ptx) {
    const int64_t values = s.result_count + s.operand_count;
    const Status wrong = for_each_ptx_part(
        form.text, [](absl::string_view) {},
        [&](PtxValue value) {
          if (value.constant && has(op.row, kCommutative)) {
            return InvalidArgumentError("a constant operand of its PTX may be swapped away");
          }
          if (value.number < values && (!value.constant || value.number >= s.result_count)) {
            return OkStatus();
          }
          return InvalidArgumentError(absl::StrCat("its PTX names ", value.constant ? "%#" : "%",
                                                   value.number, ", which is no ",
                                                   value.constant ? "operand" : "value", " of it"));
        });
    if (!wrong.ok()) return wrong;
  }
  const bool by_warp = op.row.convergence == Scope::kWarp;
  if (by_warp ? op.meaning != nullptr : op.warp_meaning != nullptr) {
    return InvalidArgumentError(by_warp ? "a warp runs it together: it has a warp_meaning"
                                        : "each thread runs it by itself: it has a meaning");
  }
  return OkStatus();
}

// Adds an op to a registry that is locked.
StatusOr<Opcode> add(Registry& registry, CustomOp op) {
  if (Status wrong = check_row(op.row); !wrong.ok()) return wrong;
  if (Status wrong = check_forms(op); !wrong.ok()) return wrong;
  if (detail::builtin_opcode(op.row.mnemonic) || registry.by_mnemonic.contains(op.row.mnemonic)) {
    return AlreadyExistsError("there is an op of that name");
  }
  const size_t number = registry.count;
  if (number == kMostOps) {
    return ResourceExhaustedError(absl::StrCat("there are ", kMostOps, " ops from outside"));
  }
  const auto opcode = static_cast<Opcode>(kOpcodeCount + number);
  registry.by_mnemonic.emplace(op.row.mnemonic, opcode);
  registry.ops[number] = new CustomOp(std::move(op));
  registry.count = number + 1;
  return opcode;
}

}  // namespace

const CustomOp* custom_op(Opcode opcode) {
  const auto index = static_cast<size_t>(opcode);
  if (index < kOpcodeCount) return nullptr;
  HEDDLE_CHECK(index - kOpcodeCount < kMostOps, "an opcode that is none");
  return Registry::instance().ops[index - kOpcodeCount];
}

namespace {

// T of the op's row; none where it has no T.
Type t_of(const Kernel& kernel, const Op& op) {
  const Signature& signature = info(op).signature;
  for (size_t i = 0; i < op.operands.size() && i < signature.operand_count; ++i) {
    if (signature.operands[i].role == Role::kT) return kernel.type(op.operands[i]);
  }
  for (size_t i = 0; i < op.results.size() && i < signature.result_count; ++i) {
    if (signature.results[i].role == Role::kT) return kernel.type(op.results[i]);
  }
  return Type::none();
}

}  // namespace

Scalar type_of_t(const Kernel& kernel, const Op& op) { return t_of(kernel, op).scalar; }

int elements_of(const Kernel& kernel, const Op& op) {
  return std::max<int>(t_of(kernel, op).count, 1);
}

const PtxForm* form_for(const Kernel& kernel, const Op& op) {
  const Scalar type = type_of_t(kernel, op);
  for (const PtxForm& form : custom_op(op.opcode)->ptx) {
    if ((form.type == Scalar::kNone || form.type == type) && has(*kernel.target, form.needs)) {
      return &form;
    }
  }
  return nullptr;
}

std::vector<Opcode> all_opcodes() {
  std::vector<Opcode> all;
  const size_t count = kOpcodeCount + Registry::instance().count;
  for (size_t i = 0; i < count; ++i) all.push_back(static_cast<Opcode>(i));
  return all;
}

std::optional<Opcode> detail::custom_opcode(absl::string_view mnemonic) {
  Registry& registry = Registry::instance();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  const auto found = registry.by_mnemonic.find(mnemonic);
  if (found == registry.by_mnemonic.end()) return std::nullopt;
  return found->second;
}

RegisteredOp::RegisteredOp(CustomOp op) : mnemonic_(op.row.mnemonic) {
  Registry& registry = Registry::instance();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  const StatusOr<Opcode> added = add(registry, std::move(op));
  if (added.ok()) {
    opcode_ = *added;
    return;
  }
  status_ = Status(added.status().code(),
                   absl::StrCat("the op '", mnemonic_, "' is refused: ", added.status().message()));
  registry.refused.push_back({std::string(mnemonic_), status_});
}

Opcode RegisteredOp::opcode() const {
  HEDDLE_CHECK(status_.ok(), "an op that was refused has no opcode");
  return opcode_;
}

std::vector<RefusedOp> refused_ops() {
  Registry& registry = Registry::instance();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  return registry.refused;
}

}  // namespace heddle::ir
