#include "heddle/dsl/mma/gemm.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/modes_internal.h"
#include "heddle/dsl/mma/smem_operand_internal.h"
#include "heddle/dsl/mma/wgmma.h"
#include "heddle/dsl/tensor/runs_internal.h"

namespace heddle {
namespace detail {
namespace {

using ir::Opcode;

int64_t count_of(const IntTuple& shape, int mode) {
  return mode < rank(shape) ? size(get(shape, mode)).value() : 1;
}

// How many atoms a product has along each mode.
struct AtomCounts {
  int64_t m, n, k;
};

// What the operands of a product are, for messages.
bool wrong(const TiledMma& mma, const AnyTensor& a, const AnyTensor& b, const AnyAccumulator& c,
           const char* fix, SourceLoc loc) {
  fail(loc,
       absl::StrCat("gemm by ", mma.atom().to_string(), ": a is ", to_string(a), ", b ",
                    to_string(b), ", and sums of ", ir::info(c.scalar).name, " are ",
                    c.shape.to_string()),
       fix);
  return false;
}

bool has_types(const TiledMma& mma, const AnyTensor& a, const AnyTensor& b, const AnyAccumulator& c,
               SourceLoc loc) {
  const MmaAtom& atom = mma.atom();
  if (a.scalar == atom.a() && b.scalar == atom.b() && c.scalar == atom.c()) return true;
  const std::string takes =
      absl::StrCat("the atom takes a of ", ir::info(atom.a()).name, ", b of ",
                   ir::info(atom.b()).name, " and sums of ", ir::info(atom.c()).name);
  return wrong(mma, a, b, c, takes.c_str(), loc);
}

// --- Sums of products that are complete at once -------------------------------------------------

// A fragment for each atom, (m,n).
class Sums {
 public:
  Sums(const TiledMma& mma, const AnyAccumulator& c, const Node& adds, SourceLoc loc)
      : mma_(mma), all_(c), values_(static_cast<int>(count_of(c.shape, 0))), loc_(loc) {
    const int64_t atoms = count_of(c.shape, 1) * count_of(c.shape, 2);
    const bool from_nothing = adds.is_host() && adds.bits == 0;
    const Node zero = convert_zero(c.scalar);
    Node whole = c.nodes.front();
    if (from_nothing) {
      whole = spread(zero, whole.type, loc);
    } else if (!adds.is_host()) {
      whole = emit_select(adds, whole, zero, loc);
    }
    const NodeType type = fragment_type(c.scalar, values_, loc);
    for (int64_t atom = 0; atom < atoms; ++atom) {
      atoms_.push_back(atoms == 1 ? whole
                                  : emit_part(type, Opcode::kSlice, whole,
                                              static_cast<int>(atom) * values_, loc));
    }
  }

  void add(int64_t m, int64_t n, const Node& a, const Node& b) {
    Node& sum = atoms_[static_cast<size_t>(m + count_of(all_.shape, 1) * n)];
    const bool fused = mma_.atom().kind() == MmaAtom::Kind::kFma;
    const Node operands[] = {fused ? a : sum, fused ? b : a, fused ? sum : b};
    sum = record(fused ? Opcode::kFma : Opcode::kMma, operands, sum.type, {}, loc_);
  }

  AnyAccumulator result() {
    all_.nodes = {atoms_.size() == 1
                      ? atoms_.front()
                      : record(Opcode::kPack, atoms_, all_.nodes.front().type, {}, loc_)};
    return all_;
  }

 private:
  // 0 of an element type.
  static Node convert_zero(ir::Scalar scalar) {
    Node zero = host_node(int32_t{0});
    zero.type = scalar_type(scalar);
    return zero;
  }

