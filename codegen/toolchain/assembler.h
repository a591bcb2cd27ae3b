// Who makes machine code of PTX.
#pragma once

#include <cstdint>

namespace heddle::codegen {

// The code is the same, of one version of ptxas. What differs is what a small kernel waits for (the library starts no process, which
// takes 3 to 7 ms), and what a crash or a hang does.
enum class Assembler : uint8_t {
  kAny,  // the library where there is one that knows the target, else the program; where somebody names a program, that one
  kLibrary,  // in this process (ptx_library.h)
  kPtxas,    // in a process of its own
  kDriver,   // the driver, when it loads the PTX: slower, and without a report
};

}  // namespace heddle::codegen
