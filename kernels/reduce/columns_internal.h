// Combining elements that lie apart: a thread has neighbouring columns, and takes some rows of them. Internal to the kernels.
#pragma once

#include <algorithm>

#include "heddle/dsl/cuda/cluster.h"
#include "heddle/kernels/reduce/combine_internal.h"
#include "heddle/kernels/rows/deal.h"

namespace heddle::kernels {

// How columns are dealt out: blocks have `lanes` × `width` columns, and a stretch of the rows.
struct ColumnDeal {
  int width = 1;   // columns of a thread, one access
  int lanes = 1;   // threads beside each other
  int rows = 1;    // threads below each other, a power of two
  int unroll = 1;  // loads of a thread under way
  int fold = 1;    // rows that lie one behind the other and are taken as one
  int blocks = 1;  // of a cluster, which have a stretch each and combine what they have
  friend bool operator==(const ColumnDeal&, const ColumnDeal&) = default;
};

// The extents of (outer, rows, columns), whose rows are combined.
struct ColumnsOf {
  int64_t outer, rows, columns;
  int width = 1;        // columns that are one access
  bool states = false;  // they are states, which an earlier launch has just stored
};
ColumnDeal deal_columns(const ColumnsOf& of, const DeviceInfo& device);
// Results of each column, of so many blocks or clusters, so that a device is busy, and the launch.
int64_t stretches(const ColumnsOf& of, const ColumnDeal& deal, const DeviceInfo& device);
LaunchShape column_shape(const ColumnsOf& of, const ColumnDeal& deal, int64_t stretches);

// The columns of the widest access that begins at a multiple of its bytes everywhere.
template <class T>
int columns_at_once(const TensorRef<const T, 3>& x) {
  int64_t width = x.strides[2] == 1 || x.extents[2] == 1 ? kVectorBytes / int64_t{sizeof(T)} : 1;
  const auto fits = [&](int64_t distance, bool matters) {
    return !matters || distance % width == 0;
  };
  while (width > 1 &&
         !(reinterpret_cast<uintptr_t>(x.data) % (static_cast<uintptr_t>(width) * sizeof(T)) == 0 &&
           fits(x.strides[0], x.extents[0] > 1) && fits(x.strides[1], x.extents[1] > 1) &&
           fits(x.extents[2], true))) {
    width /= 2;
  }
  return static_cast<int>(width);
}

// Whether rows lie one behind the other, and are so many that their states are few beside them.
template <class T>
bool can_be_folded(const TensorRef<const T, 3>& x) {
  constexpr int64_t kFold = kVectorBytes / int64_t{sizeof(T)}, kLeastFolds = 64;
  return x.extents[0] == 1 && x.strides[2] == 1 && x.strides[1] == x.extents[2] &&
         x.extents[1] >= kLeastFolds * kFold &&
         reinterpret_cast<uintptr_t>(x.data) % kVectorBytes == 0;
}

// States of neighbouring columns, carried through loops as one thing.
template <class State>
class StateRow {
 public:
  StateRow(int count, const State& all) {
    for (int i = 0; i < count; ++i) push(all);
  }
  StateRow() = default;
  void push(const State& state) {
    heddle::detail::for_each_leaf(
        state, [&](const heddle::detail::Node& node) { nodes_.push_back(node); });
    ++count_;
  }
  State operator[](int i) const {
    State out = heddle::detail::blank<State>();
    size_t at = nodes_.size() / count_ * static_cast<size_t>(i);
    heddle::detail::for_each_leaf(out, [&](heddle::detail::Node& node) { node = nodes_[at++]; });
    return out;
  }
  int size() const { return static_cast<int>(count_); }

  std::vector<heddle::detail::Node>& nodes() { return nodes_; }
  const std::vector<heddle::detail::Node>& nodes() const { return nodes_; }

