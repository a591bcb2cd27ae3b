// What stands around the instructions: the module's header, the kernel's signature and declarations.
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "heddle/codegen/ptx_emitter.h"
#include "heddle/ir/check.h"
#include "heddle/ir/launch/tensor_map.h"

namespace heddle::codegen {
namespace {

// Swizzled tiles and descriptors want this much, and it costs nothing.
constexpr int kDynamicAlign = 1024;

// A type as .param spells it.
absl::string_view param_type(int bytes) {
  switch (bytes) {
    case 1:
      return "u8";
    case 2:
      return "b16";
    case 4:
      return "b32";
    default:
      return "b64";
  }
}

}  // namespace

std::string ptx_identifier(absl::string_view name) {
  std::string result;
  for (const char c : name) {
    result.push_back(absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '$' ? c : '_');
  }
  if (result.empty() || absl::ascii_isdigit(static_cast<unsigned char>(result[0])) ||
      result[0] == '$') {
    result.insert(0, "_");
  }
  // The one name that PTX defines, and a word that makes ptxas compile a kernel differently.
  if (result == "WARP_SZ") result.push_back('_');
  for (size_t at = 0; (at = absl::AsciiStrToLower(result).find("cutlass", at)) != result.npos;) {
    result.insert(at + 3, "_");
  }
  return result;
}

PtxModule Emitter::assemble_module() {
  PtxText text;
  text.reserve(2048 + entry_text_.text().size() + body_.text().size());
  text.lines(header());
  text.append(entry_text_);
  text.append(body_);
  text.append(cold_);
  text.line("}");
  PtxModule module;
  module.entry = name_;
  module.line_ops = {OpId::kNone};
  module.line_ops.insert(module.line_ops.end(), text.ops().begin(), text.ops().end());
  module.text = std::move(text).take();
  module.params = params_;
  if (shared_is_dynamic_) {
    module.dynamic_shared_base =
        has_dynamic_shared_ ? shared_.dynamic_offset() : static_cast<int>(shared_.bytes);
  } else if (uses_arena_) {
    module.shared_bytes = static_cast<int>(shared_.bytes);
  }
  return module;
}

std::string Emitter::header() const {
  std::string text;
  absl::StrAppend(&text, ".version ", version_ / 10, ".", version_ % 10, "\n.target ", target_.name,
                  "\n.address_size 64\n\n");
  for (size_t i = 0; i < files_.size(); ++i) {
    // PTX has no escape for a quotation mark.
    std::string file = absl::StrReplaceAll(files_[i], {{"\\", "/"}, {"\"", "'"}, {"\n", " "}});
    absl::StrAppend(&text, ".file ", i + 1, " \"", file, "\"\n");
  }
  if (uses_assert_) {
    absl::StrAppend(&text,
                    ".extern .func __assertfail (.param .b64 message, .param .b64 file, .param "
                    ".b32 line, .param .b64 function, .param .b64 char_bytes) .noreturn;\n");
  }
  if (print_bytes_ > 0) {
    absl::StrAppend(&text,
                    ".extern .func (.param .b32 status) vprintf (.param .b64 format, .param .b64 "
                    "values);\n");
  }
  for (size_t i = 0; i < strings_.size(); ++i) {
    absl::StrAppend(&text, ".global .align 1 .b8 ", name_, "_str_", i, "[", strings_[i].size() + 1,
                    "] = {");
    for (const char c : strings_[i]) absl::StrAppend(&text, static_cast<unsigned char>(c), ", ");
    absl::StrAppend(&text, "0};\n");
  }
  for (size_t i = 0; i < tables_.size(); ++i) {
    const std::string bytes = absl::HexStringToBytes(kernel_.text(tables_[i]));
    absl::StrAppend(&text, ".const .align 16 .b8 ", table_name(i), "[", bytes.size(), "] = {",
                    absl::StrJoin(bytes, ", ",
                                  [](std::string* out, char c) {
                                    absl::StrAppend(out, static_cast<unsigned char>(c));
                                  }),
                    "};\n");
  }
  if (uses_arena_ && shared_is_dynamic_) {
    absl::StrAppend(&text, ".extern .shared .align ", kDynamicAlign, " .b8 heddle_shared[];\n");
  }
  absl::StrAppend(&text, ".visible .entry ", name_, "(");
  const size_t numbers = params_.slots.size() + params_.at_launch.size();
  const size_t count = numbers + params_.tensor_maps.size();
  for (size_t i = 0; i < count; ++i) {
    if (i >= numbers) {
      absl::StrAppend(&text, "\n\t.param .align ", ir::kTensorMapAlign, " .b8 ", param_name(i), "[",
                      ir::kTensorMapBytes, "]", i + 1 == count ? "  // " : ",  // ",
                      "a tensor map");
      continue;
    }
    const bool of_argument = i < params_.slots.size();
    const int bytes =
        of_argument ? params_.slots[i].bytes : params_.at_launch[i - params_.slots.size()].bytes;
    absl::StrAppend(&text, "\n\t.param .", param_type(bytes), " ", param_name(i),
                    i + 1 == count ? "  // " : ",  // ",
                    of_argument ? describe(params_.slots[i]) : "computed for each launch");
  }
  absl::StrAppend(&text, count == 0 ? ")\n" : "\n)\n");
  const ir::Dim3 block = kernel_.block;
  const ir::Dim3 cluster = kernel_.cluster;
  if (kernel_.has_dynamic_block()) {
    absl::StrAppend(&text, ".maxntid 1024\n");
  } else {
    absl::StrAppend(&text, ".reqntid ", block.x, ", ", block.y, ", ", block.z, "\n");
  }
  if (cluster.count() > 1) {
    absl::StrAppend(&text, ".reqnctapercluster ", cluster.x, ", ", cluster.y, ", ", cluster.z,
                    "\n");
  }
  if (kernel_.min_blocks > 0) {
    absl::StrAppend(&text, ".minnctapersm ", kernel_.min_blocks, "\n");
  }
  absl::StrAppend(&text, "{\n");
  for (int i = 0; i < kRegClassCount; ++i) {
    const RegClass c = static_cast<RegClass>(i);
    if (registers_.count(c) == 0) continue;
    absl::StrAppend(&text, "\t.reg .", info(c).type, " ", info(c).prefix, "<", registers_.count(c),
                    ">;\n");
  }
  if (locals_.bytes > 0) {
    absl::StrAppend(&text, "\t.local .align 16 .b8 heddle_local[", locals_.bytes, "];\n");
  }
  if (print_bytes_ > 0) {
    absl::StrAppend(&text, "\t.local .align 8 .b8 heddle_printed[", print_bytes_, "];\n");
  }
  if (uses_arena_ && !shared_is_dynamic_) {
    absl::StrAppend(&text, "\t.shared .align ", shared_.align, " .b8 heddle_shared[", shared_.bytes,
                    "];\n");
  }
  return text;
}

// "x.extent[1]", for people.
std::string Emitter::describe(const ir::ParamSlot& slot) const {
  const ValueId value = kernel_.params()[static_cast<size_t>(slot.param)].value;
  std::string name = ptx_identifier(kernel_.text(kernel_.value(value).name));
  switch (slot.kind) {
    case ir::SlotKind::kScalar:
    case ir::SlotKind::kAddress:
      return name;
    case ir::SlotKind::kExtent:
      return absl::StrCat(name, ".extent[", slot.dim, "]");
    case ir::SlotKind::kStride:
      return absl::StrCat(name, ".stride[", slot.dim, "]");
  }
  check_failed(__FILE__, __LINE__, "slot.kind", "unknown kind of parameter slot");
}

}  // namespace heddle::codegen
