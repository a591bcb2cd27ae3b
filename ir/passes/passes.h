// The built-in passes as functions. Each keeps a valid kernel valid, and says whether it changed
// it; its file says what it does, why, and shows an example. Pipelines run them by name
// (pipeline.h).
#pragma once

#include "heddle/ir/kernel.h"

namespace heddle::ir {

bool promote_vars(Kernel& kernel);     // promote_vars.cc
bool unroll(Kernel& kernel);           // unroll.cc
bool fold(Kernel& kernel);             // fold.cc
bool reduce_strength(Kernel& kernel);  // reduce_strength.cc
bool dce(Kernel& kernel);              // dce.cc
bool licm(Kernel& kernel);             // licm.cc
bool cse(Kernel& kernel);              // cse.cc
bool widen_loops(Kernel& kernel);      // widen_loops.cc
bool unroll_loads(Kernel& kernel);     // unroll_loads.cc
bool vectorize(Kernel& kernel);        // vectorize.cc
bool early_loads(Kernel& kernel);      // early_loads.cc
bool contract(Kernel& kernel);         // contract.cc
bool order(Kernel& kernel);            // order.cc

}  // namespace heddle::ir
