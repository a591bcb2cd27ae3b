#include "heddle/dsl/internal/tuple_builder.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/internal/trace.h"

namespace heddle::detail {

// --- Nodes ----------------------------------------------------------------------------------

const TupleNode& element(const TupleNode& node, int mode) {
  auto at = Elements(node).begin();
  for (int i = 0; i < mode; ++i) ++at;
  return *at;
}

bool same_leaf(const TupleNode& a, const TupleNode& b) {
  return a.kind == b.kind && a.path_length == b.path_length &&
         std::equal(a.path, a.path + a.path_length, b.path) && (!a.is_int() || a.value == b.value);
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

std::string text(const SymInt& value) {
  if (value.is_overflow()) return "overflow";
  if (value.is_constant()) return absl::StrCat(value.value());
  const int64_t divisor = value.divisor_if_known();
  return divisor <= 1 ? "?" : absl::StrCat("?{div=", divisor, "}");
}

void append_text(const TupleNode& node, std::string* out) {
  if (node.is_tuple()) {
    absl::StrAppend(out, "(");
    const char* separator = "";
    for (const TupleNode& child : Elements(node)) {
      absl::StrAppend(out, separator);
      append_text(child, out);
      separator = ",";
    }
    absl::StrAppend(out, ")");
  } else if (!node.is_int()) {
    absl::StrAppend(out, "_");
  } else {
    absl::StrAppend(out, text(node.value));
    for (int i = node.path_length; i > 0; --i) {
      absl::StrAppend(out, "@", static_cast<int>(node.path[i - 1]));
    }
  }
}

std::string text(const TupleNode& node) {
  std::string result;
  append_text(node, &result);
  return result;
}

// --- Making ---------------------------------------------------------------------------------

size_t TupleBuilder::open() {
  nodes_.emplace_back().kind = TupleNode::Kind::kTuple;
  return nodes_.size() - 1;
}

void TupleBuilder::close(size_t tuple) {
  uint32_t rank = 0;
  for (size_t i = tuple + 1; i < nodes_.size(); i += nodes_[i].span) ++rank;
  nodes_[tuple].rank = rank;
  nodes_[tuple].span = static_cast<uint32_t>(nodes_.size() - tuple);
}

IntTuple TupleBuilder::build(SourceLoc loc) {
  if (nodes_.size() > kMostNodes) {
    return fail(loc, absl::StrCat("a tuple of more than ", kMostNodes, " numbers"),
                "use fewer modes");
  }
  for (const TupleNode& node : nodes_) {
    if (node.value.is_overflow()) {
      return fail(loc, "a layout's number does not fit 64 bits", "use smaller shapes and strides");
    }
  }
  if (!nodes_.front().is_tuple()) return build(nodes_.front());
  auto* const rep = new TupleRep;
  rep->nodes.assign(std::make_move_iterator(nodes_.begin()), std::make_move_iterator(nodes_.end()));
  rep->uses = 1;
  return IntTuple(rep);
}

IntTuple TupleBuilder::build(const TupleNode& node) {
  if (!node.is_tuple()) {
    IntTuple leaf(0);
    leaf.node_ = node;
    return leaf;
  }
  auto* const rep = new TupleRep;
  rep->nodes.assign(&node, &node + node.span);
  rep->uses = 1;
  return IntTuple(rep);
}

IntTuple TupleBuilder::failed(std::string error) {
  auto* const rep = new TupleRep;
  rep->nodes.emplace_back();
  rep->error = std::move(error);
  rep->uses = 1;
  return IntTuple(rep);
}

IntTuple fail(SourceLoc loc, std::string what, const std::string& fix) {
  std::string error = absl::StrCat(what, "; ", fix);
  if (Trace* const trace = Trace::current()) trace->report(loc, std::move(what), fix);
  return TupleBuilder::failed(std::move(error));
}

}  // namespace heddle::detail
