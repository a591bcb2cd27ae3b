// Conversions between every two element types.
#include "heddle/ir/interp/elementwise.h"

namespace heddle::ir::interp {
namespace {

template <Scalar kFrom, Scalar... kTo>
constexpr HandlerRow row_from(ScalarList<kTo...>) {
  HandlerRow row{};
  ((row[static_cast<size_t>(kTo)] = &run_unary<Convert<Lane<kTo>>, Lane<kTo>, Lane<kFrom>>), ...);
  return row;
}

using ConversionTable = std::array<HandlerRow, kScalarCount>;

template <Scalar... kFrom>
constexpr ConversionTable all_rows(ScalarList<kFrom...>) {
  ConversionTable table{};
  ((table[static_cast<size_t>(kFrom)] = row_from<kFrom>(DataTypes{})), ...);
  return table;
}

constexpr ConversionTable kTable = all_rows(DataTypes{});

}  // namespace

Handler convert_handler(Scalar from, Scalar to) {
  return kTable[static_cast<size_t>(from)][static_cast<size_t>(to)];
}

}  // namespace heddle::ir::interp
