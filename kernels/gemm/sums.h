// How a warpgroup sums the products along k of a tile. Internal to the kernels.
#pragma once

#include <tuple>
#include <utility>

#include "heddle/kernels/gemm/stages.h"

namespace heddle::kernels {

// The sums of a tile, (values,m,n) in registers, and the stage of the next one.
using TileSums = std::pair<Tensor<float>, PipelineState>;

// The tensor cores' own sums. Each product is waited for while the next one runs; meanwhile() runs
// while the first ones do, and started() when the last one has been started.
struct PlainLoop {
  // The kernel's further parameters, its name, and how many numbers a thread has for each sum.
  using Takes = Parameters<>;
  static constexpr const char* kName = "gemm(a, b, d, ...)";
  static constexpr int kAccumulators = 1;

  // The sums of a tile whose first block is in stage `first`.
  template <class T, class Meanwhile, class Started>
  TileSums operator()(const GemmStages<T>& x, const GemmTile&, const PipelineState& first,
                      const Meanwhile& meanwhile, const Started& started) const {
    using Loop = std::tuple<AccumulatorTile<float>, PipelineState, Int>;
    const TiledMma& mma = x.mine.tiled_mma();
    const Int ahead = min(x.blocks, 2);
    const Loop none(x.none(), first, first.index);
    const Loop begun = For(range(ahead), none, [&](const Int& k, const Loop& so_far) {
      const auto& [sums, p, last] = so_far;
      // The next place is computed behind the product, where this one's registers are free for it.
      const auto added = x.product(sums, p, k != 0);
      return Loop(added, x.pipe.next(p), p.index);
    });
    meanwhile();
    If(x.blocks > 1, [&] {
      wait(mma, 1);
      x.pipe.release(first);
    });
    const Loop done = For(range(ahead, x.blocks), begun, [&](const Int&, const Loop& so_far) {
      const auto& [sums, p, stage] = so_far;
      const auto added = x.product(sums, p, true);
      wait(mma, 1);
      x.pipe.release(stage);
      return Loop(added, x.pipe.next(p), p.index);
    });
    started();
    const Tensor<float> sums = settle(std::get<0>(done));
    x.pipe.release(std::get<2>(done));
    return {sums, std::get<1>(done)};
  }
};

// Sums in f32 outside of the tensor cores: each block along k counts by a factor for each row of a, and
// one for 128 columns of b, of which a tile has no more. Factors are loaded while the product before
// runs.
struct ScaledLoop {
  // The kernel's further parameters, its name, and how many numbers a thread has for each sum.
  using Takes = Parameters<Tensor<const float, 3>, Tensor<const float, 3>>;
  static constexpr const char* kName = "gemm_scaled(a, b, d, ...)";
  static constexpr int kAccumulators = 2;  // a second product fits beside them, whatever the tile
  static constexpr int kColumns = 128, kDepth = 128;  // of a block with one factor of b

  Tensor<const float, 3> a_scale, b_scale;  // (m, blocks, batch), (blocks of n, blocks, batch)

  // The sums of a tile whose first block is in stage `first`.
  template <class T, class Meanwhile, class Started>
  TileSums operator()(const GemmStages<T>& x, const GemmTile& tile, const PipelineState& first,
                      const Meanwhile& meanwhile, const Started& started) const {
    const GemmConfig& c = x.c;
    const int products = c.rows_of_group() / kProductRows;
    // A thread has two rows of each product: its sums are (2 of a row, 2 rows, columns).
    const auto every = [&](const auto& of_tile) { return x.mine.partition_C(of_tile)(_, _, 0); };
    const IntTuple one_column = {0, _, 0};
    const IntTuple extents = {tile.end, c.n};
    const auto places =
        local_tile(domain_offset({tile.row, 0}, make_identity_tensor(extents)), {c.m, c.n}, {0, 0});
    const auto inside = within(every(places)(one_column, _), extents);
    const auto a_tile = Tensor<const float>(domain_offset({tile.row, 0, tile.batch}, a_scale));
    // A block of a cluster may have a tile behind the last column.
    const Int last_column = b_scale.shape(0) - 1;
    const auto b_tile = Tensor<const float>(
        domain_offset({min(tile.column / kColumns, last_column), 0, tile.factor}, b_scale));
    using Factors = std::tuple<Fragment<float>, Float>;
    const auto factors = [&](const Int& k) {
      const auto of_rows = domain_offset({0, k, 0}, a_tile);
      const auto spread =
          of_rows.with_layout(make_layout({c.m, c.n}, {get(of_rows.any().layout.stride(), 0), 0}));
      const Tensor<float> rows = make_tensor<float>({2, products});
      clear(rows);
      copy_if(inside, every(spread)(one_column, _), rows);
      return Factors(load(rows), Float(b_tile(0, k, 0)));
    };
    const auto of_rows = [](const Factors& by) { return std::get<0>(by) * std::get<1>(by); };

    meanwhile();
    const Tensor<float> sums =
        make_tensor<float>(partition_shape_C(x.mine.tiled_mma(), {c.m, c.n}));
    clear(sums);
    // Adds a product's sums, each by the factor of its row.
    const auto promote = [&](const Tensor<float>& block, const Fragment<float>& rows) {
      for (int i = 0; i < products; ++i) {
        for (int row = 0; row < 2; ++row) {
          for (int column = 0; column < c.n / 8; ++column) {
            for (int e = 0; e < 2; ++e) {
              const IntTuple at = {e, row, column};
              sums(at, i, 0) =
                  fma(Float(block(at, i, 0)), rows[2 * i + row], Float(sums(at, i, 0)));
            }
          }
        }
      }
    };
    // Two products are under way at a time: the sums of one are added while the tensor cores work on the other.
    // Of an odd number the first one is alone.
    const Int odd = x.blocks & 1, last = x.blocks - 1;
    const PipelineState begin = If(
        odd == 1,
        [&] {
          const Factors by = factors(x.first);
          promote(settle(x.product(x.none(), first, false)), of_rows(by));
          x.pipe.release(first);
          return x.pipe.next(first);
        },
        [&] { return first; });
    using Loop = std::tuple<PipelineState, Factors, Factors>;
    const auto loop = [&](const PipelineState& p, const Int& k) {
      return Loop(p, factors(x.first + min(k, last)), factors(x.first + min(k + 1, last)));
    };
    const Loop end =
        For(range(odd, x.blocks, 2), loop(begin, odd), [&](const Int& k, const Loop& so_far) {
          const auto& [p, by_p, by_q] = so_far;
          const PipelineState q = x.pipe.next(p);
          const auto at_p = x.product(x.none(), p, false);
          const auto at_q = x.product(x.none(), q, false);
          // The registers of factors are free for those of the next two blocks when these are loaded.
          const Fragment<float> rows_p = of_rows(by_p), rows_q = of_rows(by_q);
          const Loop next = loop(x.pipe.next(q), k + 2);
          promote(settle(at_p, 1), rows_p);
          x.pipe.release(p);
          promote(settle(at_q), rows_q);
          x.pipe.release(q);
          return next;
        });
    started();
    return {sums, std::get<0>(end)};
  }
};

}  // namespace heddle::kernels
