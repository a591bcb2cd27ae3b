// Which ops may change what a load gives.
//
//   Aliasing aliasing(kernel);
//   const int object = aliasing.object_of(load.operands[0]);
//   if (aliasing.reach(op, object) == Reach::kNo) …   // the load may move past op
//
// What is known: a parameter's memory is never a shared array's, and two shared arrays are apart.
// Views of one object, and all views of the dynamic shared memory, may overlap. Two parameters may
// overlap unless the fact kNoOverlap says otherwise of the one that is read; the fact is not read
// here, since that would make it a guard of the compiled code, but the answer says where it
// decides.
#pragma once

#include <vector>

#include "heddle/ir/kernel.h"

namespace heddle::ir {

enum class Reach : uint8_t {
  kNo,
  kUnlessNoOverlap,  // not where no_overlap(object) holds
  kYes,
};

class Aliasing {
 public:
  // Looks at every access of the kernel. Passes that move or remove accesses need not build it
  // anew.
  explicit Aliasing(const Kernel& kernel);

  // The memory behind a view or descriptor that an access of the kernel takes, as a number below
  // object_count().
  int object_of(ValueId view) const;
  int object_count() const { return static_cast<int>(objects_.size()); }

  // Whether an op writes memory or lets others' writes through: only then can reach() be more than
  // kNo.
  static bool disturbs(const Op& op);
  // Whether an op may change what a load of the object gives after it.
  Reach reach(const Op& op, int object) const;
  // Asks the fact, which makes it a guard.
  bool no_overlap(int object) const;

 private:
  struct Object {
    Space space;
    int param;       // its index, or -1
    bool shared;     // an array of its own, by a `shared` op
    bool traceable;  // a parameter or shared memory; not handed on by an `if` or a loop
    bool written;    // by a store of this kernel
  };

  Reach write_reaches(int written, int read) const;
  Reach order_reaches(const Op& op, int read) const;
  void note(ValueId view, bool written);
  // The value that stands for the memory behind a view. All dynamic shared memory is one.
  ValueId object_key(ValueId view) const;

  const Kernel& kernel_;
  std::vector<Object> objects_;
  IdMap<ValueId, int> by_key_{-1};
  ValueId dynamic_shared_ = ValueId::kNone;  // the first such view
};

}  // namespace heddle::ir
