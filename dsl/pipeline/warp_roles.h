// Warp specialisation: the warpgroups of a block do different things at the same time.
//
//   warp_roles(Role{1, 40, [&](Int thread) { … }},         // the first warpgroup, 40 registers
//              Role{2, 232, [&](Int thread) { … }});       // the second and third
//
// Bodies get the thread's number among those of its role. Each warpgroup first gives up registers or
// asks for more (setmaxnreg, sm_90a), so that roles that need few leave them to the others; what all
// ask for must not be more than the block began with. The block has 128 threads for each warpgroup.
#pragma once

#include "heddle/dsl/contract.h"
#include "heddle/dsl/control.h"
#include "heddle/dsl/cuda/builtins.h"
#include "heddle/dsl/cuda/mbarrier.h"

namespace heddle {

// What `groups` warpgroups do, with `registers` for each thread: 24 to 256, a multiple of 8; 0 leaves
// them as they are.
template <class Body>
struct Role {
  // Warpgroups, registers of each thread, and what runs: body(thread).
  int groups;
  int registers;
  Body body;
  SourceLoc loc = SourceLoc::current();  // of the role
};
template <class Body>
Role(int, int, Body) -> Role<Body>;

namespace detail {

// Where registers are given up and where asked for: what a thread has at the start, if the block's
// share of the 64 Ki is given out evenly.
inline void set_role_registers(int registers, int threads, SourceLoc loc) {
  constexpr int kRegisters = 65536, kUnit = 8, kMost = 255;
  if (registers == 0 || threads == 0) return;
  int even = kRegisters / threads / kUnit * kUnit;
  if (even > kMost) even = kMost;
  emit_set_max_registers(registers, registers > even, loc);
}

// The thread's number among those of a role, whose bounds are known.
inline Int role_thread(int first_group, int groups, SourceLoc loc) {
  const Int thread = thread_idx.x - first_group * kWarpGroupSize;
  return Int(emit_assume_range(
      thread.node(), {.min = 0, .max = groups * kWarpGroupSize - 1, .name = "a role's thread"},
      loc));
}

template <class First, class... Rest>
void run_roles(int first_group, int threads, const Role<First>& role, const Role<Rest>&... rest) {
  const auto run = [&] {
    set_role_registers(role.registers, threads, role.loc);
    role.body(role_thread(first_group, role.groups, role.loc));
  };
  if constexpr (sizeof...(Rest) == 0) {
    run();
  } else {
    const int behind = first_group + role.groups;
    If({warp_id() < behind * (kWarpGroupSize / kWarpSize), role.loc}, run).Else([&] {
      run_roles(behind, threads, rest...);
    });
  }
}

}  // namespace detail

// Runs each role in its warpgroups: the first role in the first ones, and so on.
template <class... Bodies>
void warp_roles(const Role<Bodies>&... roles) {
  static_assert(sizeof...(Bodies) > 0, "warp_roles() needs a role");
  const int threads = (roles.groups + ...) * kWarpGroupSize;
  const SourceLoc locs[] = {roles.loc...};
  detail::require_threads(threads, "warp_roles()", locs[0]);
  detail::run_roles(0, threads, roles...);
}

}  // namespace heddle
