// The layout calculator.
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "heddle/dsl/layout/calculator.h"
#include "heddle/dsl/layout/draw.h"
#include "heddle/dsl/mma/descriptor.h"
#include "heddle/dsl/mma/draw_mma.h"
#include "heddle/dsl/tensor/draw_atom.h"
#include "heddle/tools/command/commands.h"
#include "heddle/tools/command/output.h"

namespace heddle::tools {
namespace {

// A line each, flushed at once, so that a program can ask line by line.
Exit answer_lines() {
  std::ios::sync_with_stdio(false);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::cout << evaluate(line) << '\n';
    if (std::cin.rdbuf()->in_avail() == 0) std::cout.flush();
  }
  std::cout.flush();
  return Exit::kDone;
}

constexpr absl::string_view kError = "error: ";

Exit refuse(absl::string_view message) {
  return misused(absl::StripSuffix(message.substr(kError.size()), "\n"));
}

// Writes the file, where one is named.
Exit write_picture(const std::string& file, const std::string& picture) {
  if (file.empty()) return Exit::kDone;
  if (absl::StartsWith(picture, kError)) return refuse(picture);
  if (Status s = write_file(file, picture); !s.ok()) return misused(s);
  return Exit::kDone;
}

// A copy atom: both sides' layouts, or a picture of them.
Exit show_atom(const LayoutOptions& options) {
  if (!options.expression.empty() || options.table) {
    return misused("--atom takes no expression, and is drawn by --svg and --html");
  }
  const CopyAtom atom = parse_copy_atom(options.atom, options.element_bits);
  if (!atom.ok()) return misused(atom.error());
  if (!options.svg.empty() || !options.html.empty()) {
    if (Exit e = write_picture(options.svg, copy_atom_svg(atom)); e != Exit::kDone) return e;
    return write_picture(options.html, copy_atom_html(atom));
  }
  print("source: " + atom.source().to_string() +
        "\ndestination: " + atom.destination().to_string() + "\n");
  return Exit::kDone;
}

// A product's atom, or atoms: the layouts of its operands, or a picture of them.
Exit show_mma(const LayoutOptions& options) {
  if (!options.expression.empty() || options.table) {
    return misused("--mma takes no expression, and is drawn by --svg and --html");
  }
  const MmaAtom atom = parse_mma_atom(options.mma);
  if (!atom.ok()) return misused(atom.error());
  const IntTuple atoms = parse_int_tuple(options.atoms);
  if (!atoms.ok()) return misused(atoms.error());
  const TiledMma mma = make_tiled_mma(atom, atoms);
  const Layout a = mma.layout_A_tv(), b = mma.layout_B_tv(), c = mma.layout_C_tv();
  if (!mma.ok()) return misused(a.error());
  if (!options.svg.empty() || !options.html.empty()) {
    if (Exit e = write_picture(options.svg, mma_svg(mma)); e != Exit::kDone) return e;
    return write_picture(options.html, mma_html(mma));
  }
  print(atom.to_string() + ", tile " + mma.tile_mnk().to_string() + "\na: " + a.to_string() +
        "\nb: " + b.to_string() + "\nc: " + c.to_string() + "\n");
  return Exit::kDone;
}

// The copy engine's boxes of a tile, and pictures of them.
Exit show_boxes(const LayoutOptions& options, const Layout& tile, ir::Scalar scalar) {
  const std::string text = boxes_text(tile, scalar);
  if (absl::StartsWith(text, kError)) return refuse(text);
  print(text);
  // Tiles of more than two modes have no picture.
  if (options.svg.empty() && options.html.empty()) return Exit::kDone;
  if (Exit e = write_picture(options.svg, boxes_svg(tile, scalar)); e != Exit::kDone) return e;
  return write_picture(options.html, boxes_html(tile, scalar));
}

// A tile as the copy engine or the tensor cores read it.
Exit show_tile(const LayoutOptions& options) {
  const Layout layout = parse_layout(options.expression);
  if (!layout.ok()) return misused(layout.error());
  const std::optional<ir::Scalar> scalar = ir::scalar_from_name(options.type);
  if (!scalar || ir::info(*scalar).bits < 8 || ir::info(*scalar).bits > 32) {
    return misused("--type " + options.type +
                   (scalar ? ": elements of tiles have 8, 16 or 32 bits, as e4m3, bf16 or f32"
                           : " is no element type; those of tiles are e4m3, bf16, f32 and others "
                             "of 8, 16 or 32 bits"));
  }
  if (options.boxes) return show_boxes(options, layout, *scalar);
  int64_t rows = options.rows;
  if (rows == 0 && is_static(layout)) rows = size(get(layout, 0)).value();
  const std::string text = to_string(SmemDescriptor(layout, *scalar, rows));
  if (absl::StartsWith(text, kError)) return refuse(text);
  print(text);
  return Exit::kDone;
}

}  // namespace

Exit calculate_layout(const LayoutOptions& options) {
  if (options.functions) {
    for (const std::string& function : calculator_functions()) print(function + "\n");
    return Exit::kDone;
  }
  if (options.batch) {
    if (!options.expression.empty()) return misused("--batch reads expressions, and takes none");
    return answer_lines();
  }
  if (!options.atom.empty()) return show_atom(options);
  if (options.mmas) {
    for (const std::string& name : mma_atom_names()) print(name + "\n");
    return Exit::kDone;
  }
  if (!options.mma.empty()) return show_mma(options);
  if (options.expression.empty()) {
    return misused("layout needs an expression, such as 'zipped_divide((8,8):(8,1), (2,4))'");
  }
  if (options.descriptor || options.boxes) return show_tile(options);
  const LayoutValue value = evaluate_layout(options.expression);
  const std::string text = to_string(value);
  if (absl::StartsWith(text, kError)) return misused(text.substr(kError.size()));
  const bool draws = options.table || !options.svg.empty() || !options.html.empty();
  if (!draws) {
    print(text + "\n");
    return Exit::kDone;
  }
  const Layout layout = parse_layout(options.expression);
  if (!layout.ok()) return misused(layout.error());
  DrawOptions how{.bank_bits = options.bank_bits};
  if (!options.tile.empty()) {
    how.tile = parse_int_tuple(options.tile);
    if (!how.tile->ok()) return misused(how.tile->error());
  }
  if (options.table) {
    const std::string table = layout_table(layout, how);
    if (absl::StartsWith(table, kError)) return refuse(table);
    print(table);
  }
  if (Exit e = write_picture(options.svg, layout_svg(layout, how)); e != Exit::kDone) return e;
  return write_picture(options.html, layout_html(layout, how));
}

}  // namespace heddle::tools
