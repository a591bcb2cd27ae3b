// Every atom of ir/mma_atoms.def on the test's device, against products in double precision: mma by its fragments,
// wgmma with a in shared memory and in registers, in both majors, under every swizzle and for several widths.
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "heddle/ir/float_bits.h"
#include "heddle/ir/kernel_source.h"
#include "heddle/ir/mma_atom.h"
#include "heddle/ir/text/parser.h"
#include "heddle/runtime/launch.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ir::MmaAtom;
using ir::MmaKind;
using ir::MmaTypes;
using ir::Scalar;

// A kernel in text, whose parameters are pointers.
class TextKernel : public ir::KernelSource {
 public:
  explicit TextKernel(const std::string& text)
      : kernel_(ir::parse(text, "mma_atoms.ir", {.text_as_source = true}).value()) {
    for (ir::Param& param : kernel_.params()) {
      param.unbounded = true;
      params_.push_back({.name = absl::StrCat("p", params_.size()),
                         .type = kernel_.type(param.value),
                         .unbounded = true});
    }
  }

  const std::string& name() const override { return kernel_.name(); }
  ir::SourceLine place() const override { return {}; }
  absl::Span<const ir::ParamInfo> params() const override { return params_; }
  ir::TraceResult trace(const ir::Specialization& specialization) const override {
    ir::TraceResult result{kernel_, {}};
    result.kernel.block = specialization.block;
    result.kernel.target = specialization.target;
    for (const ir::Guard& guard : specialization.facts) {
      result.kernel.set_fact(guard.fact, guard.value);
    }
    return result;
  }

 private:
  ir::Kernel kernel_;
  std::vector<ir::ParamInfo> params_;
};

// Elements as their bits.
using Elements = std::vector<uint64_t>;

std::vector<std::byte> to_bytes(Scalar scalar, const Elements& elements) {
  const auto size = static_cast<size_t>(ir::bytes_of(scalar));
  std::vector<std::byte> bytes(elements.size() * size);
  for (size_t i = 0; i < elements.size(); ++i) {
    std::memcpy(bytes.data() + i * size, &elements[i], size);
  }
  return bytes;
}

// Runs one block on the inputs; the last parameter is the result, of `count` elements.
Elements run(const std::string& text, int threads,
             const std::vector<std::pair<Scalar, Elements>>& inputs, Scalar scalar, size_t count) {
  const TextKernel kernel(text);
  const Device& device = test_device();
  const Stream stream = device.default_stream();
  std::vector<Buffer> buffers;
  for (const auto& [type, elements] : inputs) {
    buffers.push_back(device.upload<std::byte>(to_bytes(type, elements)).value());
  }
  const auto size = static_cast<size_t>(ir::bytes_of(scalar));
  buffers.push_back(device.allocate(count * size).value());
  std::vector<runtime::Argument> arguments;
  for (const Buffer& buffer : buffers) {
    arguments.push_back(runtime::pointer_argument(buffer.address()));
  }
  EXPECT_THAT(runtime::launch(stream, kernel, {.grid = 1, .block = threads}, arguments), IsOk())
      << text;
  const std::vector<std::byte> bytes = buffers.back().download<std::byte>(stream).value();
  Elements result(count);
  for (size_t i = 0; i < count; ++i) std::memcpy(&result[i], bytes.data() + i * size, size);
  return result;
}

// --- Matrices and what becomes of them ---

double value_of(Scalar scalar, uint64_t bits) {
  if (is_float(scalar)) return ir::float_value(scalar, bits);
  const int unused = 64 - ir::info(scalar).bits;
  return is_signed(scalar) ? static_cast<double>(static_cast<int64_t>(bits << unused) >> unused)
                           : static_cast<double>(bits);
}

struct Matrix {
  Scalar scalar;
  int rows, columns;
  Elements elements;  // row by row

  Matrix(Scalar type, int row_count, int column_count, std::mt19937_64& random)
      : scalar(type), rows(row_count), columns(column_count) {
    const uint64_t mask = ~uint64_t{0} >> (64 - ir::info(type).bits);
    for (int i = 0; i < rows * columns; ++i) {
      const double number = std::uniform_real_distribution<double>(-1, 1)(random);
      uint64_t bits = is_float(type) ? ir::float_bits(type, number) : random() & mask;
      if (type == Scalar::kTF32) bits |= random() & 0x1FFF;  // what does not count
      elements.push_back(bits);
    }
  }
  uint64_t bits(int row, int column) const {
    return elements[static_cast<size_t>(row * columns + column)];
  }
  double at(int row, int column) const { return value_of(scalar, bits(row, column)); }
};

