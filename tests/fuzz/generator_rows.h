// The part of the generator that goes along rows of arrays: loops whose trips are dealt out to the threads of a warp, a
// block or the grid, and loops in which each thread has all trips. An array that such loops store to is stored to by
// one of them alone.
#pragma once

#include "fuzz/generator_regions.h"

namespace heddle::fuzz {

class RowGenerator : public RegionGenerator {
 protected:
  using RegionGenerator::RegionGenerator;

  // The rows' arrays, in kernels that have some. Before declare().
  void declare_rows();
  bool has_rows() const { return !inputs_.empty(); }
  // One loop, or two that are dealt out in the same way. None where too few threads come here together.
  void dealt_loop();
  // All trips of a row by each thread, which carries something from trip to trip.
  void row_loop();

 private:
  // What a loop goes along, from `offset` on.
  struct Row {
    ValueId view, offset;
  };
  struct Dealt {
    Scope scope;          // whose threads have the trips
    ValueId first, step;  // of a thread
    ValueId number;       // of the row; kNone: there is but one
    int64_t rows;         // in all
  };

  Dealt dealt_to(Scope scope, Type index);
  ValueId place(Opcode opcode, Type index);
  ValueId of_launch(Type index, int64_t mask);
  Row row_of(ValueId view, const Dealt& dealt, int64_t length, Type index);
  ValueId end(int64_t length, Scope scope, Type index);
  std::vector<Row> some_inputs(const Dealt& dealt, int64_t length, Type index);
  ValueId at(const Row& row, ValueId index, int64_t further);
  void load_all(const std::vector<Row>& rows, ValueId index, int64_t most_further);
  void store_trip(const Row& row, ValueId index);
  void loop_along(const Dealt& dealt, ValueId stop, const std::vector<Row>& from,
                  const std::vector<Row>& to, int64_t most_further);

  std::vector<ValueId> inputs_;
  std::vector<ValueId> free_;  // arrays that no loop has stored to so far
};

}  // namespace heddle::fuzz
