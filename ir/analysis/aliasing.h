// Which ops may change what a load gives.
//
//   Aliasing aliasing(kernel);
//   const int object = aliasing.object_of(load.view());
//   if (aliasing.clobber(op, object) == Clobber::kNo) …   // the load may move past op
//
// What is known: a parameter's memory is never a shared array's, and two shared arrays are apart, but
// for those of different regions of one arena.
// Views of one object, and all views of the dynamic shared memory, may overlap. Two parameters may
// overlap unless the fact kNoOverlap says otherwise of the one that is read; the fact is not read
// here, since that would make it a guard of the compiled code, but the answer says where it
// decides.
//
// Memory that the kernel writes through no view that can be traced (a pointer, inline PTX) may be
// any. Other grids may write what this one only reads; their writes are taken to show nowhere in a
// kernel none of whose ops admits them (Effects::admits), and behind each op that orders accesses
// where one does: threads hand on what they have seen. An op that only releases hands on, and gets nothing.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "heddle/ir/kernel.h"

namespace heddle::ir {

enum class Clobber : uint8_t {
  kNo,
  kUnlessNoOverlap,  // not where no_overlap(object) holds
  kYes,
};

class Aliasing {
 public:
  static constexpr absl::string_view kName = "aliasing";
  // Looks at every access and view of the kernel. Passes that move or remove accesses, or replace
  // views by equal ones, need not build it anew.
  explicit Aliasing(const Kernel& kernel);

  // The memory behind a view or descriptor, as a number below object_count().
  int object_of(ValueId view) const;
  int object_count() const { return static_cast<int>(objects_.size()); }

  // Whether an op writes memory or lets others' writes through: only then can clobber() be more than
  // kNo.
  static bool may_clobber(const Op& op);
  // Whether an op may change what a load of the object gives after it.
  Clobber clobber(const Op& op, int object) const;
  // The same for any object of a kind that the op itself does not write: kinds are few however many
  // objects there are.
  int kind_of(int object) const { return kind_of_[static_cast<size_t>(object)]; }
  int kind_count() const { return static_cast<int>(kinds_.size()); }
  Clobber clobber_of_kind(const Op& op, int kind) const;
  // The objects that an op itself writes, with what shares their bytes.
  void for_each_written(const Op& op, absl::FunctionRef<void(int)> visit) const;
  // Whether nothing changes the object while the kernel runs, if it is a parameter that does not
  // overlap with what is written.
  bool is_never_written(int object) const;
  // Asks the fact, which makes it a guard.
  bool no_overlap(int object) const;
  // clobber(), and the fact where it decides.
  bool may_change(const Op& op, int object) const {
    const Clobber by = clobber(op, object);
    return by == Clobber::kYes || (by == Clobber::kUnlessNoOverlap && !no_overlap(object));
  }

  // An access of the kernel that this does not know of, in words.
  std::string disagreement(const Aliasing& other) const;

 private:
  // Which memory it is, as far as other objects' writes are concerned.
  struct Kind {
    Space space;
    bool param;
    bool shared;     // an array of its own, by a `shared` op
    bool traceable;  // a parameter or shared memory; not handed on by an `if` or a loop
    bool written;    // by a store of this kernel
    bool operator==(const Kind&) const = default;
  };
  struct Object {
    Kind kind;
    int param;                // its index, or -1
    int64_t arena, region;    // of a shared array; -1: in none
    std::vector<int> shares;  // the objects that have bytes in common with it, in other regions
  };

  static bool may_show_writes(const Op& op);
  static Clobber write_clobbers(const Kind& written, const Kind& read);
  bool is_written_unseen(const Kind& read) const;
  void note(ValueId view, bool written);
  // The value that stands for the memory behind a view. All dynamic shared memory is one.
  ValueId object_key(ValueId view) const;

  const Kernel& kernel_;
  std::vector<Object> objects_;
  std::vector<Kind> kinds_;
  std::vector<int> kind_of_;      // by object
  bool strangers_write_ = false;  // an op writes what it does not name, or admits other grids
  IdMap<ValueId, int> by_key_{-1};
  ValueId dynamic_shared_ = ValueId::kNone;  // the first such view
};

}  // namespace heddle::ir