struct Place {
  int row, column;
};
// Where value v of thread t of an operand or an accumulator is, by the figures of the PTX ISA; b has 8 rows.
Place operand_place(Scalar scalar, bool is_b, int t, int v) {
  const int together = 4 / ir::bytes_of(scalar);
  const int lane = t % 32, number = v / together;
  const int row = t / 32 * 16 + lane / 4 + (is_b ? 0 : number % 2 * 8);
  const int half = is_b ? number : number / 2;
  return {row, (half * 4 + lane % 4) * together + v % together};
}
Place accumulator_place(int t, int v) {
  return {t / 32 * 16 + t % 32 / 4 + v / 2 % 2 * 8, v / 4 * 8 + t % 4 * 2 + v % 2};
}

// Thread by thread, what each of them holds.
template <class PlaceOf>
Elements fragments(const Matrix& matrix, int threads, PlaceOf place_of) {
  const int values = matrix.rows * matrix.columns / threads;
  Elements elements;
  for (int t = 0; t < threads; ++t) {
    for (int v = 0; v < values; ++v) {
      const Place place = place_of(t, v);
      elements.push_back(matrix.bits(place.row, place.column));
    }
  }
  return elements;
}

// Compares with accumulator + sign * a * b, within the bound that ops.def states.
void expect_product(const Elements& got, const Matrix& a, const Matrix& b, const Matrix& c,
                    int threads, double sign, const std::string& what) {
  const bool narrow = is_float(a.scalar) && ir::info(a.scalar).bits == 8;
  const int values = c.rows * c.columns / threads;
  int wrong = 0;
  for (int t = 0; t < threads; ++t) {
    for (int v = 0; v < values; ++v) {
      const Place place = accumulator_place(t, v);
      double sum = c.at(place.row, place.column), magnitude = std::fabs(sum);
      for (int k = 0; k < a.columns; ++k) {
        const double product = sign * a.at(place.row, k) * b.at(place.column, k);
        sum += product;
        magnitude += std::fabs(product);
      }
      const uint64_t bits = got[static_cast<size_t>(t * values + v)];
      if (c.scalar == Scalar::kI32) {
        const auto exact = static_cast<uint32_t>(static_cast<int64_t>(sum));
        wrong += static_cast<uint32_t>(bits) == exact ? 0 : 1;
        continue;
      }
      double bound = (a.columns + 1) * std::ldexp(magnitude, narrow ? -13 : -23);
      if (c.scalar == Scalar::kF16) bound += std::ldexp(magnitude, -9) + 0x1p-24;
      const double difference = std::fabs(value_of(c.scalar, bits) - sum);
      if (difference <= bound) continue;
      if (wrong++ == 0) {
        ADD_FAILURE() << what << ": element (" << place.row << ", " << place.column << ") is "
                      << value_of(c.scalar, bits) << ", not " << sum << " within " << bound;
      }
    }
  }
  EXPECT_EQ(wrong, 0) << what;
}

// --- Kernels ---

std::string view(absl::string_view name, Scalar scalar) {
  return absl::StrCat("%", name, ": view<", ir::info(scalar).name, ", global, 1> [?] strides [1]");
}
std::string fragment(Scalar scalar, int count, absl::string_view kind = "frag") {
  return absl::StrCat(kind, "<", ir::info(scalar).name, ", ", count, ">");
}

// Loads thread %i's `count` elements of %from to the fragment %to.
std::string load_fragment(absl::string_view from, absl::string_view to, Scalar scalar, int count) {
  // A vector is aligned to its size.
  const int each = std::min(count & -count, 16 / ir::bytes_of(scalar));
  std::string text = absl::StrCat("  %", to, "_n = const ", count, " : i32\n  %", to,
                                  "_at = mul %i, %", to, "_n : i32\n");
  std::vector<std::string> parts;
  for (int first = 0; first < count; first += each) {
    const std::string part = absl::StrCat("%", to, "_", first);
    const std::string type =
        each == 1 ? std::string(ir::info(scalar).name) : fragment(scalar, each, "vec");
    absl::StrAppend(&text, "  ", part, "c = const ", first, " : i32\n  ", part, "o = add %", to,
                    "_at, ", part, "c : i32\n  ", part, " = load %", from, ", ", part, "o : ", type,
                    "\n");
    parts.push_back(part);
  }
  return absl::StrCat(text, "  %", to, " = pack ", absl::StrJoin(parts, ", "), " : ",
                      fragment(scalar, count), "\n");
}
std::string store_fragment(absl::string_view from, absl::string_view to, Scalar scalar, int count) {
  std::string text = absl::StrCat("  %", to, "_n = const ", count, " : i32\n  %", to,
                                  "_at = mul %i, %", to, "_n : i32\n");
  for (int first = 0; first < count; ++first) {
    const std::string part = absl::StrCat("%", to, "_", first);
    absl::StrAppend(&text, "  ", part, "c = const ", first, " : i32\n  ", part, "o = add %", to,
                    "_at, ", part, "c : i32\n  ", part, " = extract %", from, " {index = ", first,
                    "} : ", ir::info(scalar).name, "\n  store %", to, ", ", part, ", ", part,
                    "o\n");
  }
  return text;
}

