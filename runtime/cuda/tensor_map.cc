// Tensor maps in the driver's words.
#include "heddle/ir/launch/tensor_map.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "heddle/ir/check.h"
#include "heddle/runtime/cuda/cuda_backend.h"
#include "heddle/runtime/cuda/tensor_map_words.h"

namespace heddle::runtime::cuda {
namespace {

static_assert(sizeof(DriverTensorMap) == ir::kTensorMapBytes);
static_assert(alignof(DriverTensorMap) == ir::kTensorMapAlign);

// Copies look at an element's size alone, reductions and NaNs outside of the tensor at its type too. Of tf32 the driver's
// documents name the type and say nothing of rounding; libraries rely on loads rounding an f32 to it.
TensorMapType type_of(ir::Scalar scalar) {
  switch (scalar) {
    case ir::Scalar::kF16:
      return TensorMapType::kFloat16;
    case ir::Scalar::kBF16:
      return TensorMapType::kBfloat16;
    case ir::Scalar::kTF32:
      return TensorMapType::kTfloat32;
    case ir::Scalar::kF32:
      return TensorMapType::kFloat32;
    case ir::Scalar::kF64:
      return TensorMapType::kFloat64;
    case ir::Scalar::kI32:
      return TensorMapType::kInt32;
    case ir::Scalar::kI64:
      return TensorMapType::kInt64;
    default:
      break;
  }
  switch (ir::bytes_of(scalar)) {
    case 1:
      return TensorMapType::kUint8;
    case 2:
      return TensorMapType::kUint16;
    case 4:
      return TensorMapType::kUint32;
    default:
      return TensorMapType::kUint64;
  }
}

// The driver's word for a number of bytes.
template <class Word>
using Words = std::pair<int, Word>[4];
constexpr Words<TensorMapSwizzle> kSwizzles = {{0, TensorMapSwizzle::kNone},
                                               {32, TensorMapSwizzle::k32Bytes},
                                               {64, TensorMapSwizzle::k64Bytes},
                                               {128, TensorMapSwizzle::k128Bytes}};
constexpr Words<TensorMapPromotion> kPromotions = {{0, TensorMapPromotion::kNone},
                                                   {64, TensorMapPromotion::k64Bytes},
                                                   {128, TensorMapPromotion::k128Bytes},
                                                   {256, TensorMapPromotion::k256Bytes}};
template <class Word>
Word word_for(int bytes, const Words<Word>& words) {
  for (const auto& [of, word] : words) {
    if (of == bytes) return word;
  }
  check_failed(__FILE__, __LINE__, "bytes", "the verifier lets no other number pass");
}

}  // namespace

TensorMapWords words_for(const ir::BoxShape& shape) {
  return {type_of(shape.scalar), word_for(shape.swizzle, kSwizzles),
          word_for(shape.promotion, kPromotions),
          shape.nan_fill ? TensorMapFill::kNan : TensorMapFill::kZeros};
}

Status CudaBackend::encode_tensor_map(const ir::TensorMap& map, std::byte* to) {
  const ir::BoxShape& shape = map.shape;
  const TensorMapWords words = words_for(shape);
  uint64_t extents[ir::kMaxTensorMapRank], strides[ir::kMaxTensorMapRank];
  uint32_t box[ir::kMaxTensorMapRank], steps[ir::kMaxTensorMapRank];
  for (size_t d = 0; d < static_cast<size_t>(shape.rank); ++d) {
    extents[d] = static_cast<uint64_t>(map.extents[d]);
    // The driver takes no stride of the first dimension.
    if (d > 0) strides[d - 1] = static_cast<uint64_t>(map.strides[d]);
    box[d] = static_cast<uint32_t>(shape.box[d]);
    steps[d] = 1;
  }
  DriverTensorMap encoded;
  if (shape.im2col) {
    int lower[ir::kMaxTensorMapRank], upper[ir::kMaxTensorMapRank];
    for (size_t i = 0; i < static_cast<size_t>(shape.image_rank()); ++i) {
      lower[i] = static_cast<int>(shape.lower[i]);
      upper[i] = static_cast<int>(shape.upper[i]);
    }
    const Status status = call(
        api().tensor_map_encode_im2col, &encoded, words.type, static_cast<uint32_t>(shape.rank),
        reinterpret_cast<void*>(map.address), extents, strides, lower, upper, box[0], box[1], steps,
        TensorMapInterleave::kNone, words.swizzle, words.promotion, words.fill);
    if (status.ok()) std::memcpy(to, &encoded, sizeof(encoded));
    return status;
  }
  const Status status =
      call(api().tensor_map_encode_tiled, &encoded, words.type, static_cast<uint32_t>(shape.rank),
           reinterpret_cast<void*>(map.address), extents, strides, box, steps,
           TensorMapInterleave::kNone, word_for(shape.swizzle, kSwizzles),
           word_for(shape.promotion, kPromotions),
           shape.nan_fill ? TensorMapFill::kNan : TensorMapFill::kZeros);
  if (status.ok()) std::memcpy(to, &encoded, sizeof(encoded));
  return status;
}

}  // namespace heddle::runtime::cuda
