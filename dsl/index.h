// Coordinates of views and numbers of layouts, as users give them.
#pragma once

#include "heddle/dsl/value.h"

namespace heddle::detail {

// A coordinate: any integer of host or kernel. Unsigned 32-bit ones become 64-bit, which holds
// them.
struct Index {
  Node node;
  SourceLoc loc;  // the line that gave it

  // From an integer of the kernel, or a host number.
  template <class X>
  requires(StandsFor<X, int32_t> || ReadsAs<X, int64_t>)
      Index(const X& x, SourceLoc where = SourceLoc::current())
      : node(read_as<std::conditional_t<ReadsAs<X, int64_t>, int64_t, int32_t>>(x, where)),
        loc(where) {}
  template <class X>
  requires ReadsAs<X, uint32_t> Index(const X& x, SourceLoc where = SourceLoc::current())
      : node(emit_as(scalar_type<int64_t>(), op::kConvert, x.read_node(where), where)),
        loc(where) {}
  template <class H>
  requires(std::is_integral_v<H> && !std::is_same_v<H, bool>)
      Index(H host, SourceLoc where = SourceLoc::current())
      : node(fits<int32_t>(host) ? host_node(static_cast<int32_t>(host))
                                 : host_constant<int64_t>(host, where)),
        loc(where) {}
};

}  // namespace heddle::detail
