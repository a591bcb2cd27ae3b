#include "heddle/dsl/tensor/wgmma.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/tuple_builder_internal.h"
#include "heddle/dsl/tensor/tensor_internal.h"

namespace heddle {
namespace detail {
namespace {

using ir::AttrKey;
using ir::Opcode;

constexpr int kRows = 64;         // of A
constexpr int kDepthBytes = 32;   // of a row of either tile, in one product
constexpr int kChunkBytes = 16;   // what a swizzle moves about
constexpr int kRowsTogether = 8;  // of a core matrix, and of a swizzle's pattern

// How a tile lies in shared memory, as a matrix descriptor says it; bytes.
struct TileFormat {
  int64_t swizzle = 0;
  int64_t leading = kChunkBytes;  // from one 16 bytes of a row to the next; under a swizzle unused
  int64_t stride = 0;             // from eight rows to the next eight
};

// The row bytes of a swizzle of elements, 0 for none; nullopt where no descriptor has it.
std::optional<int64_t> swizzle_bytes(const Swizzle& swizzle, int element_bytes) {
  if (swizzle.bits() == 0) return 0;
  const Swizzle of_bytes = recast(swizzle, 8 * element_bytes, 8);
  if (of_bytes.bits() > 3 || of_bytes != Swizzle(of_bytes.bits(), 4, 3)) return std::nullopt;
  return int64_t{kChunkBytes} << of_bytes.bits();
}

class Tile {
 public:
  Tile(const AnyTensor& tensor, const char* name, SourceLoc loc)
      : tensor_(tensor), name_(name), loc_(loc), bytes_(ir::bytes_of(tensor.scalar)) {}

  // Whether it is one of numbers of rows and columns; reports what is not.
  bool read() {
    const IntTuple& shape = tensor_.layout.shape();
    if (!shape.ok()) return false;  // reported where it was made
    if (rank(shape) != 2 || !is_static(tensor_.layout.outer())) {
      return wrong("has no two modes of host numbers",
                   "slice and tile it until (rows, depth) is left");
    }
    rows_ = size(get(shape, 0)).value();
    depth_ = size(get(shape, 1)).value();
    if (depth_ * bytes_ % kDepthBytes != 0) {
      return wrong(absl::StrCat("has ", depth_, " columns"),
                   absl::StrCat("a product takes a multiple of ", kDepthBytes / bytes_));
    }
    return find_format();
  }

  int64_t rows() const { return rows_; }
  int64_t products() const { return depth_ * bytes_ / kDepthBytes; }

  // The descriptor of the tile's part for product number i.
  Node descriptor(int64_t product) const {
    SymInt start = index(0, product * (kDepthBytes / bytes_));
    const IntTuple& offset = tensor_.layout.offset();
    if (tensor_.layout.is_composed() && offset.is_int()) start = start + offset.value();
    start = start + number_at(tensor_.origin, 0, 1);
    const ir::Attr attrs[] = {{AttrKey::kLeading, format_.leading},
                              {AttrKey::kStride, format_.stride},
                              {AttrKey::kSwizzle, format_.swizzle}};
    const Node operands[] = {tensor_.node, materialize(start, /*wide=*/false, loc_)};
    return record(Opcode::kSmemDesc, operands, {}, attrs, loc_);
  }

 private:
  bool wrong(std::string what, std::string fix) const {
    fail(loc_, absl::StrCat("tile ", name_, " of wgmma, ", to_string(tensor_), ", ", what),
         std::move(fix));
    return false;
  }

  // Where an element lies before the swizzle, from the first one on.
  int64_t index(int64_t row, int64_t column) const {
    return tensor_.layout.outer()({row, column}, loc_).value().value();
  }

