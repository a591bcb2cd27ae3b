#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/runtime/ahead/export_tvm_ffi_internal.h"
#include "heddle/runtime/ahead/exported_tvm_ffi_internal.h"
#include "heddle/runtime/interop/dlpack_types_internal.h"

namespace heddle::runtime {
namespace {

using Dimension = OperationArgument::Dimension;

// The plain function's workspace lies at a multiple of so many bytes, and a tensor anywhere.
constexpr int kRoom = 256;

// The tensors in the order in which TVM-FFI passes them, by their places: what is read, and behind it what is written, as JAX has it.
std::vector<size_t> order_of(const std::vector<RecordedTensor>& tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_partition(order.begin(), order.end(), [&](size_t i) { return !tensors[i].written; });
  return order;
}

std::vector<Dimension> dimensions_of(const RecordedTensor& tensor) {
  if (!tensor.dimensions.empty()) return tensor.dimensions;
  std::vector<Dimension> fixed;
  for (const int64_t extent : tensor.shape.extents) fixed.push_back({"", extent});
  return fixed;
}

// "[rows + 1, 4]"
std::string shape_text(const std::vector<Dimension>& dimensions) {
  std::vector<std::string> parts;
  for (const Dimension& one : dimensions) {
    parts.push_back(one.name.empty()  ? absl::StrCat(one.number)
                    : one.number == 0 ? one.name
                                      : absl::StrCat(one.name, " + ", one.number));
  }
  return absl::StrCat("[", absl::StrJoin(parts, ", "), "]");
}

// Whether the extents of a tensor of a plan are what its dimensions say.
bool follows(const ExportedPlan& plan, const std::vector<Dimension>& dimensions,
             const std::vector<int64_t>& extents) {
  if (dimensions.size() != extents.size()) return false;
  for (size_t mode = 0; mode < extents.size(); ++mode) {
    const Dimension& one = dimensions[mode];
    const auto size = plan.sizes.find(one.name);
    if (!one.name.empty() && size == plan.sizes.end()) return false;
    if (extents[mode] != one.number + (one.name.empty() ? 0 : size->second)) return false;
  }
  return true;
}

Status check(absl::Span<const std::string> sizes, absl::Span<const ExportedPlan> plans) {
  const std::vector<RecordedTensor>& tensors = plans[0].call.tensors;
  std::vector<std::string> said;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::vector<Dimension> dimensions = dimensions_of(tensors[i]);
    for (const Dimension& one : dimensions) said.push_back(one.name);
    for (const ExportedPlan& plan : plans) {
      const std::vector<int64_t>& extents = plan.call.tensors[i].shape.extents;
      if (follows(plan, dimensions, extents)) continue;
      return InvalidArgumentError(
          absl::StrCat("'", tensors[i].name, "' is ", shape_text(dimensions), ", and in a plan [",
                       absl::StrJoin(extents, ", "),
                       "], which does not follow from its sizes: TVM-FFI passes no others"));
    }
  }
  for (const std::string& size : sizes) {
    if (std::find(said.begin(), said.end(), size) != said.end()) continue;
    return InvalidArgumentError(absl::StrCat("no tensor has the size '", size,
                                             "' as an extent, and TVM-FFI passes sizes by shapes"));
  }
  return OkStatus();
}

std::string dtype_text(ir::Scalar scalar) {
  const DLDataType type = dlpack::type_of(scalar);
  return absl::StrCat("{", type.code, ", ", type.bits, ", ", type.lanes, "}");
}

}  // namespace