  const TiledMma& mma_;
  AnyAccumulator all_;
  int values_;
  SourceLoc loc_;
  Nodes atoms_;
};

// The fragments of a register tensor (values,rows,k), those of a k behind each other.
Nodes fragments_of(const AnyTensor& registers, SourceLoc loc) {
  const Nodes elements = gather_elements(registers, {}, nullptr, loc);
  const auto values = static_cast<size_t>(count_of(registers.layout.shape(), 0));
  Nodes fragments;
  for (size_t i = 0; i + values <= elements.size(); i += values) {
    fragments.push_back(
        fragment_of(registers.scalar, absl::MakeConstSpan(elements.data() + i, values), loc));
  }
  return fragments;
}

// --- wgmma --------------------------------------------------------------------------------------

// Parts of instructions, (values (rows,depth),rows,k), as a tile (rows,depth).
AnyTensor as_tile(const AnyTensor& part) {
  AnyTensor tile = part;
  const Layout outer = part.layout.outer();
  const auto rest = [&](int mode) { return mode < rank(outer) ? get(outer, mode) : Layout(); };
  tile.layout = part.layout.with_outer(make_layout(make_layout(get(outer, {0, 0}), rest(1)),
                                                   make_layout(get(outer, {0, 1}), rest(2))));
  return tile;
}

AnyAccumulator multiply_async(const TiledMma& mma, const AnyTensor& a, const AnyTensor& b,
                              const AnyAccumulator& c, const AtomCounts& extents, const Node& adds,
                              SourceLoc loc) {
  const MmaAtom& atom = mma.atom();
  const SmemOperand columns(as_tile(b), atom.n(), "b", loc);
  std::optional<SmemOperand> rows;
  Nodes pending;
  if (atom.a_in_smem()) {
    rows.emplace(as_tile(a), atom.m(), "a", loc);
  } else {
    for (const Node& fragment : fragments_of(a, loc)) {
      pending.push_back(emit_wgmma_begin(fragment, loc));
    }
  }
  if (!columns.ok() || (rows && !rows->ok())) return c;
  AnyAccumulator sums = c;
  const Node always = host_node(true);
  for (int64_t k = 0; k < extents.k; ++k) {
    for (int64_t n = 0; n < extents.n; ++n) {
      const WgmmaOperand right{columns.part(n, k), columns.major()};
      for (int64_t m = 0; m < extents.m; ++m) {
        const WgmmaOperand left =
            rows ? WgmmaOperand{rows->part(m, k), rows->major()}
                 : WgmmaOperand{pending[static_cast<size_t>(m + extents.m * k)], Major::k};
        Node& sum = sums.nodes[static_cast<size_t>(m + extents.m * n)];
        sum = record_wgmma(sum, left, right, k == 0 ? adds : always, loc);
      }
    }
  }
  // Registers are given back before anybody can write them.
  if (!pending.empty()) emit(op::kWgmmaCommit, loc);
  for (const Node& operand : pending) emit_wgmma_wait(operand, 0, loc);
  return sums;
}

// --- Operands that are loaded -------------------------------------------------------------------

bool is_shared(const AnyTensor& tensor) {
  Trace* const trace = Trace::current();
  return tensor.storage == Storage::kView && trace != nullptr &&
         trace->kernel().type(trace->use(tensor.node, {})).space == ir::Space::kShared;
}

// Loads the fragments of an operand from its tile (rows,depth), step by step along the depth.
class Loader {
 public:
  Loader(const ThrMma& mine, bool is_a, const AnyTensor& tile, SourceLoc loc)
      : loc_(loc), part_(is_a ? mine.partition_A(tile, loc) : mine.partition_B(tile, loc)) {
    if (!part_.layout.ok()) return;
    const TiledMma& mma = mine.tiled_mma();
    const IntTuple shape = part_.layout.shape();
    together_ = 1;
    const int64_t depth = count_of(shape, 2);
    if (const auto copy = by_matrices(mma, is_a, tile)) {
      const int64_t covered = size(get(mma.tile_mnk(), 2)).value();
      together_ = depth * covered / size(get(tile.layout.shape(), 1)).value();
      const AnyTensor rows = rows_of(*copy, tile, mine.thread());
      if (has_matrices(*copy, rows)) {
        copy_ = copy;
        part_ = rows;
      } else {
        together_ = 1;
      }
    }
    steps_ = depth / together_;
    fragments_ = IntTuple{get(shape, 0), get(shape, 1), together_};
  }

