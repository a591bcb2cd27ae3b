// A place in a pipeline of stages, which loops carry.
#pragma once

#include "heddle/dsl/control.h"

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
};

}  // namespace heddle
