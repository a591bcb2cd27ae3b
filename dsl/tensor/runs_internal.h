// The elements of a tensor as runs of neighbours in memory, each one access. Not for users.
#pragma once

#include <vector>

#include "heddle/dsl/tensor/copy.h"
#include "heddle/dsl/tensor/tensor_internal.h"

namespace heddle::detail {

// A layout of host numbers, without its names: fast to ask for many indices.
class StaticLayout {
 public:
  explicit StaticLayout(const Layout& layout);
  int64_t operator()(int64_t index) const;

 private:
  struct Part {
    int64_t shape, stride;
  };
  absl::InlinedVector<Part, 6> parts_;
};

// How a tensor's elements, by their number, fall into runs: run r has the elements
// number(r, 0) … number(r, width - 1).
class Runs {
 public:
  // Memory: the widest runs of at most 16 bytes that are known to be aligned and over which the
  // predicate does not change. Where `exact` is not 0, the runs have that many elements with
  // neighbouring numbers, or it is reported why they cannot. Registers fall into single elements.
  Runs(const AnyTensor& tensor, int64_t size, const Predicate& predicate, int exact, SourceLoc loc);

  int width() const { return width_; }
  int64_t count() const { return size_ / width_; }
  int64_t number(int64_t run, int64_t element) const { return tiles_(element + run * width_); }
  // Of the view, along which a run lies.
  int mode() const { return mode_; }
  // The tensor's text.
  const std::string& tensor() const { return tensor_; }

 private:
  // Takes the width; or says what is in its way.
  const char* try_width(const AnyTensor& tensor, const Layout& memory, const Layout& neighbours,
                        const Predicate& predicate, SourceLoc loc);

  std::string tensor_;
  int64_t size_;
  int width_ = 1;
  int mode_ = 0;
  StaticLayout tiles_;
};

// The size of a tensor where it is a host number; reports where it is not.
int64_t static_size(const AnyTensor& tensor, const char* what, SourceLoc loc);
// A number's coordinate in a tensor.
IntTuple coordinate_of(const AnyTensor& tensor, const SymInt& number, SourceLoc loc);

using Nodes = std::vector<Node>;
// How elements are accessed: which, and how many at once (0: as many as can be).
struct AccessPlan {
  Predicate predicate = {};
  int exact = 0;
};
// The elements by their number. Where the predicate does not hold, those of `otherwise`, or any.
Nodes gather_elements(const AnyTensor& tensor, const AccessPlan& plan, const Nodes* otherwise,
                      SourceLoc loc);
void scatter_elements(const AnyTensor& tensor, const AccessPlan& plan, const Nodes& values,
                      SourceLoc loc);
// Whether an element takes part, by its number; nothing where all do.
std::optional<Node> condition(const Predicate& predicate, const SymInt& number, SourceLoc loc);
// A run, ready to be accessed.
Access access_to(const AnyTensor& tensor, const Runs& runs, int64_t run, SourceLoc loc);
// Elements as one value, and the elements of one.
Node fragment_of(ir::Scalar scalar, absl::Span<const Node> elements, SourceLoc loc);
Nodes elements_of(const Node& fragment, SourceLoc loc);
// Elements of another type.
Nodes converted(const Nodes& values, ir::Scalar to, SourceLoc loc);

}  // namespace heddle::detail