  bool ok() const { return part_.layout.ok(); }
  int64_t steps() const { return steps_; }
  // How many atoms a step has along the depth.
  int64_t together() const { return together_; }

  // The fragments of a step, those of a k behind each other.
  Nodes load(int64_t step) const {
    const AnyTensor to = new_registers(part_.scalar, make_layout(fragments_), loc_);
    const AnyTensor from = sliced(part_, {_, _, step}, loc_);
    if (copy_) {
      AnyTensor retiled = to;
      retiled.layout = copy_->retile(to.layout, loc_);
      copy_tiled(copy_->atom(), {}, from, retiled, loc_);
    } else {
      copy_tensors({}, from, to, loc_);
    }
    return fragments_of(to, loc_);
  }

 private:
  // The copy by ldmatrix, where elements are contiguous along one mode.
  std::optional<TiledCopy> by_matrices(const TiledMma& mma, bool is_a,
                                       const AnyTensor& tile) const {
    constexpr int kLaneBytes = 4;
    if (!is_shared(tile) || mma.atom().kind() != MmaAtom::Kind::kMma) return std::nullopt;
    const Layout outer = tile.layout.outer();
    const bool by_rows = coalesced(get(outer, 0))[0].stride.value.is_constant(1);
    const int bytes = ir::bytes_of(tile.scalar);
    if (by_rows && bytes != 2) return std::nullopt;
    const Layout tv = is_a ? mma.layout_A_tv(loc_) : mma.layout_B_tv(loc_);
    const int64_t lane = size(get(tv, 1)).value() * bytes / kLaneBytes;
    const int matrices = lane % 4 == 0 ? 4 : lane % 2 == 0 ? 2 : 1;
    const CopyAtom atom(tile.scalar, LdMatrix{matrices, by_rows}, loc_);
    return is_a ? make_tiled_copy_A(atom, mma, loc_) : make_tiled_copy_B(atom, mma, loc_);
  }

  AnyTensor rows_of(const TiledCopy& copy, const AnyTensor& tile, const IntTuple& thread) const {
    AnyTensor rows = tile;
    rows.layout = copy.tidfrg_S(tile.layout, loc_);
    return sliced(rows, {thread, _, repeat_as_tuple(_, rank(tile.layout))}, loc_);
  }

  // Whether the rows of the matrices are known to be pieces of 16 bytes.
  bool has_matrices(const TiledCopy& copy, const AnyTensor& rows) const {
    const Probe probe;
    if (!rows.layout.ok()) return false;
    const auto width = static_cast<int>(size(get(copy.atom().source(), 1)).value());
    return Runs(rows, static_size(rows, "gemm", loc_), {}, width, loc_).width() == width;
  }

