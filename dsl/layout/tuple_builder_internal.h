// Walks and makes the tuples of layout/int_tuple.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "heddle/dsl/layout/int_tuple.h"

namespace heddle::detail {

// The elements of a tuple node, or an integer itself as its only one.
class Elements {
 public:
  explicit Elements(const TupleNode& node)
      : begin_(node.is_tuple() ? &node + 1 : &node), end_(&node + node.span) {}
  explicit Elements(const IntTuple& t) : Elements(t.node()) {}

  class Iterator {
   public:
    explicit Iterator(const TupleNode* at) : at_(at) {}
    const TupleNode& operator*() const { return *at_; }
    Iterator& operator++() {
      at_ += at_->span;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    const TupleNode* at_;
  };
  Iterator begin() const { return Iterator(begin_); }
  Iterator end() const { return Iterator(end_); }

 private:
  const TupleNode* begin_;
  const TupleNode* end_;
};

inline int rank_of(const TupleNode& node) {
  return node.is_tuple() ? static_cast<int>(node.rank) : 1;
}
const TupleNode& element(const TupleNode& node, int mode);

// Collects nodes in order. They become a tuple's as they are, without being copied one by one.
class TupleBuilder {
 public:
  // Far more than layouts have; what is larger comes from a slip, and would fill the memory.
  static constexpr size_t kMostNodes = size_t{1} << 16;

  TupleBuilder() = default;
  TupleBuilder(const TupleBuilder&) = delete;
  TupleBuilder& operator=(const TupleBuilder&) = delete;
  ~TupleBuilder();

  void add(const TupleNode& node) {
    for (uint32_t i = 0; i < node.span && count_ <= kMostNodes; ++i)
      new (next()) TupleNode(*(&node + i));
  }
  void add(const IntTuple& t) { add(t.node()); }
  void add(SymInt value) { (new (next()) TupleNode)->value = std::move(value); }
  // Starts a tuple; close() with what it gave ends it.
  size_t open() {
    (new (next()) TupleNode)->kind = TupleNode::Kind::kTuple;
    return count_ - 1;
  }
  void close(size_t tuple);
  size_t count() const { return count_; }
  // What was collected, to change numbers in it.
  absl::Span<TupleNode> nodes() { return {nodes_, count_}; }

  // What was collected: one tuple, or one integer. Fails where a number has overflowed.
  IntTuple build(SourceLoc loc = {});
  static IntTuple build(const TupleNode& node);
  static IntTuple failed(std::string error);

 private:
  TupleNode* next() {
    if (count_ == capacity_) grow();
    return nodes_ + count_++;
  }
  void grow();
  TupleNode* few() { return reinterpret_cast<TupleNode*>(few_); }

  static constexpr size_t kFew = 12;
  size_t count_ = 0, capacity_ = kFew;
  TupleNode* nodes_ = few();
  alignas(TupleNode) std::byte few_[kFew * sizeof(TupleNode)];
};

// A tuple that is not ok(), and inside a kernel's lambda one of the kernel's errors.
IntTuple fail(SourceLoc loc, std::string what, std::string fix);

// The first of these that is not ok(); nullptr where all are.
inline const IntTuple* first_failure(std::initializer_list<const IntTuple*> tuples) {
  for (const IntTuple* t : tuples) {
    if (!t->ok()) return t;
  }
  return nullptr;
}

inline bool same_path(const TupleNode& a, const TupleNode& b) {
  return a.path_length == b.path_length && std::equal(a.path, a.path + a.path_length, b.path);
}
bool same_leaf(const TupleNode& a, const TupleNode& b);
bool congruent(const TupleNode& a, const TupleNode& b);
SymInt product(const TupleNode& node);

// What messages show of these. fail() tells different unknown numbers apart, as ?a and ?b{div=8}.
std::string text(const SymInt& value);
std::string text(const TupleNode& node);
std::string text(const IntTuple& t);
// As results print it, where all of them are just ?.
std::string without_names(std::string text);
// Names what a message's parts have.
void name_unknowns(std::string* what, std::string* fix);

}  // namespace heddle::detail
