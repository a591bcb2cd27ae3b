#include "heddle/dsl/mma/draw_mma.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "heddle/dsl/layout/draw.h"
#include "heddle/dsl/layout/modes_internal.h"
#include "heddle/dsl/layout/picture_internal.h"
#include "heddle/ir/mma_atom.h"

namespace heddle {

namespace {

// One matrix of a product. b is drawn as (k,n).
std::string panel(const char* name, const Layout& tv, int rows, int columns, bool transposed,
                  bool in_smem) {
  const std::string caption =
      absl::StrCat(name, in_smem ? ", a tile in shared memory: " : ": ", tv.to_string());
  const Layout cells =
      transposed ? make_layout({rows, columns}, {columns, 1}) : make_layout(rows * columns);
  const int height = transposed ? columns : rows, width = transposed ? rows : columns;
  if (in_smem) {
    return layout_svg(
        transposed ? make_layout({height, width}, {rows, 1}) : make_layout({height, width}),
        {.caption = caption});
  }
  return layout_svg(composition(cells, tv), {.tile = IntTuple{height, width}, .caption = caption});
}

constexpr char kError[] = "error: ";

}  // namespace

std::string mma_svg(const TiledMma& mma) {
  const MmaAtom& atom = mma.atom();
  const Layout a = mma.layout_A_tv({}), b = mma.layout_B_tv({}), c = mma.layout_C_tv({});
  for (const Layout* layout : {&a, &b, &c}) {
    if (!layout->ok()) return absl::StrCat(kError, layout->error(), "\n");
  }
  int extents[3];
  for (int mode = 0; mode < 3; ++mode) {
    extents[mode] = static_cast<int>(size(get(mma.tile_mnk(), mode)).value());
  }
  const auto [m, n, k] = extents;
  const std::string of_a = panel("a", a, m, k, false, atom.a_in_smem());
  const std::string of_b = panel("b", b, n, k, true, atom.b_in_smem());
  const std::string of_c = panel("c", c, m, n, false, false);
  int size_a[2], size_b[2], size_c[2];
  const std::pair<const std::string*, int*> sizes[] = {
      {&of_a, size_a}, {&of_b, size_b}, {&of_c, size_c}};
  for (const auto& [picture, size] : sizes) {
    if (!detail::Panels::size_of(*picture, &size[0], &size[1])) return *picture;
  }
  detail::Panels panels;
  panels.add(of_a, 0, size_b[1]);
  panels.add(of_b, size_a[0], 0);
  panels.add(of_c, size_a[0], size_b[1]);
  return panels.svg();
}

std::string mma_html(const TiledMma& mma) {
  const std::string svg = mma_svg(mma);
  return svg.rfind(kError, 0) == 0 ? svg : detail::page_of(mma.atom().to_string(), svg);
}

namespace {

constexpr char kNames[] =
    "write it as PTX does, wgmma.m64n128k16.f32.bf16.bf16, mma.m16n8k16.f32.f16.f16 or fma.f32; "
    ".rs behind "
    "a wgmma takes a from registers; heddle layout --mmas lists the types";

std::string name_of(const ir::MmaTypes& types, int m, int n, int k) {
  const absl::string_view c = ir::info(types.accumulator).name;
  if (types.kind == ir::MmaKind::kFma) return absl::StrCat("fma.", c);
  return absl::StrCat(ir::info(ir::info(types.kind).op).mnemonic, ".m", m, "n", n, "k", k, ".", c,
                      ".", ir::info(types.a).name, ".", ir::info(types.b).name);
}

MmaAtom no_atom(const std::string& name) {
  return MmaAtom(
      detail::fail_layout({}, absl::StrCat("no atom of products is named '", name, "'"), kNames));
}

}  // namespace

MmaAtom parse_mma_atom(const std::string& name) {
  std::vector<std::string> parts = absl::StrSplit(name, '.');
  const auto take_scalar = [&]() -> std::optional<ir::Scalar> {
    if (parts.size() < 2) return std::nullopt;
    const auto scalar = ir::scalar_from_name(parts.back());
    parts.pop_back();
    return scalar;
  };
  if (parts.front() == "fma") {
    const auto scalar = take_scalar();
    if (!scalar || parts.size() != 1) return no_atom(name);
    return MmaAtom(MmaAtom::Kind::kFma, *scalar, *scalar, *scalar, {1, 1, 1}, OperandSource::rmem,
                   {});
  }
  const bool wgmma = parts.front() == "wgmma", in_registers = wgmma && parts.back() == "rs";
  if (in_registers) parts.pop_back();
  const auto b = take_scalar(), a = take_scalar(), c = take_scalar();
  int m = 0, n = 0, k = 0, end = 0;
  if ((!wgmma && parts.front() != "mma") || !a || !b || !c || parts.size() != 2 ||
      std::sscanf(parts[1].c_str(), "m%dn%dk%d%n", &m, &n, &k, &end) != 3 ||
      static_cast<size_t>(end) != parts[1].size()) {
    return no_atom(name);
  }
  return MmaAtom(wgmma ? MmaAtom::Kind::kWgmma : MmaAtom::Kind::kMma, *a, *b, *c, {m, n, k},
                 wgmma && !in_registers ? OperandSource::smem : OperandSource::rmem, {});
}

std::vector<std::string> mma_atom_names() {
  std::vector<std::string> names;
  for (const ir::MmaAtom& atom : ir::mma_atoms()) {
    int n = 1;
    while (!contains(atom.n, n)) ++n;
    // The first types that no earlier row has.
    const auto name = [&]() -> std::string {
      for (int i = 0; i < ir::kScalarCount; ++i) {
        for (int j = 0; j < ir::kScalarCount; ++j) {
          const ir::MmaTypes types{atom.kind, static_cast<ir::Scalar>(i),
                                   static_cast<ir::Scalar>(j), atom.accumulator};
          if (ir::find_mma_atom(types, n, atom.k) == &atom)
            return name_of(types, atom.m, n, atom.k);
        }
      }
      return "";
    };
    names.push_back(name());
  }
  return names;
}

}  // namespace heddle
