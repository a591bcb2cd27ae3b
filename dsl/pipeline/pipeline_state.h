// A place in a pipeline of stages, which loops carry, and the places of a pipeline.
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
    const Int stage = place % stages;
    return {stage, phase ^ (bitcast<uint32_t>(place / stages) & 1u)};
  }
};

// The places of a pipeline, which its producer and its consumers go along. Where the same threads fill
// and use the stages, they fill lead() stages ahead of the one in use. `under_way` products of the tensor
// cores may read stages before that one then.
class PipelineStages {
 public:
  // `under_way` is 0 to stages - 2.
  explicit PipelineStages(int stages, int under_way = 0, SourceLoc loc = SourceLoc::current());

  // How many stages there are, and how many of them are filled ahead of the one in use.
  int stages() const { return stages_; }
  int lead() const { return stages_ - 1 - under_way_; }

  // Where each consumer begins, and the producer; or the producer's place behind its first `filled` stages,
  // at most lead(), for copies ahead of a loop.
  PipelineState consumer() const { return {0, 0u}; }
  PipelineState producer(int filled = 0) const { return {filled, 1u}; }
  // The place behind one.
  PipelineState next(const PipelineState& p) const { return p.next(stages_); }
  // The producer's place lead() stages further on than a consumer's.
  PipelineState ahead(const PipelineState& p) const {
    const int back = under_way_ + 1;
    const Bool wraps = p.index >= back;
    const Int before = p.index - back, behind = p.index + lead();
    const UInt flipped = p.phase ^ 1u;
    return {select(wraps, before, behind), select(wraps, p.phase, flipped)};
  }

 private:
  int stages_, under_way_;
};

}  // namespace heddle
