#include "heddle/runtime/ahead/export.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/ahead/export_tvm_ffi_internal.h"
#include "heddle/runtime/ahead/exported_runtime_internal.h"
#include "heddle/runtime/cuda/tensor_map_words.h"

namespace heddle::runtime {
namespace {

// What went wrong: a number and its name behind the library's. Greater ones are the driver's.
struct ErrorCode {
  int code;
  absl::string_view name, what;
};
constexpr ErrorCode kErrors[] = {
    {-1, "NO_SIZES", "built for other sizes"},
    {-2, "NO_CODE", "built for other GPUs"},
    {-3, "BAD_POINTER", "a tensor or the workspace is NULL, not aligned, too small or shared"},
    {-4, "NO_CONTEXT", "no CUDA context is current"},
    {-5, "NO_DRIVER", "NVIDIA's driver is missing or too old"},
    {-6, "NO_MEMORY", "the host has no memory"},
};

// An element type in C; 16- and 8-bit floats as their bits.
struct CType {
  ir::Scalar scalar;
  absl::string_view name;
};
constexpr CType kCTypes[] = {
    {ir::Scalar::kF64, "double"},   {ir::Scalar::kF32, "float"},    {ir::Scalar::kI64, "int64_t"},
    {ir::Scalar::kI32, "int32_t"},  {ir::Scalar::kI16, "int16_t"},  {ir::Scalar::kI8, "int8_t"},
    {ir::Scalar::kU64, "uint64_t"}, {ir::Scalar::kU32, "uint32_t"}, {ir::Scalar::kU16, "uint16_t"},
};
std::string c_type(ir::Scalar scalar) {
  for (const CType& type : kCTypes) {
    if (type.scalar == scalar) return std::string(type.name);
  }
  return absl::StrCat("uint", 8 * ir::bytes_of(scalar), "_t");
}

// Words of C and C++.
constexpr absl::string_view kKeywords =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t "
    "char32_t class compl concept "
    "const const_cast consteval constexpr constinit continue co_await co_return co_yield decltype "
    "default delete do double "
    "dynamic_cast else enum explicit export extern false float for friend goto if inline int long "
    "main mutable namespace new "
    "noexcept not not_eq nullptr operator or or_eq private protected public register "
    "reinterpret_cast requires restrict return "
    "short signed sizeof static static_assert static_cast struct switch template this thread_local "
    "throw true try typedef "
    "typeid typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq ";
bool is_name(absl::string_view name) {
  return ir::is_identifier(name) && !absl::StrContains(kKeywords, absl::StrCat(" ", name, " "));
}
// What the exported functions call parameters and variables of their own.
constexpr absl::string_view kTaken[] = {"stream", "workspace", "workspace_bytes", "tensors",
                                        "sizes"};
// What everything else in the file begins with.
constexpr absl::string_view kPrefix = "heddle_";

std::string c_string(absl::string_view text) { return absl::StrCat("\"", text, "\""); }

// "{1, 2, 3}"; an array in C has an element at least.
template <class Numbers>
std::string list(const Numbers& numbers) {
  if (std::begin(numbers) == std::end(numbers)) return "{0}";
  return absl::StrCat("{", absl::StrJoin(numbers, ", "), "}");
}

// Bytes as a table, 24 a line.
std::string bytes_of_text(absl::string_view bytes) {
  constexpr size_t kLine = 24;
  std::string text = "{";
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i % kLine == 0) text += "\n  ";
    absl::StrAppend(&text, static_cast<int>(static_cast<unsigned char>(bytes[i])), ",");
  }
  return text + (bytes.empty() ? "0}" : "\n}");
}

std::string text_of(const RecordedPlace& place) {
  return absl::StrCat("{", place.tensor, ", ", place.offset, "}");
}

std::string sizes_text(const Sizes& sizes, absl::Span<const std::string> names) {
  std::vector<std::string> parts;
  for (const std::string& name : names) parts.push_back(absl::StrCat(name, "=", sizes.at(name)));
  return absl::StrJoin(parts, ", ");
}

