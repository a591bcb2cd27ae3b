// How rows are dealt out to blocks, or clusters, that take one row after the other: a thread has the same columns of all its rows,
// and keeps what belongs to these. Internal to the kernels.
#pragma once

#include <optional>
#include <string>

#include "heddle/kernels/rows/deal.h"

namespace heddle::kernels {

// Rows that are taken in turn, or not.
struct TurnDeal {
  RowDeal rows{};  // what threads have of a row, or of the rows that a block has at once
  // Rows that wait in shared memory or are on their way there (staged_rows.h); 0: they are in registers.
  int stages = 0;
  int of_processor = 0;  // blocks that a multiprocessor has at once; 0: no block takes a second row
  // Whether blocks take several rows.
  bool in_turn() const { return of_processor > 0; }
  // "held threads=512 rows=1 blocks=1 vectors=2 kept=0, 2 a multiprocessor", "staged 3 threads=…"; those of `rows` where they are
  // not taken in turn.
  std::string to_string() const;
  friend bool operator==(const TurnDeal&, const TurnDeal&) = default;
};

// Says of a deal whether its launch floods L2.
inline void set_floods(bool floods, TurnDeal& deal) { deal.rows.floods = floods; }

// In which vectors threads have the same columns of all rows: they begin with the rows; or equally far behind the beginnings
// of some of the rows; or are single elements.
struct TurnVectors {
  int width;     // elements of one
  bool peeled;   // they begin where memory is aligned, behind a row's first elements
  int64_t most;  // of a row, at most
};
TurnVectors turn_vectors(const RowsOf& of);

// Rows in shared memory or on their way there, at most.
inline constexpr int kMostStages = 4;

// What rows in shared memory are asked to have.
struct Staging {
  int blocks;        // that share a row: most_blocks() at most
  int elements;      // of a thread, about
  int of_processor;  // blocks of a multiprocessor
  int most;          // elements of a multiprocessor, at most: for its registers
  int floats;        // that each warp sends of a row (warp_values.h)
};
// None where the device does not have it, or no room for it.
std::optional<TurnDeal> staged_deal(const RowsOf& of, const DeviceInfo& device,
                                    const Staging& wanted);

// Blocks, or clusters, of a launch, each of which takes several rows: so many that those of a peeled deal have rows that begin
// equally far behind aligned places.
int64_t turn_groups(const TurnDeal& deal, int64_t rows, const DeviceInfo& device);
// That launch.
LaunchShape turn_shape(const TurnDeal& deal, int64_t rows, const DeviceInfo& device);

}  // namespace heddle::kernels
