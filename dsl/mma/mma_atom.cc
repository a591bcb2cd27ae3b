#include "heddle/dsl/mma/mma_atom.h"

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/modes_internal.h"
#include "heddle/ir/mma_atom.h"

namespace heddle {

namespace {

static_assert(static_cast<ir::MmaKind>(MmaAtom::Kind::kFma) == ir::MmaKind::kFma &&
              static_cast<ir::MmaKind>(MmaAtom::Kind::kMma) == ir::MmaKind::kMma &&
              static_cast<ir::MmaKind>(MmaAtom::Kind::kWgmma) == ir::MmaKind::kWgmma);

// The modes of a fragment's threads or values, without those of one element.
Layout modes_of(const std::array<ir::MmaMode, 3>& modes) {
  IntTuple shape, stride;
  for (const ir::MmaMode& mode : modes) {
    if (mode.extent == 1) continue;
    shape = append(shape, mode.extent);
    stride = append(stride, mode.stride);
  }
  const int rank = heddle::rank(shape);
  if (rank == 0) return Layout();
  return rank == 1 ? Layout(unwrap(shape), unwrap(stride)) : Layout(shape, stride);
}

}  // namespace

MmaAtom::MmaAtom(Kind of, ir::Scalar a, ir::Scalar b, ir::Scalar c, const int (&mnk)[3],
                 OperandSource source, SourceLoc loc)
    : kind_(of), mnk_{mnk[0], mnk[1], mnk[2]}, a_(a), b_(b), c_(c) {
  const auto kind = static_cast<ir::MmaKind>(of);
  const ir::MmaTypes types{kind, a, b, c};
  const ir::MmaAtom* const any = ir::find_mma_atom(types);
  if (any != nullptr && mnk_[2] == 0) mnk_[2] = any->k;
  const ir::MmaAtom* const row = ir::find_mma_atom(types, n(), k());
  if (row == nullptr || row->m != m()) {
    const absl::string_view op = ir::info(ir::info(kind).op).mnemonic;
    const std::string typed =
        absl::StrCat(ir::info(a).name, " x ", ir::info(b).name, " + ", ir::info(c).name);
    layout_a_ = detail::fail_layout(
        loc,
        any == nullptr
            ? absl::StrCat("there is no ", op, " of ", typed)
            : absl::StrCat("there is no ", op, " m", m(), "n", n(), "k", k(), " of ", typed),
        any == nullptr ? absl::StrCat("there are those of ", ir::mma_types_text(kind))
                       : absl::StrCat("there is ", ir::mma_shapes_text(types)));
    return;
  }
  row_ = row;
  const ir::MmaKindInfo& info = ir::info(kind);
  threads_ = info.threads();
  is_async_ = info.completion == ir::MmaCompletion::kByGroup;
  b_in_smem_ = info.tiles == ir::MmaTiles::kSharedB;
  a_in_smem_ = b_in_smem_ && source == OperandSource::smem;
  const auto layout = [&](ir::MmaOperand operand, ir::Scalar scalar, bool in_smem, int rows,
                          int columns) {
    // All threads have all of a tile.
    if (in_smem) return make_layout({threads_, {rows, columns}}, {0, {1, rows}});
    const ir::MmaFragment fragment = ir::fragment_of(*row, operand, scalar, n());
    return make_layout(modes_of(fragment.thread), modes_of(fragment.value));
  };
  layout_a_ = layout(ir::MmaOperand::kA, a, a_in_smem_, m(), k());
  layout_b_ = layout(ir::MmaOperand::kB, b, b_in_smem_, n(), k());
  layout_c_ = layout(ir::MmaOperand::kAccumulator, c, false, m(), n());
}

std::string MmaAtom::to_string() const {
  if (row_ == nullptr) return "no atom";
  return ir::mma_name(*row_, {row_->kind, a_, b_, c_}, n());
}

}  // namespace heddle