 private:
  std::vector<heddle::detail::Node> nodes_;
  size_t count_ = 0;
};

// What the blocks of a cluster have of the same columns: all send it to the first one, whose first threads combine it. The
// cluster's threads have arrived once.
template <class Op>
StateRow<typename Op::State> combine_in_cluster(const ColumnDeal& deal, const Op& op,
                                                const StateRow<typename Op::State>& mine) {
  using State = typename Op::State;
  const Int rank = cluster_rank(), first = thread_idx.x * deal.width;
  const Shared<typename Op::Stored, 2> sent({deal.blocks, deal.lanes * deal.width});
  const Shared<typename Op::Stored, 2> theirs = map_shared(sent, 0);
  cluster_wait();
  If(thread_idx.y == 0, [&] {
    for (int i = 0; i < deal.width; ++i) theirs(rank, first + i) = mine[i];
  });
  sync_cluster();
  return If(
      rank == 0 && thread_idx.y == 0,
      [&] {
        StateRow<State> out;
        for (int i = 0; i < deal.width; ++i) {
          std::vector<State> of_blocks;
          for (int block = 0; block < deal.blocks; ++block) {
            of_blocks.push_back(State(sent(block, first + i)));
          }
          out.push(in_tree(std::move(of_blocks),
                           [&](const State& a, const State& b) { return op.merge(a, b); }));
        }
        return out;
      },
      [&] { return mine; });
}

// Combines the rows of each column that the block, or cluster, has a share of: load(outer, row, column, loads) gives the
// states of `width` columns, of as many rows as there are loads, deal.rows apart; store(outer, share, column, state).
template <class Op, class Load, class Store>
void reduce_columns_body(const ColumnDeal& deal, const Op& op, const Int& rows, const Int& columns,
                         const Int& shares, Load load, Store store) {
  using State = typename Op::State;
  const int block_columns = deal.lanes * deal.width;
  const Int tiles = (columns + (block_columns - 1)) / block_columns;
  const Int number = deal.blocks > 1 ? block_idx.x / deal.blocks : Int(block_idx.x);
  const Int tile = number % tiles, above = number / tiles;
  const Int share = above % shares, outer = above / shares;
  const Int lane = thread_idx.x, below = thread_idx.y;
  const Int column = (tile * deal.lanes + lane) * deal.width;
  // Lanes behind the last column load it again.
  const Int loaded = min(column, columns - deal.width);

  if (deal.blocks > 1) cluster_arrive(MemoryOrder::relaxed);  // this block runs
  const Int rank = deal.blocks > 1 ? cluster_rank() : Int(0);
  const Int stretches = shares * deal.blocks, each = (rows + stretches - 1) / stretches;
  const Int begin = (share * deal.blocks + rank) * each, end = min(begin + each, rows);
  const Int first = begin + below;
  const Int count = max(end - first + (deal.rows - 1), 0) / deal.rows;
  const Int batches = count / deal.unroll;
  const auto merged = [&](const StateRow<State>& so_far, const Int& row, int loads) {
    const StateRow<State> more = load(outer, row, loaded, loads);
    StateRow<State> out;
    for (int i = 0; i < deal.width; ++i) out.push(op.merge(so_far[i], more[i]));
    return out;
  };
  StateRow<State> mine =
      For(range(batches), StateRow<State>(deal.width, op.nothing()),
          [&](const Int& batch, const StateRow<State>& so_far) {
            return merged(so_far, first + batch * (deal.unroll * deal.rows), deal.unroll);
          });
  if (deal.unroll > 1) {
    mine = For(range(batches * deal.unroll, count), mine,
               [&](const Int& at, const StateRow<State>& so_far) {
                 return merged(so_far, first + at * deal.rows, 1);
               });
  }

  // Threads below each other combine what they have, half of them with the other half.
  if (deal.rows > 1) {
    const Shared<typename Op::Stored, 2> states({deal.rows, block_columns});
    const auto place = [&](const Int& row, int i) { return states(row, lane * deal.width + i); };
    for (int half = deal.rows / 2; half >= 1; half /= 2) {
      If(below >= half && below < 2 * half, [&] {
        for (int i = 0; i < deal.width; ++i) place(below, i) = mine[i];
      });
      sync_threads();
      mine = If(
          below < half,
          [&] {
            StateRow<State> out;
            for (int i = 0; i < deal.width; ++i) {
              out.push(op.merge(mine[i], State(place(below + half, i))));
            }
            return out;
          },
          [&] { return mine; });
    }
  }
  if (deal.blocks > 1) mine = combine_in_cluster(deal, op, mine);
  If(rank == 0 && below == 0 && column < columns, [&] {
    for (int i = 0; i < deal.width; ++i) store(outer, share, column + i, mine[i]);
  });
}

}  // namespace heddle::kernels
