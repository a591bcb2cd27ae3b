// The part of the generator that goes to memory, and to other threads. Each thread has slots of its
// own in every array; what others wrote there is read between two barriers only.
#pragma once

#include "fuzz/generator_arithmetic.h"

namespace heddle::fuzz {

class MemoryGenerator : public ArithmeticGenerator {
 protected:
  using ArithmeticGenerator::ArithmeticGenerator;

  // Parameters, arrays, and where the thread's own slots are.
  void declare();
  // One access, or a few.
  void memory();
  // Of a trip of a loop along an array: an access or two at an index below `limit`, kSlotsPerThread for own slots.
  void walk(ValueId index, int64_t limit);
  static constexpr int64_t kLongWalk = 32;
  // Ops that a warp runs together; where it does not run whole, of the lanes of `lanes_`.
  void collective();
  bool may_run_collectives() const { return control_ >= Scope::kWarp || valid(lanes_); }
  // Writes own slots, waits for the block, reads those of others. For threads that all come here.
  void exchange();
  // Stores of values in scope, so that something depends on them.
  void show();

  struct Array {
    ValueId view;
    bool read_only = false;
    bool by_block = false;   // each block has its own
    bool by_thread = false;  // each thread has its own
  };
  ValueId load(const Array& array, Type type, ValueId at);
  void store(const Array& array, ValueId value, ValueId at);
  int threads() const {
    return kernel_.has_dynamic_block() ? 64 : static_cast<int>(kernel_.block.count());
  }

  bool plain_ = false;  // arrays lie apart, and are loaded from and stored to, and no more
  ValueId thread_, block_thread_;   // linear, in the grid and in the block
  Scope control_ = Scope::kGrid;    // the threads that come here together
  ValueId lanes_ = ValueId::kNone;  // the mask of those of the warp that do, where not all

 private:
  ValueId slot(const Array& array, int index);
  // A vector or an element of own slots: its type, and the first slot.
  std::pair<Type, int> own_access(const Array& array);
  void load_own(const Array& array);
  void store_own(const Array& array);
  void burst();
  void atomic();
  void own_atomic(ValueId view, ValueId at);  // of an element that is the thread's own
  void through_pointer();
  void through_subview();
  void local_array();
  // Stores to all slots: what nobody has written may not be read.
  void fill(const Array& array);
  void pin();

  ValueId everywhere_;  // a tensor that nobody writes
  ValueId table_;
  ValueId sums_;  // only ever added to
  int64_t sum_op_ = 0;
  std::vector<Array> arrays_;  // of slots
};

}  // namespace heddle::fuzz
