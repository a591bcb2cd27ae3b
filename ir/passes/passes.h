// The built-in passes as functions. Each keeps a valid kernel valid, and says whether it changed
// it; its file says what it does, why, and shows an example. Pipelines run them by name
// (pipeline.h). A PassContext stands for the kernel too.
#pragma once

#include "heddle/ir/kernel.h"
#include "heddle/ir/passes/pass.h"

namespace heddle::ir {

bool promote_vars(Kernel& kernel);           // promote_vars.cc
bool equal_extents(Kernel& kernel);          // equal_extents.cc
bool unroll(PassContext& context);           // unroll.cc
bool fold(PassContext& context);             // fold.cc
bool if_convert(Kernel& kernel);             // if_convert.cc
bool narrow(PassContext& context);           // narrow.cc
bool reduce_strength(PassContext& context);  // reduce_strength.cc
bool warp_index(PassContext& context);       // warp_index.cc
bool dce(Kernel& kernel);                    // dce.cc
bool licm(PassContext& context);             // licm.cc
bool cse(PassContext& context);              // cse.cc
bool widen_loops(PassContext& context);      // widen_loops.cc
bool unroll_loads(PassContext& context);     // unroll_loads.cc
bool vectorize(PassContext& context);        // vectorize.cc
bool share_addresses(PassContext& context);  // share_addresses.cc
bool lower_division(PassContext& context);   // lower_division.cc
bool sink(PassContext& context);             // sink.cc
bool early_loads(PassContext& context);      // early_loads.cc
bool contract(Kernel& kernel);               // contract.cc
bool pack_arithmetic(Kernel& kernel);        // pack_arithmetic.cc

}  // namespace heddle::ir