bool device_has(ir::Feature feature) {
  if (!on_gpu()) return has(ir::default_target(), feature);
  const DeviceInfo& info = test_device().info();
  const ir::Target* const target = ir::target_for_device(info.compute_major, info.compute_minor);
  return target != nullptr && has(*target, feature);
}

std::vector<MmaTypes> types_of(const MmaAtom& atom) {
  std::vector<MmaTypes> all;
  for (int a = 1; a < ir::kScalarCount; ++a) {
    for (int b = 1; b < ir::kScalarCount; ++b) {
      const MmaTypes types = {atom.kind, static_cast<Scalar>(a), static_cast<Scalar>(b),
                              atom.accumulator};
      if (atom.a.contains(types.a) && atom.b.contains(types.b)) all.push_back(types);
    }
  }
  return all;
}

void run_mma(const MmaAtom& atom, const MmaTypes& types) {
  std::mt19937_64 random(1);
  const Matrix a(types.a, 16, atom.k, random), b(types.b, 8, atom.k, random),
      c(types.accumulator, 16, 8, random);
  const std::string text = absl::StrCat(
      "kernel @product(", view("a", types.a), ", ", view("b", types.b), ", ",
      view("c", types.accumulator), ", ", view("d", types.accumulator),
      ") block(32, 1, 1) {\n  %i = thread_idx {axis = x} : i32\n",
      load_fragment("a", "fa", types.a, atom.k / 2), load_fragment("b", "fb", types.b, atom.k / 4),
      load_fragment("c", "fc", types.accumulator, 4),
      "  %fd = mma %fc, %fa, %fb : ", fragment(types.accumulator, 4), "\n",
      store_fragment("fd", "d", types.accumulator, 4), "}\n");
  const Elements d =
      run(text, 32,
          {{types.a,
            fragments(a, 32, [&](int t, int v) { return operand_place(types.a, false, t, v); })},
           {types.b,
            fragments(b, 32, [&](int t, int v) { return operand_place(types.b, true, t, v); })},
           {types.accumulator, fragments(c, 32, accumulator_place)}},
          types.accumulator, 128);
  expect_product(d, a, b, c, 32, 1, mma_name(atom, types, 8));
}

TEST(MmaAtoms, OfWarps) {
  int left_out = 0;
  for (const MmaAtom& atom : ir::mma_atoms()) {
    if (atom.kind != MmaKind::kMma) continue;
    if (!device_has(atom.feature)) {
      ++left_out;
      continue;
    }
    for (const MmaTypes& types : types_of(atom)) run_mma(atom, types);
  }
  if (left_out > 0) GTEST_SKIP() << left_out << " atoms are none of this device's";
}

// --- Tiles in shared memory ---

// How a tile lies there, by the PTX ISA's canonical layouts.
struct TileForm {
  int swizzle = 128;        // bytes of a row of the pattern; 0: none
  bool transposed = false;  // columns contiguous
};
struct SharedTile {
  int64_t leading = 0, stride = 0;  // bytes
  Elements elements;                // in the order of memory
};

