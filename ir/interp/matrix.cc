// Matrices of a warp: loads and stores of 8 x 16 bytes of shared memory, ldmatrix and stmatrix.
#include "heddle/ir/interp/legal.h"
#include "heddle/ir/interp/mma.h"

namespace heddle::ir::interp {
namespace {

constexpr int kRows = 8;         // of a matrix
constexpr int kBytesOfLane = 4;  // of a matrix

// A place in a matrix.
struct Cell {
  int row;
  int byte;  // of the row
};

// Where element `i` of a lane's part of a matrix lies.
template <class T, bool kTransposed>
Cell cell_of(int lane, int i) {
  const int major = lane / 4;
  const int minor = lane % 4 * kBytesOfLane / static_cast<int>(sizeof(T)) + i;
  constexpr int kBytes = static_cast<int>(sizeof(T));
  return kTransposed ? Cell{minor, major * kBytes} : Cell{major, minor * kBytes};
}

// Register `dst` holds what is loaded, register c what is stored.
template <class T, bool kStore, bool kTransposed>
const Instr* run_matrices(const Instr* instr, Warp& warp) {
  if (!whole_warp_is_here(instr, warp, "loads and stores of matrices")) {
    return warp.suspend(WarpState::kStopped, instr);
  }
  const Machine& machine = *warp.block->machine;
  const int matrices = static_cast<int>(instr->count);
  Addresses rows;
  std::copy_n(warp.reg<uint64_t>(instr->a), kLanes, rows.at);
  const Mask given = kAllLanes >> (kLanes - kRows * matrices);
  Mask legal = given;
  if (machine.code->checked &&
      legal_lanes<SharedMemory>(instr, warp, machine.code->accesses[instr->aux], given, rows,
                                &legal)) {
    return warp.suspend(WarpState::kStopped, instr);
  }
  T* at = warp.reg<T>(kStore ? instr->c : instr->dst);
  for (int m = 0; m < matrices; ++m) {
    for (int i = 0; i < kBytesOfLane / static_cast<int>(sizeof(T)); ++i, at += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const Cell cell = cell_of<T, kTransposed>(lane, i);
        const int row = kRows * m + cell.row;
        void* const place =
            reinterpret_cast<void*>(rows.at[row] + static_cast<uint64_t>(cell.byte));
        // A run that goes on after a report reads zeros where it may not read.
        const bool may = (legal & bit(row)) != 0;
        if constexpr (kStore) {
          if (may) std::memcpy(place, at + lane, sizeof(T));
        } else {
          at[lane] = T{};
          if (may) std::memcpy(at + lane, place, sizeof(T));
        }
      }
    }
  }
  return instr + 1;
}

template <class T>
Handler matrices_of(bool store) {
  return store ? &run_matrices<T, true, false> : &run_matrices<T, false, false>;
}

}  // namespace

Handler matrix_handler(int bytes, bool store, bool transposed) {
  if (transposed && bytes != 2) return nullptr;
  switch (bytes) {
    case 1:
      return matrices_of<uint8_t>(store);
    case 2:
      if (!transposed) return matrices_of<uint16_t>(store);
      return store ? &run_matrices<uint16_t, true, true> : &run_matrices<uint16_t, false, true>;
    case 4:
      return matrices_of<uint32_t>(store);
  }
  return nullptr;
}

}  // namespace heddle::ir::interp
