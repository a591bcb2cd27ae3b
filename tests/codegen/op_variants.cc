#include "codegen/op_variants.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/check.h"
#include "heddle/ir/float_bits.h"
#include "heddle/ir/text/parser.h"
#include "heddle/ir/text/printer.h"

namespace heddle::codegen {
namespace {

using ir::AttrKey;
using ir::Builder;
using ir::Kernel;
using ir::Op;
using ir::Opcode;
using ir::OpId;
using ir::Role;
using ir::Scalar;
using ir::Type;
using ir::ValueId;

// A number that is not special in any type, as bits.
uint64_t one_and_a_bit(Scalar scalar) {
  if (is_float(scalar)) return ir::float_bits(scalar, 1.5);
  return scalar == Scalar::kBool ? 1 : 3;
}

bool has_shape_of_t(Role role) {
  return role == Role::kT || role == Role::kBoolLikeT || role == Role::kDataLikeT;
}

Type shaped(Type shape, Type type) { return shape.with_scalar(type.scalar); }

// Parameters, at 8 to 24 bytes and 128 for a tensor map, and shared arrays have to fit.
constexpr size_t kMostMerged = 16;

// Every %name in the text of a kernel, but not in its strings, with an ending.
std::string renamed(absl::string_view text, absl::string_view ending) {
  std::string result;
  bool quoted = false, in_name = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_name && !absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') {
      absl::StrAppend(&result, ending);
      in_name = false;
    }
    if (quoted && c == '\\') result += text[i++];
    if (c == '"') quoted = !quoted;
    in_name |= c == '%' && !quoted;
    result += text[i];
  }
  return result;
}

}  // namespace

void make_constant(Kernel& kernel, OpId id) {
  Builder b(kernel);
  b.set_insertion_before(id);
  b.set_loc(kernel.op(id).loc);
  for (size_t i = 0; i < kernel.op(id).operands.size(); ++i) {
    const ValueId value = kernel.op(id).operands[i];
    const Op* const def = kernel.def(value);
    const bool comes_from_outside =
        def == nullptr ? kernel.param_index(value).has_value() : def->opcode == Opcode::kLoad;
    if (!comes_from_outside || !kernel.type(value).is_data()) continue;
    const Type type = kernel.type(value);
    const ValueId constant = b.constant(type, one_and_a_bit(type.scalar));
    kernel.op(id).operands[i] = constant;
  }
}

bool can_widen(const Kernel& kernel, OpId id) {
  const Op& op = kernel.op(id);
  const ir::Signature& s = info(op).signature;
  bool has_t = false;
  for (size_t i = 0; i < op.operands.size() && i < s.operand_count; ++i) {
    if (!has_shape_of_t(s.operands[i].role)) continue;
    has_t = true;
    if (!kernel.type(op.operands[i]).is_scalar()) return false;
  }
  if (op.results.size() != 1 || s.result_count == 0 || !kernel.type(op.result()).is_scalar())
    return false;
  has_t |= has_shape_of_t(s.results[0].role);
  // The host computes scalars.
  return has_t && op.opcode != Opcode::kAtLaunch;
}

void widen(Kernel& kernel, OpId id, Type shape) {
  Builder b(kernel);
  b.set_insertion_before(id);
  b.set_loc(kernel.op(id).loc);
  const Op op = kernel.op(id);
  const ir::Signature& s = info(op).signature;
  std::vector<ValueId> operands(op.operands.begin(), op.operands.end());
  for (size_t i = 0; i < operands.size() && i < s.operand_count; ++i) {
    if (!has_shape_of_t(s.operands[i].role)) continue;
    operands[i] = b.create(Opcode::kSplat, {operands[i]}, shaped(shape, kernel.type(operands[i])));
  }
  const Type narrow = kernel.type(op.result());
  const Type type = has_shape_of_t(s.results[0].role) ? shaped(shape, narrow) : narrow;
  const ValueId wide = b.create(op.opcode, operands, type, op.attrs);
  if (kernel.type(wide) == narrow) {
    kernel.replace_all_uses(op.result(), wide);
    return kernel.erase(id);
  }
  const ValueId kept = kernel.add_param("kept", Type::view(narrow.scalar, ir::Space::kGlobal, 1),
                                        {ir::kDynamic}, {1});
  std::vector<ValueId> elements;
  for (int i = 0; i < type.count; ++i) {
    elements.push_back(b.create(Opcode::kExtract, {wide}, narrow, {{AttrKey::kIndex, i}}));
    b.create(Opcode::kStore, {kept, elements.back(), b.constant_int(ir::kI32Type, i)});
  }
  kernel.replace_all_uses(op.result(), elements[0]);
  kernel.erase(id);
}

void MergedKernels::add(const Kernel& kernel) {
  const std::string text = renamed(ir::print(kernel), absl::StrCat("_", count_++));
  const size_t params = text.find('(') + 1;
  const size_t launch = text.find(") block(");
  const size_t body = text.find("{\n", launch) + 2;
  const std::string how = text.substr(launch, body - launch);
  Group& group = groups_[how];
  if (launch > params) group.params.push_back(text.substr(params, launch - params));
  group.bodies.push_back(text.substr(body, text.rfind('}') - body));
  if (group.bodies.size() == kMostMerged) finish(how, group);
}

void MergedKernels::finish(const std::string& launch, Group& group) {
  if (group.bodies.empty()) return;
  const std::string text =
      absl::StrCat("kernel @k", done_.size(), "(", absl::StrJoin(group.params, ", "), launch,
                   absl::StrJoin(group.bodies, ""), "}\n");
  StatusOr<Kernel> kernel = ir::parse(text, "merged.ir", {.text_as_source = true});
  HEDDLE_CHECK(kernel.ok(), absl::StrCat(kernel.status().message(), "\n", text));
  done_.push_back(*std::move(kernel));
  group = {};
}

std::vector<Kernel> MergedKernels::take() {
  for (auto& [launch, group] : groups_) finish(launch, group);
  groups_.clear();
  return std::move(done_);
}

}  // namespace heddle::codegen