StatusOr<std::string> tvm_ffi_source(absl::string_view name, absl::Span<const std::string> sizes,
                                     absl::Span<const ExportedPlan> plans) {
  if (Status s = check(sizes, plans); !s.ok()) return s;
  const std::vector<RecordedTensor>& tensors = plans[0].call.tensors;
  const auto place_of = [&](const Dimension& one) {
    const auto at = std::find(sizes.begin(), sizes.end(), one.name);
    return at == sizes.end() ? std::string("HEDDLE_FIXED") : absl::StrCat(at - sizes.begin());
  };
  const std::string upper = absl::AsciiStrToUpper(name);

  const std::vector<size_t> order = order_of(tensors);
  std::vector<std::string> names, passed(tensors.size());
  std::string tables, rows, size_names, size_values;
  size_t most_rank = 1;  // the workspace's
  for (size_t i = 0; i < order.size(); ++i) {
    const RecordedTensor& tensor = tensors[order[i]];
    names.push_back(tensor.name);
    passed[order[i]] = absl::StrCat("tensors[", i, "]");
    const std::vector<Dimension> dimensions = dimensions_of(tensor);
    most_rank = std::max(most_rank, dimensions.size());
    std::vector<std::string> extents;
    for (const Dimension& one : dimensions)
      extents.push_back(absl::StrCat("{", place_of(one), ", ", one.number, "}"));
    if (extents.empty()) extents.push_back("{0, 0}");  // an array in C has an element at least
    absl::StrAppend(&tables, "static const struct heddle_extent heddle_extents_", i, "[] = {",
                    absl::StrJoin(extents, ", "), "};\n");
    absl::StrAppend(&rows, "\n  {\"", tensor.name, "\", ", dtype_text(tensor.shape.dtype), ", ",
                    dimensions.size(), ", heddle_extents_", i, ", \"", shape_text(dimensions),
                    "\"},");
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    absl::StrAppend(&size_names, i > 0 ? ", " : "", "\"", sizes[i], "\"");
    absl::StrAppend(&size_values, i > 0 ? ", " : "", "sizes[", i, "]");
  }

  std::string text = absl::StrCat(
      "/* ", name, " in the form of TVM-FFI: made by 'heddle build'. Compile it and link it with ",
      name, ".c; TVM-FFI is not needed for that.\n   Who calls it has loaded libtvm_ffi.\n\n   ",
      name, "(", absl::StrJoin(names, ", "),
      "[, workspace]): enqueues a call on the current stream of the tensors' device.\n   Sizes are "
      "those of the tensors. The workspace is a tensor of uint8[",
      name, "_workspace_bytes(", absl::StrJoin(sizes, ", "),
      ")]; without one,\n   the caller's allocator is asked for it.\n   ", name,
      "_workspace_bytes(", absl::StrJoin(sizes, ", "),
      "): 0 where none is needed. It may lie anywhere, so that this is ", kRoom,
      " more than the\n   function of that name in ", name,
      ".h says. */\n#define _GNU_SOURCE\n#include \"", name, ".h\"\n\n#define HEDDLE_NAME \"", name,
      "\"\n#define HEDDLE_SIZE_LIST \"", sizes.empty() ? "none" : absl::StrJoin(sizes, ", "),
      "\"\n");
  for (const char* const code : {"NO_SIZES", "BAD_POINTER", "NO_MEMORY"}) {
    absl::StrAppend(&text, "#define HEDDLE_", code, " ", upper, "_", code, "\n");
  }
  absl::StrAppend(
      &text, "enum { HEDDLE_TENSORS = ", tensors.size(), ", HEDDLE_SIZES = ", sizes.size(),
      ", HEDDLE_MOST_RANK = ", most_rank, ", HEDDLE_ROOM = ", kRoom, " };\n", kTvmFfiTypes, tables,
      "static const struct heddle_argument heddle_arguments[] = {", rows,
      "\n};\nstatic const struct heddle_extent heddle_workspace_extent = {HEDDLE_FREE, 0};\n",
      "static const struct heddle_argument heddle_workspace = {\"workspace\", ",
      dtype_text(ir::Scalar::kU8), ", 1, &heddle_workspace_extent, \"[bytes]\"};\n",
      "static const char* const heddle_size_names[] = {", sizes.empty() ? "\"\"" : size_names,
      "};\n\nstatic int heddle_launch(void* stream, void* const* tensors, const int64_t* sizes, ",
      "void* workspace, size_t workspace_bytes) {\n", sizes.empty() ? "  (void)sizes;\n" : "",
      "  return ", name, "(stream, ", absl::StrJoin(passed, ", "), sizes.empty() ? "" : ", ",
      size_values, ", workspace, workspace_bytes);\n}\n",
      "static size_t heddle_workspace_bytes(const int64_t* sizes) {\n",
      sizes.empty() ? "  (void)sizes;\n" : "", "  return ", name, "_workspace_bytes(", size_values,
      ");\n}\nstatic const char* heddle_error(void) { return ", name, "_error(); }\n",
      kTvmFfiFunctions);
  for (const char* const ending : {"", "_workspace_bytes"}) {
    const std::string prototype = absl::StrCat(
        "int __tvm_ffi_", name, ending,
        "(void* self, const struct heddle_any* args, int32_t count, struct heddle_any* result)");
    absl::StrAppend(&text, "\n", prototype, ";\n", prototype, " {\n  (void)self;\n  return ",
                    *ending == 0 ? "heddle_call_ffi" : "heddle_call_workspace_bytes",
                    "(args, count, result);\n}\n");
  }
  return text;
}

}  // namespace heddle::runtime
