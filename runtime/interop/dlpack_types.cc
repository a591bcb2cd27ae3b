#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "heddle/runtime/interop/dlpack_types_internal.h"

namespace heddle::runtime::dlpack {
namespace {

// DLDataTypeCode, in order. Types of several widths have it in their name: "int32".
constexpr struct {
  absl::string_view name;
  bool of_any_width = false;
} kCodes[] = {
    {"int", true},     {"uint", true},         {"float", true},    {"opaque handle"},
    {"bfloat", true},  {"complex", true},      {"bool"},           {"float8_e3m4"},
    {"float8_e4m3"},   {"float8_e4m3b11fnuz"}, {"float8_e4m3fn"},  {"float8_e4m3fnuz"},
    {"float8_e5m2"},   {"float8_e5m2fnuz"},    {"float8_e8m0fnu"}, {"float6_e2m3fn"},
    {"float6_e3m2fn"}, {"float4_e2m1fn"},
};
constexpr uint8_t kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kComplex = 5, kBool = 6,
                  kE4M3Fn = 10, kE5M2 = 12, kE8M0 = 14, kE2M1 = 17;
static_assert(std::size(kCodes) == kE2M1 + 1);

// Rows that come first are what Heddle's type goes out as, and what comes in is.
constexpr struct {
  ir::Scalar scalar;
  uint8_t code;
  uint8_t bits;
  uint16_t lanes = 1;
} kTypes[] = {
    {ir::Scalar::kBool, kBool, 8},      {ir::Scalar::kI8, kInt, 8},
    {ir::Scalar::kU8, kUInt, 8},        {ir::Scalar::kI16, kInt, 16},
    {ir::Scalar::kU16, kUInt, 16},      {ir::Scalar::kI32, kInt, 32},
    {ir::Scalar::kU32, kUInt, 32},      {ir::Scalar::kI64, kInt, 64},
    {ir::Scalar::kU64, kUInt, 64},      {ir::Scalar::kE4M3, kE4M3Fn, 8},
    {ir::Scalar::kE5M2, kE5M2, 8},      {ir::Scalar::kE8M0, kE8M0, 8},
    {ir::Scalar::kE2M1X2, kE2M1, 4, 2}, {ir::Scalar::kF16, kFloat, 16},
    {ir::Scalar::kBF16, kBfloat, 16},   {ir::Scalar::kF32, kFloat, 32},
    {ir::Scalar::kF64, kFloat, 64},     {ir::Scalar::kTF32, kFloat, 32},
};
static_assert(std::size(kTypes) == ir::kScalarCount - 1, "a row for each element type");

constexpr struct {
  int32_t type;
  absl::string_view name;
} kMemory[] = {
    {kCpu, "kDLCPU"},
    {kCuda, "kDLCUDA"},
    {kCudaHost, "kDLCUDAHost"},
    {4, "kDLOpenCL"},
    {7, "kDLVulkan"},
    {8, "kDLMetal"},
    {9, "kDLVPI"},
    {10, "kDLROCM"},
    {11, "kDLROCMHost"},
    {12, "kDLExtDev"},
    {kCudaManaged, "kDLCUDAManaged"},
    {14, "kDLOneAPI"},
    {15, "kDLWebGPU"},
    {16, "kDLHexagon"},
    {17, "kDLMAIA"},
    {18, "kDLTrn"},
};

}  // namespace

ir::Scalar scalar_of(const DLDataType& type, bool padded) {
  if (padded && type.bits < 8) return ir::Scalar::kNone;
  for (const auto& row : kTypes) {
    if (row.code == type.code && row.bits == type.bits && row.lanes == type.lanes) {
      return row.scalar;
    }
  }
  return ir::Scalar::kNone;
}

DLDataType type_of(ir::Scalar scalar) {
  for (const auto& row : kTypes) {
    if (row.scalar == scalar) return {row.code, row.bits, row.lanes};
  }
  return {};
}

std::string describe(const DLDataType& type) {
  std::string text = absl::StrCat("type code ", type.code);
  if (type.code < std::size(kCodes)) {
    const auto& code = kCodes[type.code];
    text = absl::StrCat(code.name, code.of_any_width ? absl::StrCat(type.bits) : "");
  }
  if (type.lanes != 1) absl::StrAppend(&text, " x ", type.lanes);
  return text;
}

std::string why_unknown(const DLDataType& type) {
  if (type.bits % 8 != 0) {
    return absl::StrCat(
        "of ", type.bits,
        " bits, and Heddle's elements are whole bytes; fix: convert it, or view pairs of "
        "float4_e2m1fn as one element of 2 lanes");
  }
  if (type.lanes != 1) {
    return absl::StrCat("vectors, and Heddle's elements are numbers; fix: give ", type.lanes,
                        " lanes as the last mode");
  }
  if (type.code == kComplex) {
    return "and Heddle has no complex numbers; fix: give real and imaginary parts as the last mode";
  }
  std::string names;
  for (int i = 1; i < static_cast<int>(ir::kScalarCount); ++i) {
    absl::StrAppend(&names, i == 1 ? "" : ", ", ir::info(static_cast<ir::Scalar>(i)).name);
  }
  return absl::StrCat("which is none of Heddle's types; fix: convert it to one of ", names);
}

std::string name_of_memory(int32_t type) {
  for (const auto& row : kMemory) {
    if (row.type == type) return std::string(row.name);
  }
  return absl::StrCat("device type ", type);
}

std::vector<int64_t> row_major(absl::Span<const int64_t> extents) {
  std::vector<int64_t> strides(extents.size());
  int64_t stride = 1;
  for (size_t i = extents.size(); i-- > 0;) {
    strides[i] = stride;
    if (__builtin_mul_overflow(stride, extents[i], &stride)) stride = INT64_MAX;
  }
  return strides;
}

}  // namespace heddle::runtime::dlpack
