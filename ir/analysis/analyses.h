// The analyses of a kernel: each is made when it is first asked for, and serves all who ask until the
// kernel changes in a way that it does not survive.
//
//   Analyses analyses(kernel);
//   analyses.get<Uniformity>().of(x);      // computed
//   analyses.get<Uniformity>().of(y);      // looked up
//   analyses.keep({Aliasing::kName});      // a pass has changed the kernel: all others are dropped
//
// An analysis is a class with a kName, and a constructor that takes the kernel, or the Analyses where it
// builds on others. A program's own is asked for in the same way:
//
//   class Depths {
//    public:
//     static constexpr absl::string_view kName = "depths";
//     explicit Depths(Analyses& analyses) : ints_(analyses.get<Ints>()) {}
//     …
//   };
//
// It is dropped with what it builds on. Where it has a function `disagreement`, verification compares one that
// a pass keeps with a new one:
//
//     // What this one says that the new one of the same kernel contradicts, in words; empty: nothing.
//     std::string disagreement(Depths& fresh);
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/analysis/int_facts.h"
#include "heddle/ir/analysis/linear.h"
#include "heddle/ir/kernel.h"

namespace heddle::ir {

class Analyses {
 public:
  // `kernel` must outlive this.
  explicit Analyses(const Kernel& kernel) : kernel_(kernel) {}
  Analyses(const Analyses&) = delete;
  Analyses& operator=(const Analyses&) = delete;

  const Kernel& kernel() const { return kernel_; }

  // The analysis of that class, made where there is none yet. Good until it is dropped.
  template <class A>
  A& get() {
    return *static_cast<A*>(find_or_make(A::kName, &made<A>, &compared<A>));
  }
  // Whether there is one of that name just now.
  bool has(absl::string_view name) const { return find(name) != nullptr; }

  // Drops all but those of these names, and with each what builds on it.
  void keep(absl::Span<const absl::string_view> names);

  // Where one of these is not what it would be if it were made now: its name and what it says. Empty where
  // all agree.
  std::string disagreement() const;

 private:
  using Make = std::shared_ptr<void> (*)(Analyses&);
  using Compare = std::string (*)(void* kept, Analyses& fresh);
  template <class A>
  static std::shared_ptr<void> made(Analyses& analyses) {
    if constexpr (std::is_constructible_v<A, Analyses&>) {
      return std::make_shared<A>(analyses);
    } else {
      return std::make_shared<A>(analyses.kernel());
    }
  }
  template <class A>
  static std::string compared(void* kept, Analyses& fresh) {
    if constexpr (requires(A a) { a.disagreement(a); }) {
      return static_cast<A*>(kept)->disagreement(fresh.get<A>());
    } else {
      return "";
    }
  }

  struct Entry {
    absl::string_view name;
    std::shared_ptr<void> analysis;
    Compare compare;
    std::vector<absl::string_view> parts;  // those that it builds on
  };
  void* find_or_make(absl::string_view name, Make make, Compare compare);
  const Entry* find(absl::string_view name) const;
  // Takes an analysis of the same kernel in place of its own.
  void put(const Entry& entry);

  const Kernel& kernel_;
  std::vector<Entry> entries_;  // each behind those that it builds on
  std::vector<std::vector<absl::string_view>>
      making_;  // what each that is being made has asked for
};

// What is known of integers where facts about arguments are not asked for; where they are, which makes them
// guards; and where, besides, conditions around an op do not count, for passes that move ops out of them.
struct Ints : IntAnalysis {
  static constexpr absl::string_view kName = "ints";
  explicit Ints(const Kernel& kernel) : IntAnalysis(kernel, FactUse::kIgnore) {}
};
struct GuardedInts : IntAnalysis {
  static constexpr absl::string_view kName = "guarded-ints";
  explicit GuardedInts(const Kernel& kernel) : IntAnalysis(kernel, FactUse::kAsk) {}
};
struct MovableInts : IntAnalysis {
  static constexpr absl::string_view kName = "movable-ints";
  explicit MovableInts(const Kernel& kernel)
      : IntAnalysis(kernel, FactUse::kAsk, BranchUse::kIgnore) {}
};

// Sums of integers, by Ints.
struct Sums : LinearSums {
  static constexpr absl::string_view kName = "sums";
  explicit Sums(Analyses& analyses) : LinearSums(analyses.kernel(), analyses.get<Ints>()) {}
};

}  // namespace heddle::ir