  SourceLoc loc_;
  AnyTensor part_;
  IntTuple fragments_;
  int64_t together_ = 1, steps_ = 0;
  std::optional<TiledCopy> copy_;
};

AnyAccumulator multiply_loaded(const ThrMma& mine, const AnyTensor& a, const AnyTensor& b,
                               const AnyAccumulator& c, const Node& adds, SourceLoc loc) {
  const TiledMma& mma = mine.tiled_mma();
  const Loader rows(mine, true, a, loc), columns(mine, false, b, loc);
  if (!rows.ok() || !columns.ok()) return c;
  Sums sums(mma, c, adds, loc);
  const int64_t m_count = count_of(c.shape, 1), n_count = count_of(c.shape, 2);
  // The next step is loaded while this one is multiplied.
  Nodes next_a = rows.load(0), next_b = columns.load(0);
  for (int64_t step = 0; step < rows.steps(); ++step) {
    const Nodes left = std::exchange(next_a, {}), right = std::exchange(next_b, {});
    if (step + 1 < rows.steps()) {
      next_a = rows.load(step + 1);
      next_b = columns.load(step + 1);
    }
    for (int64_t k = 0; k < rows.together(); ++k) {
      for (int64_t n = 0; n < n_count; ++n) {
        for (int64_t m = 0; m < m_count; ++m) {
          sums.add(m, n, left[static_cast<size_t>(m + m_count * k)],
                   right[static_cast<size_t>(n + n_count * k)]);
        }
      }
    }
  }
  return sums.result();
}

}  // namespace

AnyAccumulator new_accumulator(const TiledMma& mma, ir::Scalar scalar, const IntTuple& mn,
                               const AnyTensor* registers, SourceLoc loc) {
  AnyAccumulator c{
      .nodes = {},
      .shape = registers != nullptr ? registers->layout.shape() : partition_shape_C(mma, mn, loc),
      .scalar = scalar,
      .pending = mma.ok() && mma.atom().is_async()};
  if (mma.ok() && !size(get(mma.thr_layout_vmnk(), 3)).is_constant(1)) {
    fail(loc,
         absl::StrCat("make_accumulator: a TiledMma of ", mma.atom().to_string(), " with ",
                      size(get(mma.thr_layout_vmnk(), 3)).value(), " atoms along k"),
         "several warps would each hold a part of the same sums: use one atom along k, and more "
         "along m "
         "or n");
  }
  const bool usable = mma.ok() && c.shape.ok() && is_static(c.shape);
  const int64_t values = usable ? count_of(c.shape, 0) : 1;
  const int64_t atoms = usable ? count_of(c.shape, 1) * count_of(c.shape, 2) : 1;
  const bool all_at_once = !c.pending;
  const NodeType type =
      fragment_type(scalar, static_cast<int>(all_at_once ? values * atoms : values), loc);
  Nodes parts;
  if (registers != nullptr && usable) parts = fragments_of(*registers, loc);
  if (all_at_once) {
    c.nodes = {parts.empty()       ? record(Opcode::kUndef, {}, type, {}, loc)
               : parts.size() == 1 ? parts.front()
                                   : record(Opcode::kPack, parts, type, {}, loc)};
    return c;
  }
  for (int64_t i = 0; i < atoms; ++i) {
    c.nodes.push_back(emit_wgmma_begin(
        parts.empty() ? record(Opcode::kUndef, {}, type, {}, loc) : parts[static_cast<size_t>(i)],
        loc));
  }
  return c;
}

AnyAccumulator multiply(const TiledMma& mma, const AnyTensor& a, const AnyTensor& b,
                        const AnyAccumulator& c, const Node& adds, SourceLoc loc) {
  if (!mma.ok() || !a.layout.ok() || !b.layout.ok() || !c.shape.ok()) return c;
  const IntTuple &x = a.layout.shape(), &y = b.layout.shape();
  const MmaAtom& atom = mma.atom();
  const auto in_place = [](const AnyTensor& operand, bool in_smem) {
    return operand.storage == (in_smem ? Storage::kView : Storage::kRegisters) &&
           (!in_smem || is_shared(operand));
  };
  if (!in_place(a, atom.a_in_smem()) || !in_place(b, atom.b_in_smem())) {
    wrong(
        mma, a, b, c,
        "partition_fragment_A() and partition_fragment_B() make what the atom takes: registers, or "
        "tiles in shared memory; gemm(mma.get_slice(thread), …) takes tiles for every atom",
        loc);
    return c;
  }
  const bool shaped = x.is_tuple() && y.is_tuple() && rank(x) >= 2 && rank(x) <= 3 &&
                      rank(y) >= 2 && rank(y) <= 3 && is_static(x) && is_static(y);
  const AtomCounts extents{shaped ? count_of(x, 1) : 0, shaped ? count_of(y, 1) : 0,
                           shaped ? count_of(x, 2) : 0};
  if (!shaped || extents.k != count_of(y, 2) || extents.m != count_of(c.shape, 1) ||
      extents.n != count_of(c.shape, 2)) {
    wrong(mma, a, b, c, "parts are (values,m,k), (values,n,k) and (values,m,n)", loc);
    return c;
  }
  if (!has_types(mma, a, b, c, loc)) return c;
  if (atom.is_async()) return multiply_async(mma, a, b, c, extents, adds, loc);
  const Nodes left = fragments_of(a, loc), right = fragments_of(b, loc);
  Sums sums(mma, c, adds, loc);
  for (int64_t k = 0; k < extents.k; ++k) {
    for (int64_t n = 0; n < extents.n; ++n) {
      for (int64_t m = 0; m < extents.m; ++m) {
        sums.add(m, n, left[static_cast<size_t>(m + extents.m * k)],
                 right[static_cast<size_t>(n + extents.n * k)]);
      }
    }
  }
  return sums.result();
}

AnyAccumulator multiply_tiles(const ThrMma& mine, const AnyTensor& a, const AnyTensor& b,
                              const AnyAccumulator& c, const Node& adds, SourceLoc loc) {
  const TiledMma& mma = mine.tiled_mma();
  if (!mma.ok() || !a.layout.ok() || !b.layout.ok() || !c.shape.ok()) return c;
  const MmaAtom& atom = mma.atom();
  if (atom.is_async()) {
    const bool held = a.storage == Storage::kRegisters;
    const AnyAccumulator sums =
        multiply(mma, held ? a : mine.partition_A(a, loc), mine.partition_B(b, loc), c, adds, loc);
    if (atom.a_in_smem()) emit(op::kWgmmaCommit, loc);
    return sums;
  }
  const IntTuple &x = a.layout.shape(), &y = b.layout.shape();
  if (rank(x) != 2 || rank(y) != 2 || !is_static(x) || !is_static(y) ||
      !(size(get(x, 1)) == size(get(y, 1))) ||
      !(partition_shape_C(mma, {size(get(x, 0)), size(get(y, 0))}, loc) == c.shape)) {
    wrong(mma, a, b, c, "tiles are (m,k) and (n,k), and sums are for (m,n)", loc);
    return c;
  }
  if (!has_types(mma, a, b, c, loc)) return c;
  return multiply_loaded(mine, a, b, c, adds, loc);
}

AnyTensor settled(const AnyAccumulator& c, int groups, SourceLoc loc) {
  Nodes parts;
  for (const Node& node : c.nodes) {
    parts.push_back(c.pending ? emit_wgmma_wait(node, groups, loc) : node);
  }
  const AnyTensor registers = new_registers(c.scalar, make_layout(c.shape), loc);
  if (!registers.layout.ok()) return registers;
  const Node all = parts.size() == 1 ? parts.front()
                                     : record(Opcode::kPack, parts, registers.node.type, {}, loc);
  write_slot(registers.node, all, loc);
  return registers;
}

void multiply_in_place(const TiledMma& mma, const AnyTensor& a, const AnyTensor& b,
                       const AnyTensor& c, SourceLoc loc) {
  if (!mma.ok() || !c.layout.ok()) return;
  const AnyAccumulator sums =
      multiply(mma, a, b, new_accumulator(mma, c.scalar, 0, &c, loc), host_node(true), loc);
  commit(mma, loc);
  copy_tensors({}, settled(sums, 0, loc), c, loc);
}

}  // namespace detail

void commit(const TiledMma& mma, SourceLoc loc) {
  if (mma.ok() && mma.atom().is_async()) wgmma_commit(loc);
}

void wait(const TiledMma& mma, int groups, SourceLoc loc) {
  if (mma.ok() && mma.atom().is_async()) wgmma_wait_groups(groups, loc);
}

}  // namespace heddle