SharedTile lay_out(const Matrix& matrix, const TileForm& form) {
  const int size = ir::bytes_of(matrix.scalar);
  // Major: along what is contiguous; minor: the other mode.
  const int majors = form.transposed ? matrix.rows : matrix.columns;
  const int minors = form.transposed ? matrix.columns : matrix.rows;
  const int width = form.swizzle == 0 ? 16 : form.swizzle;  // bytes of a row
  const int panels = (majors * size + width - 1) / width;
  const int groups = (minors + 7) / 8;
  SharedTile tile;
  // Groups of eight rows follow each other, and then the next panel of rows does.
  const int64_t next_group = 8 * width, next_panel = next_group * groups;
  const bool plain_transposed = form.swizzle == 0 && form.transposed;
  tile.leading = plain_transposed ? next_group : next_panel;
  tile.stride = plain_transposed ? next_panel : next_group;
  tile.elements.resize(static_cast<size_t>(next_panel * panels / size));
  for (int minor = 0; minor < minors; ++minor) {
    for (int major = 0; major < majors; ++major) {
      const int byte = major * size;
      int64_t at =
          byte / width * next_panel + minor / 8 * next_group + minor % 8 * width + byte % width;
      if (form.swizzle != 0) at ^= (at >> 7 & (form.swizzle / 16 - 1)) << 4;
      tile.elements[static_cast<size_t>(at / size)] =
          form.transposed ? matrix.bits(major, minor) : matrix.bits(minor, major);
    }
  }
  return tile;
}

// Copies %from, `count` elements, to a shared array, and describes the tile there.
std::string share(absl::string_view from, Scalar scalar, const SharedTile& tile,
                  const TileForm& form) {
  const int each = 16 / ir::bytes_of(scalar);
  const absl::string_view type = ir::info(scalar).name;
  // A tile that is narrower than its pattern has one panel: the leading offset is not used.
  return absl::StrCat(
      "  %s", from, " = shared {extents = [", tile.elements.size(), "], align = 1024} : view<",
      type, ", shared, 1>\n  %n", from, " = const ",
      tile.elements.size() / static_cast<size_t>(each), " : i32\n  %e", from, " = const ", each,
      " : i32\n  for %j", from, " in %i .. %n", from, " step %threads {\n    %o", from, " = mul %j",
      from, ", %e", from, " : i32\n    %v", from, " = load %", from, ", %o", from, " : vec<", type,
      ", ", each, ">\n    store %s", from, ", %v", from, ", %o", from, "\n    yield\n  }\n  %d",
      from, " = smem.desc %s", from, ", %zero {leading = ", tile.leading,
      ", stride = ", tile.stride, ", swizzle = ", form.swizzle, "} : smem_desc<", type, ">\n");
}

struct GroupProduct {
  MmaTypes types;
  int n = 64, k = 16;
  bool in_registers = false;
  TileForm a_form = {}, b_form = {};
  bool negate_a = false, negate_b = false;
};

void run_wgmma(const GroupProduct& p) {
  constexpr int kThreads = 128;
  std::mt19937_64 random(2);
  const Scalar accumulator = p.types.accumulator;
  const Matrix a(p.types.a, 64, p.k, random), b(p.types.b, p.n, p.k, random),
      c(accumulator, 64, p.n, random);
  const SharedTile a_tile = lay_out(a, p.a_form), b_tile = lay_out(b, p.b_form);
  const int count = p.n / 2, a_count = p.k / 2;
  const std::string pending = fragment(accumulator, count, "pending");
  const std::string a_pending = fragment(p.types.a, a_count, "pending");
  std::vector<std::string> attrs;
  const auto flag = [&](bool set, absl::string_view name) {
    if (set) attrs.push_back(absl::StrCat(name, " = 1"));
  };
  flag(p.a_form.transposed && !p.in_registers, "transpose_a");
  flag(p.b_form.transposed, "transpose_b");
  flag(p.negate_a, "negate_a");
  flag(p.negate_b, "negate_b");
  const std::string words =
      attrs.empty() ? "" : absl::StrCat(" {", absl::StrJoin(attrs, ", "), "}");
  const std::string text = absl::StrCat(
      "kernel @product(", view("a", p.types.a), ", ", view("b", p.types.b), ", ",
      view("c", accumulator), ", ", view("d", accumulator),
      ") block(128, 1, 1) {\n  %i = thread_idx {axis = x} : i32\n  %zero = const 0 : i32\n"
      "  %threads = const 128 : i32\n",
      share("b", p.types.b, b_tile, p.b_form),
      p.in_registers ? load_fragment("a", "fa", p.types.a, a_count)
                     : share("a", p.types.a, a_tile, p.a_form),
      "  fence.async\n  barrier\n", load_fragment("c", "fc", accumulator, count),
      "  %q = wgmma.begin %fc : ", pending, "\n",
      p.in_registers ? absl::StrCat("  %ra = wgmma.begin %fa : ", a_pending, "\n") : "",
      "  %m = wgmma %q, ", p.in_registers ? "%ra" : "%da", ", %db", words, " : ", pending,
      "\n  wgmma.commit\n  %fd", p.in_registers ? ", %fe" : "", " = wgmma.wait %m",
      p.in_registers ? ", %ra" : "", " {groups = 0} : ", fragment(accumulator, count),
      p.in_registers ? absl::StrCat(", ", fragment(p.types.a, a_count)) : "", "\n",
      store_fragment("fd", "d", accumulator, count), "}\n");
  const Elements a_elements =
      p.in_registers
          ? fragments(a, kThreads,
                      [&](int t, int v) { return operand_place(p.types.a, false, t, v); })
          : a_tile.elements;
  const Elements d = run(text, kThreads,
                         {{p.types.a, a_elements},
                          {p.types.b, b_tile.elements},
                          {accumulator, fragments(c, kThreads, accumulator_place)}},
                         accumulator, static_cast<size_t>(64 * p.n));
  const std::string what =
      absl::StrCat(mma_name(*find_mma_atom(p.types), p.types, p.n), " a ",
                   p.in_registers ? "in registers" : absl::StrCat("swizzled by ", p.a_form.swizzle),
                   p.a_form.transposed ? ", transposed" : "", "; b swizzled by ", p.b_form.swizzle,
                   p.b_form.transposed ? ", transposed" : "");
  expect_product(d, a, b, c, kThreads, p.negate_a != p.negate_b ? -1 : 1, what);
}

