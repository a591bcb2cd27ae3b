// A place in a pipeline of stages, which loops carry.
#pragma once

#include "heddle/dsl/control.h"
#include "heddle/dsl/operators.h"

namespace heddle {

// A place in a pipeline: a stage, and the parity of its phase. Loops carry it.
struct PipelineState {
  // The stage's number, and the parity of its phase.
  Int index;
  UInt phase;

  // The place behind this one, of so many stages.
  PipelineState next(int stages) const {
    const Bool wraps = index == stages - 1;
    return {select(wraps, 0, index + 1), select(wraps, phase ^ 1u, phase)};
  }
  // The place so many places ahead (0 or more): behind what another warpgroup uses.
  PipelineState ahead(const Int& places, int stages) const {
    const Int place = index + places;
    return {place % stages, phase ^ (bitcast<uint32_t>(place / stages) & 1u)};
  }
};

}  // namespace heddle
