#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/tuple_builder_internal.h"
#include "heddle/dsl/trace/trace_internal.h"

namespace heddle::detail {

// --- Nodes ----------------------------------------------------------------------------------

const TupleNode& element(const TupleNode& node, int mode) {
  auto at = Elements(node).begin();
  for (int i = 0; i < mode; ++i) ++at;
  return *at;
}

bool same_leaf(const TupleNode& a, const TupleNode& b) {
  return a.kind == b.kind && same_path(a, b) && (!a.is_int() || a.value == b.value);
}

bool congruent(const TupleNode& a, const TupleNode& b) {
  if (a.span != b.span) return false;
  for (uint32_t i = 0; i < a.span; ++i) {
    if ((&a)[i].is_tuple() != (&b)[i].is_tuple() || (&a)[i].rank != (&b)[i].rank) return false;
  }
  return true;
}

SymInt product(const TupleNode& node) {
  if (!node.is_tuple()) return node.value;
  SymInt result = 1;
  for (uint32_t i = 1; i < node.span; ++i) {
    if ((&node)[i].is_int()) result = result * (&node)[i].value;
  }
  return result;
}

// --- Making ---------------------------------------------------------------------------------

namespace {

TupleRep* make_rep(size_t count) {
  auto* const rep = new (::operator new(sizeof(TupleRep) + count * sizeof(TupleNode))) TupleRep;
  rep->count = static_cast<uint32_t>(count);
  return rep;
}

// Nodes hold no addresses of their own, so that their bytes are all there is to move.
void move_nodes(TupleNode* from, size_t count, TupleNode* to) {
  std::memcpy(static_cast<void*>(to), static_cast<const void*>(from), count * sizeof(TupleNode));
}

}  // namespace

TupleBuilder::~TupleBuilder() {
  std::destroy_n(nodes_, count_);
  if (nodes_ != few()) ::operator delete(nodes_);
}

void TupleBuilder::grow() {
  auto* const more = static_cast<TupleNode*>(::operator new(2 * capacity_ * sizeof(TupleNode)));
  move_nodes(nodes_, count_, more);
  if (nodes_ != few()) ::operator delete(nodes_);
  nodes_ = more;
  capacity_ *= 2;
}

void TupleBuilder::close(size_t tuple) {
  uint32_t rank = 0;
  for (size_t i = tuple + 1; i < count_; i += nodes_[i].span) ++rank;
  nodes_[tuple].rank = rank;
  nodes_[tuple].span = static_cast<uint32_t>(count_ - tuple);
}

IntTuple TupleBuilder::build(SourceLoc loc) {
  if (count_ > kMostNodes) {
    return fail(loc, absl::StrCat("a tuple of more than ", kMostNodes, " numbers"),
                "use fewer modes");
  }
  bool symbolic = false;
  for (size_t i = 0; i < count_; ++i) {
    if (nodes_[i].value.is_constant()) continue;
    symbolic = true;
    if (nodes_[i].value.is_overflow()) {
      return fail(loc, "a layout's number does not fit 64 bits", "use smaller shapes and strides");
    }
  }
  if (!nodes_->is_tuple()) return build(*nodes_);
  TupleRep* const rep = make_rep(count_);
  rep->symbolic = symbolic;
  move_nodes(nodes_, std::exchange(count_, 0), rep->nodes());
  return IntTuple(rep);
}

IntTuple TupleBuilder::build(const TupleNode& node) {
  if (!node.is_tuple()) {
    IntTuple leaf(0);
    leaf.node_ = node;
    return leaf;
  }
  TupleRep* const rep = make_rep(node.span);
  for (uint32_t i = 0; i < node.span; ++i) {
    const TupleNode& next = *(&node + i);
    rep->symbolic |= !next.value.is_constant();
    new (rep->nodes() + i) TupleNode(next);
  }
  return IntTuple(rep);
}

IntTuple TupleBuilder::failed(std::string error) {
  TupleRep* const rep = make_rep(1);
  new (rep->nodes()) TupleNode;
  rep->error = new std::string(std::move(error));
  return IntTuple(rep);
}

IntTuple fail(SourceLoc loc, std::string what, std::string fix) {
  name_unknowns(&what, &fix);
  std::string error = absl::StrCat(what, "; ", fix);
  Trace* const trace = Trace::current();
  if (trace != nullptr && trace->probing == 0) trace->report(loc, std::move(what), std::move(fix));
  return TupleBuilder::failed(std::move(error));
}

}  // namespace heddle::detail
