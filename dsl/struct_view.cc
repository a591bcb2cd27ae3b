#include "heddle/dsl/struct_view.h"

#include <algorithm>

#include "heddle/dsl/trace/trace_internal.h"
#include "heddle/dsl/view.h"
#include "heddle/ir/type.h"

namespace heddle::detail {
namespace {

using ir::Opcode;
using ir::Scalar;

constexpr int kWidestAccess = 16;  // bytes

// A leaf's place in the struct, in bytes.
struct Member {
  int offset;
  NodeType type;
};
struct Layout {
  std::vector<Member> members;
  int bytes = 0;
  int unit = 8;  // bytes: the largest of 1, 2, 4 and 8 that every element is a multiple of
};

int bytes_of_element(const NodeType& type) { return ir::bytes_of(type.scalar); }

// As a C++ struct's.
Layout lay_out(const Node* leaves, int count) {
  Layout layout;
  int align = 1;
  for (int i = 0; i < count; ++i) {
    const NodeType type = leaves[i].type;
    const int element = bytes_of_element(type), size = element * type.count;
    const int needed = std::min(size, kWidestAccess);
    layout.bytes = (layout.bytes + needed - 1) / needed * needed;
    layout.members.push_back({layout.bytes, type});
    layout.bytes += size;
    align = std::max(align, needed);
    layout.unit = std::min(layout.unit, element);
  }
  layout.bytes = (layout.bytes + align - 1) / align * align;
  return layout;
}

Scalar unit_scalar(int bytes) {
  switch (bytes) {
    case 1:
      return Scalar::kU8;
    case 2:
      return Scalar::kU16;
    case 4:
      return Scalar::kU32;
    default:
      return Scalar::kU64;
  }
}

// An unsigned integer as wide as a scalar.
Scalar bits_like(Scalar scalar) { return unit_scalar(ir::bytes_of(scalar)); }

// The place of a struct's unit.
Access part(const Access& access, int first) {
  Access at = access;
  at.coordinates[at.rank++] = host_node(int32_t{first});
  return at;
}

// The most units, a power of two, that each access to such structs can move.
int access_width(const Access& access, int units, int unit_bytes) {
  int width = std::min(vector_width(access.view, kWidestAccess), kWidestAccess / unit_bytes);
  while (units % width != 0) width /= 2;
  return width;
}

// An element from the units that hold it, the lowest first.
Node put_together(const Node* units, int count, Scalar scalar, SourceLoc loc) {
  const Scalar bits = bits_like(scalar);
  Node whole = units[0];
  if (count > 1) {
    // Below 32 bits nothing is computed with.
    const NodeType wide = scalar_type(std::max(bits, Scalar::kU32));
    for (int i = 0; i < count; ++i) {
      const Node unit = emit_as(wide, Opcode::kConvert, units[i], loc);
      const auto by = static_cast<uint32_t>(i * 8 * ir::bytes_of(units[i].type.scalar));
      whole = i == 0 ? unit
                     : emit(Opcode::kOr, whole, emit(Opcode::kShl, unit, host_node(by), loc), loc);
    }
    if (wide.scalar != bits) whole = emit_as(scalar_type(bits), Opcode::kConvert, whole, loc);
  }
  const NodeType type = scalar_type(scalar);
  if (scalar == bits) return whole;
  return emit_as(type, scalar == Scalar::kBool ? Opcode::kConvert : Opcode::kBitcast, whole, loc);
}

// And the units from an element.
void take_apart(const Node& element, int count, Scalar unit, Node* units, SourceLoc loc) {
  const Scalar scalar = element.type.scalar, bits = bits_like(scalar);
  Node whole = element;
  if (scalar == Scalar::kBool) {
    whole = emit_as(scalar_type(bits), Opcode::kConvert, element, loc);
  } else if (scalar != bits) {
    whole = emit_as(scalar_type(bits), Opcode::kBitcast, element, loc);
  }
  if (count == 1) {
    units[0] = whole;
    return;
  }
  const NodeType wide = scalar_type(std::max(bits, Scalar::kU32));
  if (wide.scalar != bits) whole = emit_as(wide, Opcode::kConvert, whole, loc);
  for (int i = 0; i < count; ++i) {
    const auto by = static_cast<uint32_t>(i * 8 * ir::bytes_of(unit));
    const Node moved = i == 0 ? whole : emit(Opcode::kShr, whole, host_node(by), loc);
    units[i] = emit_as(scalar_type(unit), Opcode::kConvert, moved, loc);
  }
}

// Calls f(leaf's number, element's number, its first unit, how many) for every element of every
// leaf.
template <class F>
void for_each_element(const Layout& layout, F&& f) {
  for (size_t leaf = 0; leaf < layout.members.size(); ++leaf) {
    const Member& member = layout.members[leaf];
    const int bytes = bytes_of_element(member.type);
    for (int i = 0; i < member.type.count; ++i) {
      f(leaf, i, (member.offset + i * bytes) / layout.unit, bytes / layout.unit);
    }
  }
}

}  // namespace

StructUnits struct_units(const Node* leaves, int count) {
  const Layout layout = lay_out(leaves, count);
  return {unit_scalar(layout.unit), layout.unit, layout.bytes / layout.unit};
}

void load_struct(const Access& access, Node* leaves, int count) {
  const Layout layout = lay_out(leaves, count);
  const Scalar scalar = unit_scalar(layout.unit);
  const int total = layout.bytes / layout.unit;
  const int width = access_width(access, total, layout.unit);
  std::vector<Node> units;
  for (int first = 0; first < total; first += width) {
    const NodeType type = width == 1 ? scalar_type(scalar) : vector_type(scalar, width);
    const Node loaded = emit_load(part(access, first), type, access.loc);
    for (int i = 0; i < width; ++i) {
      units.push_back(
          width == 1 ? loaded
                     : emit_part(scalar_type(scalar), Opcode::kExtract, loaded, i, access.loc));
    }
  }
  std::vector<Node> elements;
  for_each_element(layout, [&](size_t leaf, int i, int first, int parts) {
    const NodeType type = layout.members[leaf].type;
    elements.push_back(
        put_together(&units[static_cast<size_t>(first)], parts, type.scalar, access.loc));
    if (i + 1 < type.count) return;
    leaves[leaf] =
        type.count == 1 ? elements[0] : emit_pack(type, elements.data(), type.count, access.loc);
    elements.clear();
  });
}

void load_struct(const Access& access, const Point& named, Node* leaves, int count) {
  Trace* const trace = Trace::current();
  if (trace == nullptr || trace->serial() != named.trace) return load_struct(access, leaves, count);
  const Trace::At there(*trace, named);
  load_struct(access, leaves, count);
}

void store_struct(const Access& access, const Node* leaves, int count) {
  const Layout layout = lay_out(leaves, count);
  const Scalar scalar = unit_scalar(layout.unit);
  const int total = layout.bytes / layout.unit;
  // What pads the struct is written, too: as zeros.
  std::vector<Node> units(static_cast<size_t>(total), Node{.type = scalar_type(scalar)});
  for_each_element(layout, [&](size_t leaf, int i, int first, int parts) {
    const Node element = leaves[leaf].type.count == 1
                             ? leaves[leaf]
                             : emit_part(scalar_type(leaves[leaf].type.scalar), Opcode::kExtract,
                                         leaves[leaf], i, access.loc);
    take_apart(element, parts, scalar, &units[static_cast<size_t>(first)], access.loc);
  });
  const int width = access_width(access, total, layout.unit);
  for (int first = 0; first < total; first += width) {
    const Node* const from = &units[static_cast<size_t>(first)];
    const Node value =
        width == 1 ? *from : emit_pack(vector_type(scalar, width), from, width, access.loc);
    emit_store(part(access, first), value, access.loc);
  }
}

Node new_struct_array(bool shared, StructUnits units, const int64_t* extents, int rank,
                      SourceLoc loc) {
  std::vector<int64_t> all(extents, extents + rank);
  all.push_back(units.count);
  return shared ? new_shared(units.scalar, all.data(), rank + 1, loc)
                : new_local(units.scalar, all.data(), rank + 1, loc);
}

}  // namespace heddle::detail