class Writer {
 public:
  Writer(absl::string_view name, absl::Span<const std::string> sizes,
         absl::Span<const ExportedPlan> plans)
      : name_(name), upper_(absl::AsciiStrToUpper(name)), sizes_(sizes), plans_(plans) {}

  std::string header() const {
    std::string text = absl::StrCat(
        "/* ", name_,
        ": made by 'heddle build'. It needs NVIDIA's driver alone (link with -ldl -lpthread).\n",
        "   Built for ", architectures(), "; ", built_for(), ". */\n#ifndef ", upper_,
        "_H\n#define ", upper_,
        "_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" "
        "{\n#endif\n\n",
        "/* What is returned: 0, one of these, or the driver's CUresult. */\nenum {\n");
    for (const ErrorCode& error : kErrors) {
      absl::StrAppend(&text, "  ", upper_, "_", error.name, " = ", error.code, ", /* ", error.what,
                      " */\n");
    }
    absl::StrAppend(&text,
                    "};\n\n/* Enqueues a call on a stream (a CUstream or cudaStream_t), in the "
                    "current CUDA context. Tensors lie in the\n",
                    "   device's memory, row-major and without gaps:\n");
    for (const RecordedTensor& tensor : tensors()) {
      absl::StrAppend(&text, "     ", tensor.name, "  ",
                      !tensor.written ? "read"
                      : tensor.read   ? "read and written"
                                      : "written",
                      ", ", ir::info(tensor.shape.dtype).name, ", at a multiple of ",
                      alignment_of(tensor.name), " bytes\n");
    }
    absl::StrAppend(
        &text, "   What is written shares no memory with another tensor.\n",
        "   The workspace is memory of the device's, at a multiple of 256 bytes, that no other "
        "call\n"
        "   uses meanwhile; tensors do not lie in it. A NULL stream is the device's default one.\n"
        "   Grids are for a GPU of ",
        plans_[0].call.multiprocessors,
        " multiprocessors; on one of fewer, clusters of 16 blocks may not fit. */\n", prototype(),
        ";\n\n/* The bytes that the workspace has to have for these sizes; 0: none is needed. */\n",
        workspace_prototype(),
        ";\n\n/* Why the last call of this thread that failed did so. */\nconst char* ", name_,
        "_error(void);\n\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    return text;
  }

  std::string cpp_header() const {
    std::string text = absl::StrCat(
        "// ", name_,
        " for C++: made by 'heddle build'.\n#pragma once\n\n#include <cstddef>\n#include "
        "<cstdint>\n#include <stdexcept>\n#include "
        "<string>\n\n#include \"",
        name_, ".h\"\n\nnamespace ", name_,
        "_built {\n\n// Named, so that two of them are not mixed up.\nstruct Sizes {\n");
    for (const std::string& size : sizes_) absl::StrAppend(&text, "  std::int64_t ", size, ";\n");
    absl::StrAppend(&text, "};\nstruct Tensors {\n");
    for (const RecordedTensor& tensor : tensors()) {
      absl::StrAppend(&text, "  ", pointer_type(tensor), " ", tensor.name, ";\n");
    }
    absl::StrAppend(
        &text, "};\n\n// An error's number and text.\nstruct Error : std::runtime_error {\n",
        "  Error(int number, const std::string& text) : std::runtime_error(text), code(number) "
        "{}\n  int code;\n};\n\n",
        "inline std::size_t workspace_bytes(const Sizes&", sizes_.empty() ? "" : " sizes",
        ") {\n  return ::", name_, "_workspace_bytes(",
        joined(sizes_, [](const std::string& size) { return "sizes." + size; }), ");\n}\n\n",
        "// Enqueues a call on a stream; throws an Error.\n",
        "inline void launch(void* stream, const Tensors& tensors, const Sizes&",
        sizes_.empty() ? "" : " sizes", ", void* workspace = nullptr,\n",
        "                   std::size_t workspace_size = 0) {\n  const int code = ::", name_,
        "(stream");
    for (const RecordedTensor& tensor : tensors())
      absl::StrAppend(&text, ", tensors.", tensor.name);
    for (const std::string& size : sizes_) absl::StrAppend(&text, ", sizes.", size);
    absl::StrAppend(&text,
                    ", workspace, workspace_size);\n  if (code != 0) throw Error(code, ::", name_,
                    "_error());\n}\n\n}  // namespace ", name_, "_built\n");
    return text;
  }

  std::string source() {
    std::string tables = plan_tables();
    std::string text = absl::StrCat(
        "/* ", name_, ": made by 'heddle build'. */\n#define _GNU_SOURCE\n#include \"", name_,
        ".h\"\n\n", "#define HEDDLE_NAME ", c_string(name_), "\n#define HEDDLE_ARCHITECTURES ",
        c_string("it was built for " + architectures()), "\n#define HEDDLE_BUILT_FOR ",
        c_string("it was " + built_for()), "\n");
    for (const ErrorCode& error : kErrors)
      absl::StrAppend(&text, "#define HEDDLE_", error.name, " ", upper_, "_", error.name, "\n");
    absl::StrAppend(
        &text, "enum {\n  HEDDLE_TENSORS = ", tensors().size(),
        ",\n  HEDDLE_SIZES = ", sizes_.size(), ",\n  HEDDLE_MOST_STEPS = ", most_.steps,
        ",\n  HEDDLE_MOST_BYTES = ", most_.bytes, ",\n  HEDDLE_MOST_PLACES = ", most_.places,
        "\n};\n", kExportedTypes, "static const char* const heddle_tensor_names[] = {",
        joined(tensors(), [](const RecordedTensor& t) { return c_string(t.name); }),
        "};\nstatic const char* const heddle_size_names[] = {",
        sizes_.empty() ? "\"\"" : joined(sizes_, [](const std::string& s) { return c_string(s); }),
        "};\n\n", tables, kExportedFunctions, "\n", prototype(), " {\n  void* const tensors[] = {",
        joined(tensors(), [](const RecordedTensor& t) { return absl::StrCat("(void*)", t.name); }),
        "};\n  const int64_t sizes[] = {", sizes_.empty() ? "0" : absl::StrJoin(sizes_, ", "),
        "};\n  return heddle_run_call(stream, tensors, sizes, workspace, workspace_bytes);\n}\n\n",
        workspace_prototype(), " {\n  const int64_t sizes[] = {",
        sizes_.empty() ? "0" : absl::StrJoin(sizes_, ", "),
        "};\n  return heddle_most_workspace(sizes);\n}\n\nconst char* ", name_,
        "_error(void) { return heddle_error_text; }\n");
    return text;
  }

 private:
  const std::vector<RecordedTensor>& tensors() const { return plans_[0].call.tensors; }

  template <class Items, class Text>
  static std::string joined(const Items& items, const Text& text) {
    std::vector<std::string> parts;
    for (const auto& item : items) parts.push_back(text(item));
    return absl::StrJoin(parts, ", ");
  }

  static std::string pointer_type(const RecordedTensor& tensor) {
    return absl::StrCat(tensor.written ? "" : "const ", c_type(tensor.shape.dtype), "*");
  }

  std::string prototype() const {
    std::string text = absl::StrCat("int ", name_, "(void* stream");
    for (const RecordedTensor& tensor : tensors()) {
      absl::StrAppend(&text, ", ", pointer_type(tensor), " ", tensor.name);
    }
    for (const std::string& size : sizes_) absl::StrAppend(&text, ", int64_t ", size);
    return text + ", void* workspace, size_t workspace_bytes)";
  }
  std::string workspace_prototype() const {
    const std::string parameters =
        joined(sizes_, [](const std::string& size) { return "int64_t " + size; });
    return absl::StrCat("size_t ", name_, "_workspace_bytes(",
                        parameters.empty() ? "void" : parameters, ")");
  }

  // The greatest that a plan asks for.
  int alignment_of(absl::string_view name) const {
    int most = 1;
    for (const ExportedPlan& plan : plans_) {
      for (const RecordedTensor& tensor : plan.call.tensors) {
        if (tensor.name == name) most = std::max(most, tensor.alignment);
      }
    }
    return most;
  }
  // The most that a block of a call has, fixed and dynamic.
  static int64_t shared_bytes_of(const RecordedCall& call) {
    int64_t most = 0;
    for (const RecordedStep& step : call.steps) {
      const auto* const launch = std::get_if<RecordedLaunch>(&step);
      if (launch == nullptr) continue;
      const codegen::EntryReport* const report =
          launch->kernel->assembly.find(launch->kernel->ptx.entry);
      const int64_t fixed = report == nullptr ? 0 : report->shared_bytes;
      most = std::max(most, fixed + launch->shape.shared_bytes);
    }
    return most;
  }

  std::string architectures() const {
    std::vector<std::string> names;
    for (const ExportedPlan& plan : plans_) {
      std::string target(plan.target->name);
      if (std::find(names.begin(), names.end(), target) == names.end()) names.push_back(target);
    }
    return absl::StrJoin(names, ", ");
  }
  // "built for rows=4, columns=8; rows=5, columns=8", or how many there are.
  std::string built_for() const {
    constexpr size_t kListed = 8;
    std::vector<std::string> all;
    for (const ExportedPlan& plan : plans_) {
      std::string one = sizes_text(plan.sizes, sizes_);
      if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(std::move(one));
    }
    const size_t count = all.size();
    if (count > kListed) all.resize(kListed);
    return absl::StrCat("built for ", absl::StrJoin(all, "; "),
                        count > kListed ? absl::StrCat("; and ", count - kListed, " more") : "");
  }

  // A static array; its name.
  std::string table(absl::string_view type, absl::string_view contents) {
    const std::string name = absl::StrCat("heddle_table_", tables_count_++);
    absl::StrAppend(&tables_, "static const ", type, " ", name, "[] = ", contents, ";\n");
    return name;
  }
  // The same for the same contents, once.
  std::string shared_table(absl::string_view type, const std::string& contents) {
    auto [at, fresh] = shared_.try_emplace({std::string(type), contents});
    if (fresh) at->second = table(type, contents);
    return at->second;
  }

  // The number of a kernel's machine code.
  int code_of(const Compilation& kernel) {
    const auto [at, fresh] = codes_.try_emplace({kernel.assembly.cubin, kernel.ptx.entry},
                                                static_cast<int>(codes_.size()));
    if (fresh) {
      code_rows_.push_back(
          absl::StrCat("{", shared_table("unsigned char", bytes_of_text(kernel.assembly.cubin)),
                       ", ", c_string(kernel.ptx.entry), "}"));
    }
    return at->second;
  }

  static std::string numbers(const Dim3& d) {
    return absl::StrCat("{", d.x, ", ", d.y, ", ", d.z, "}");
  }

  std::string map_text(const RecordedLaunch::Map& one) const {
    const ir::BoxShape& shape = one.map.shape;
    const cuda::TensorMapWords words = cuda::words_for(shape);
    // The driver takes no stride of the first dimension.
    const auto rank = static_cast<size_t>(shape.rank);
    const std::vector<int64_t> extents(one.map.extents.begin(), one.map.extents.begin() + rank);
    const std::vector<int64_t> strides(one.map.strides.begin() + 1, one.map.strides.begin() + rank);
    const std::vector<int64_t> box(shape.box.begin(), shape.box.begin() + rank);
    return absl::StrCat(
        "{", one.offset, ", ", text_of(one.place), ", ", static_cast<int>(words.type), ", ",
        shape.rank, ", ", static_cast<int>(words.swizzle), ", ", static_cast<int>(words.promotion),
        ", ", static_cast<int>(words.fill), ", ", int{shape.im2col}, ", ", list(extents), ", ",
        list(strides), ", ", list(box), ", ", list(shape.lower), ", ", list(shape.upper), "}");
  }

  std::string step_text(const RecordedLaunch& launch) {
    std::vector<std::string> addresses, maps;
    for (const RecordedLaunch::Address& one : launch.addresses) {
      addresses.push_back(absl::StrCat("{", one.offset, ", ", text_of(one.place), "}"));
    }
    for (const RecordedLaunch::Map& one : launch.maps) maps.push_back(map_text(one));
    const auto array = [&](absl::string_view type, const std::vector<std::string>& items) {
      return items.empty() ? std::string("NULL") : table(type, list(items));
    };
    const std::vector<int>& places = launch.kernel->places;
    const std::string block(reinterpret_cast<const char*>(launch.block.data()),
                            launch.block.size());
    most_.bytes = std::max(most_.bytes, block.size());
    most_.places = std::max(most_.places, places.size());
    return absl::StrCat(
        "{.kind = HEDDLE_LAUNCH, .code = ", code_of(*launch.kernel),
        ", .grid = ", numbers(launch.shape.grid), ", .block = ", numbers(launch.shape.block),
        ", .cluster = ", numbers(launch.shape.cluster),
        ", .shared_bytes = ", launch.shape.shared_bytes,
        ", .cooperative = ", int{launch.shape.cooperative},
        ", .programmatic = ", int{launch.shape.programmatic},
        ", .parameters = ", shared_table("unsigned char", bytes_of_text(block)),
        ", .parameter_bytes = ", block.size(),
        ", .places = ", places.empty() ? "NULL" : shared_table("int32_t", list(places)),
        ", .place_count = ", places.size(), ", .address_count = ", addresses.size(),
        ", .map_count = ", maps.size(),
        ", .addresses = ", array("struct heddle_address", addresses),
        ", .maps = ", array("struct heddle_map", maps), "}");
  }
  std::string step_text(const RecordedFill& fill) {
    return absl::StrCat("{.kind = ", fill.unit_bytes == 1 ? "HEDDLE_FILL8" : "HEDDLE_FILL32",
                        ", .to = ", text_of(fill.to), ", .value = ", fill.value,
                        "u, .count = ", fill.count, "}");
  }
  std::string step_text(const RecordedCopy& copy) {
    return absl::StrCat("{.kind = HEDDLE_COPY, .to = ", text_of(copy.to),
                        ", .from = ", text_of(copy.from), ", .count = ", copy.bytes, "}");
  }

  std::string plan_tables() {
    std::vector<std::string> rows;
    for (const ExportedPlan& plan : plans_) {
      std::vector<int64_t> sizes, bytes;
      std::vector<int> alignments, written;
      for (const std::string& name : sizes_) sizes.push_back(plan.sizes.at(name));
      for (const RecordedTensor& tensor : plan.call.tensors) {
        bytes.push_back(tensor.bytes);
        alignments.push_back(tensor.alignment);
        written.push_back(tensor.written);
      }
      std::vector<std::string> steps;
      most_.steps = std::max(most_.steps, plan.call.steps.size());
      for (const RecordedStep& step : plan.call.steps) {
        steps.push_back(std::visit([this](const auto& one) { return step_text(one); }, step));
      }
      rows.push_back(absl::StrCat(
          "{", plan.target->sm, ", ", int{plan.target->arch_specific}, ", ",
          shared_table("int64_t", list(sizes)), ", ", shared_table("int64_t", list(bytes)), ", ",
          shared_table("int32_t", list(alignments)), ", ", shared_table("int32_t", list(written)),
          ", ", shared_bytes_of(plan.call), ", ", plan.call.workspace_bytes, ", ",
          steps.empty() ? "NULL"
                        : table("struct heddle_step",
                                absl::StrCat("{\n  ", absl::StrJoin(steps, ",\n  "), "}")),
          ", ", steps.size(), "}"));
    }
    return absl::StrCat(tables_, "static const struct heddle_code heddle_codes[] = {",
                        code_rows_.empty() ? "{NULL, NULL}" : absl::StrJoin(code_rows_, ",\n  "),
                        "};\nstatic const struct heddle_plan heddle_plans[] = {\n  ",
                        absl::StrJoin(rows, ",\n  "), "};\n");
  }

  const std::string name_, upper_;
  absl::Span<const std::string> sizes_;
  absl::Span<const ExportedPlan> plans_;
  std::string tables_;
  int tables_count_ = 0;
  std::map<std::pair<std::string, std::string>, std::string> shared_;
  std::map<std::pair<std::string, std::string>, int> codes_;
  std::vector<std::string> code_rows_;
  // Of all plans: steps of one, bytes (of a tensor map at least) and places of parameters of one launch.
  struct {
    size_t steps = 1, bytes = 128, places = 1;
  } most_;
};

// What is wrong with the names that become parameters.
Status check_parameters(absl::Span<const std::string> sizes, const RecordedCall& call) {
  std::vector<std::string> names(sizes.begin(), sizes.end());
  for (const RecordedTensor& tensor : call.tensors) names.push_back(tensor.name);
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (!is_name(*name) || absl::StartsWith(*name, kPrefix)) {
      return InvalidArgumentError(absl::StrCat(
          "'", *name,
          "' is no name for a parameter in C and C++; fix: let the operation call it otherwise"));
    }
    if (std::find(std::begin(kTaken), std::end(kTaken), *name) != std::end(kTaken) ||
        std::find(names.begin(), name, *name) != name) {
      return InvalidArgumentError(
          absl::StrCat("two parameters of the exported function would be called '", *name,
                       "'; fix: let the operation call its tensor or dimension otherwise"));
    }
  }
  return OkStatus();
}

