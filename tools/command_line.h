// The heddle command as a function, so that a program of your own offers it for its own kernels:
//
//   #include <heddle/tools/command_line.h>
//   int main(int argc, char** argv) { return heddle::tools::run_command_line(argc, argv); }
//
//   my_program list | env | run KERNEL … | dump KERNEL … | opt FILE.ir …      (--help for each)
//
// It knows the kernels that are registered (heddle/runtime/operation/registry.h) in the program itself and in
// the libraries that --plugin names. Link heddle::cli, and heddle::kernels whole if it is to know
// the kernel library too; a program that takes plug-ins calls heddle_loads_plugins(my_program) in
// its CMakeLists.txt, so that they find all of Heddle in it and register with it.
//
// A plug-in is a shared library (CMake: add_library(my_kernels MODULE …)) that links
// heddle::plugin, which is headers alone, and holds a Registered constant for each kernel.
#pragma once

namespace heddle::tools {

// What main returns: 0 on success; 1 where a kernel, its result or the machine is at fault; 2 where the
// command line or a file that it names is. Illegal textual IR counts as such a file; errors of passes,
// the emitter or ptxas on legal IR are 1. Every error is printed to stderr, and no exception is thrown.
int run_command_line(int argc, char** argv);

}  // namespace heddle::tools
