// Compilations that processes take over from each other: where the code behind a kernel is known, a launch in a second process neither
// traces it nor runs passes nor emits PTX, but reads what the first one kept (CompileOptions::recall).
//
// Two entries in the user's cache (codegen/cache/disk_cache.h): the facts of arguments for which a kernel was compiled, and for
// each set of facts the compilation. The machine code is an entry of its own, under its PTX, as ever.
//
// An entry belongs to one build of the program (its build ID), of one kernel and the values that it was given, for one block, cluster,
// target and set of options. Nothing is kept of a kernel that captures what cannot be compared between processes, of a program that was
// linked without build ID or has registered passes, and where stages are shown or watched.
#pragma once

#include <memory>

#include "heddle/ir/kernel_source.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/compile.h"

namespace heddle::runtime {

// compile_source() (compile.h), or what was kept of it. A compilation that was recalled is kept on; one that was made is kept for others
// where the options ask for that.
StatusOr<std::shared_ptr<const Compilation>> recall_or_compile(
    const ir::KernelSource& source, const ir::Specialization& specialization,
    const CompileOptions& options, std::shared_ptr<const Compilation>* partial = nullptr);

}  // namespace heddle::runtime