// Plans of one function have the same tensors and say all sizes.
Status check_plans(absl::Span<const std::string> sizes, absl::Span<const ExportedPlan> plans) {
  if (plans.empty()) return InvalidArgumentError("there is nothing to export: no plan is given");
  const std::vector<RecordedTensor>& tensors = plans[0].call.tensors;
  for (const ExportedPlan& plan : plans) {
    if (plan.target == nullptr) return InvalidArgumentError("a plan to export has no target");
    for (const std::string& size : sizes) {
      if (plan.sizes.count(size) == 0) {
        return InvalidArgumentError(
            absl::StrCat("a plan to export does not say the size '", size, "'"));
      }
    }
    const bool alike = std::equal(
        tensors.begin(), tensors.end(), plan.call.tensors.begin(), plan.call.tensors.end(),
        [](const RecordedTensor& a, const RecordedTensor& b) {
          return a.name == b.name && a.shape.dtype == b.shape.dtype && a.written == b.written;
        });
    if (!alike) {
      return InvalidArgumentError(
          "plans to export have different tensors; fix: export those of one operation and one "
          "choice of settings together");
    }
  }
  return check_parameters(sizes, plans[0].call);
}

}  // namespace

Status check_exported_name(absl::string_view name) {
  if (is_name(name) && !absl::StartsWith(name, kPrefix)) return OkStatus();
  return InvalidArgumentError(
      absl::StrCat("'", name,
                   "' is no name for a function in C; fix: letters, digits and _, no digit "
                   "first, no word of C or C++, and not '",
                   kPrefix, "' first"));
}

StatusOr<ExportedSources> export_calls(absl::string_view name, absl::Span<const std::string> sizes,
                                       absl::Span<const ExportedPlan> plans,
                                       const ExportOptions& options) {
  if (Status s = check_exported_name(name); !s.ok()) return s;
  if (Status s = check_plans(sizes, plans); !s.ok()) return s;
  Writer writer(name, sizes, plans);
  ExportedSources sources{writer.header(), writer.cpp_header(), writer.source(), ""};
  if (options.tvm_ffi) {
    StatusOr<std::string> source = tvm_ffi_source(name, sizes, plans);
    if (!source.ok()) return source.status();
    sources.tvm_ffi = *std::move(source);
  }
  return sources;
}

}  // namespace heddle::runtime