  bool find_format() {
    const std::optional<int64_t> swizzle = swizzle_bytes(tensor_.layout.swizzle(), bytes_);
    if (!swizzle || tensor_.layout.inner() != nullptr) {
      return wrong("is swizzled as no matrix descriptor can say",
                   "use S<1,3,3>, S<2,3,3> or S<3,3,3> of 16-bit elements, or none");
    }
    const int64_t chunk = kChunkBytes / bytes_;
    const int64_t pitch = *swizzle == 0 ? chunk : *swizzle / bytes_;
    format_.swizzle = *swizzle;
    const int64_t next_chunk = index(0, chunk);
    if (*swizzle == 0) format_.leading = next_chunk * bytes_;
    const int64_t next_rows = rows_ > kRowsTogether ? index(kRowsTogether, 0) : 0;
    format_.stride = next_rows * bytes_;
    const auto wanted = [&](int64_t row, int64_t column) {
      return row % kRowsTogether * pitch + row / kRowsTogether * next_rows +
             column / chunk * (*swizzle == 0 ? next_chunk : chunk) + column % chunk;
    };
    for (int64_t row = 0; row < rows_; ++row) {
      // Of the first row every column: the others repeat it.
      const int64_t step = row == 0 ? 1 : chunk;
      for (int64_t column = 0; column < kDepthBytes / bytes_; column += step) {
        const int64_t at = index(row, column);
        if (at == wanted(row, column)) continue;
        return wrong(absl::StrCat("is not canonical: element (", row, ", ", column, ") is ", at,
                                  " elements behind the first, and a matrix descriptor with ",
                                  *swizzle == 0 ? "no swizzle"
                                                : absl::StrCat("a swizzle of ", *swizzle, " bytes"),
                                  " has it ", wanted(row, column), " behind"),
                     absl::StrCat("let rows be contiguous along the depth, ", pitch,
                                  " elements apart, and groups of eight rows equally far apart"));
      }
    }
    return true;
  }

  const AnyTensor& tensor_;
  const char* const name_;
  const SourceLoc loc_;
  const int bytes_;
  int64_t rows_ = 0, depth_ = 0;
  TileFormat format_;
};

}  // namespace

Node emit_wgmma_begin(const Node& fragment, SourceLoc loc) {
  NodeType type = fragment.type;
  type.kind = ir::TypeKind::kPending;
  return record(Opcode::kWgmmaBegin, absl::MakeConstSpan(&fragment, 1), type, {}, loc);
}

Node emit_wgmma_begin(ir::Scalar scalar, int columns, SourceLoc loc) {
  const NodeType type = fragment_type(scalar, columns / 2, loc);
  return emit_wgmma_begin(record(Opcode::kUndef, {}, type, {}, loc), loc);
}

Node emit_wgmma(const Node& accumulator, const AnyTensor& a, const AnyTensor& b, const Node& scale,
                SourceLoc loc) {
  Tile rows(a, "a", loc), columns(b, "b", loc);
  if (!rows.read() || !columns.read()) return accumulator;
  if (rows.rows() != kRows || columns.rows() != 2 * accumulator.type.count ||
      rows.products() != columns.products()) {
    fail(loc,
         absl::StrCat("wgmma of ", to_string(a), " and ", to_string(b),
                      " into an accumulator of 64 x ", 2 * accumulator.type.count),
         "a is 64 x K, b is N x K and the accumulator 64 x N");
    return accumulator;
  }
  Node result = accumulator;
  for (int64_t product = 0; product < rows.products(); ++product) {
    const Node always = host_node(true);
    const Node operands[] = {result, rows.descriptor(product), columns.descriptor(product),
                             product == 0 ? scale : always};
    result = record(Opcode::kWgmma, operands, accumulator.type, {}, loc);
  }
  return result;
}

Node emit_wgmma_wait(const Node& accumulator, int groups, SourceLoc loc) {
  const ir::Attr attr{AttrKey::kGroups, groups};
  NodeType type = accumulator.type;
  type.kind = ir::TypeKind::kFragment;
  return record(Opcode::kWgmmaWait, absl::MakeConstSpan(&accumulator, 1), type,
                absl::MakeConstSpan(&attr, 1), loc);
}

}  // namespace detail

void wgmma_wait_groups(int groups, SourceLoc loc) {
  const ir::Attr attr{ir::AttrKey::kGroups, groups};
  detail::record(ir::Opcode::kWgmmaWait, {}, {}, absl::MakeConstSpan(&attr, 1), loc);
}

}  // namespace heddle