// Of each row: several widths, a in shared memory and in registers.
TEST(MmaAtoms, OfWarpGroups) {
  int left_out = 0;
  for (const MmaAtom& atom : ir::mma_atoms()) {
    if (atom.kind != MmaKind::kWgmma) continue;
    if (!device_has(atom.feature)) {
      ++left_out;
      continue;
    }
    for (const MmaTypes& types : types_of(atom)) {
      for (const int n : {8, 24, 64, 144, 256}) {
        for (const bool in_registers : {false, true}) {
          run_wgmma({.types = types, .n = n, .k = atom.k, .in_registers = in_registers});
        }
      }
    }
  }
  if (left_out > 0) GTEST_SKIP() << left_out << " atoms are none of this device's";
}

TEST(MmaAtoms, OfEveryWidth) {
  if (!device_has(ir::Feature::kWgmma)) GTEST_SKIP() << "this device has no wgmma";
  for (const MmaTypes& types :
       {MmaTypes{MmaKind::kWgmma, Scalar::kBF16, Scalar::kBF16, Scalar::kF32},
        MmaTypes{MmaKind::kWgmma, Scalar::kI8, Scalar::kI8, Scalar::kI32}}) {
    const MmaAtom& atom = *find_mma_atom(types);
    for (int n = 8; n <= 256; n += 8) {
      if (contains(atom.n, n)) run_wgmma({.types = types, .n = n, .k = atom.k});
    }
  }
}

TEST(MmaAtoms, OfTilesUnderEverySwizzleInBothMajors) {
  if (!device_has(ir::Feature::kWgmma)) GTEST_SKIP() << "this device has no wgmma";
  for (const MmaAtom& atom : ir::mma_atoms()) {
    if (atom.kind != MmaKind::kWgmma || !device_has(atom.feature)) continue;
    const MmaTypes types = types_of(atom).front();
    for (const int swizzle : {0, 32, 64, 128}) {
      for (const bool a_transposed : {false, true}) {
        for (const bool b_transposed : {false, true}) {
          if (atom.majors == ir::MmaMajors::kDepthMajor && (a_transposed || b_transposed)) continue;
          run_wgmma({.types = types,
                     .n = 128,
                     .k = atom.k,
                     .a_form = {swizzle, a_transposed},
                     .b_form = {swizzle, b_transposed}});
        }
      }
    }
  }
}

TEST(MmaAtoms, OfNegatedOperands) {
  if (!device_has(ir::Feature::kWgmma)) GTEST_SKIP() << "this device has no wgmma";
  for (const MmaAtom& atom : ir::mma_atoms()) {
    if (atom.kind != MmaKind::kWgmma || !is_float(atom.accumulator)) continue;
    for (const int signs : {1, 2, 3}) {
      run_wgmma({.types = types_of(atom).front(),
                 .k = atom.k,
                 .in_registers = signs == 2,
                 .negate_a = (signs & 1) != 0,
                 .negate_b = (signs & 2) != 0});
    }
  }
}

}  // namespace
}  // namespace heddle
