// The subcommands of the heddle command, each with its options as plain data. command_line.cc reads
// the options; the functions print to stdout and return the exit code.
#pragma once

#include <string>
#include <vector>

#include "heddle/tools/command/kernel_choice.h"
#include "heddle/tools/command/outcome.h"
#include "heddle/tools/command/pass_options.h"
#include "heddle/tools/command/tuning_search.h"

namespace heddle::tools {

// Lists the registered kernels, or says what one takes.
struct ListOptions {
  std::string kernel;  // empty: all
  bool json = false;
};
Exit list_kernels(const ListOptions& options);

// What this machine has: compiler, assembler, disassemblers, driver, GPUs; and how to get what is
// missing.
struct EnvOptions {
  bool json = false;
};
Exit show_environment(const EnvOptions& options);

// The cache of compiled kernels on disk.
struct CacheOptions {
  std::string action = "info";  // of cache_actions()
  bool json = false;
};
// "info": where it is, and how large; "list": what it has; "clear": deletes that; "verify": reads all, and deletes what is
// damaged.
std::vector<std::string> cache_actions();
Exit manage_cache(const CacheOptions& options);

// Runs a kernel on .npy files.
struct RunOptions {
  KernelChoice choice;
  std::vector<std::string> inputs;   // "x=FILE"
  std::vector<std::string> outputs;  // "y=FILE"
  std::string device;                // empty: cuda:0 where there is one, else interp
  bool check = false;
  int repeat = 0;
  int64_t max_instructions = -1;  // of the interpreter; -1: its own limit
  std::string completion;         // of the interpreter: early, late, seed:N; empty: its own
};
Exit run_kernel(const RunOptions& options);

// Builds a kernel for programs that run without Heddle: C and C++ headers, C with the machine code in it, and a shared
// library of that.
struct BuildOptions {
  KernelChoice choice;
  std::vector<std::string> shapes;  // as of tune; none: the sizes
  std::string targets;              // "sm_80,sm_90a"; empty: the default one
  std::string folder = ".";         // where files go
  std::string name;                 // of the function and the files; empty: the kernel's
  bool no_library = false;          // leave out the shared library
  bool tvm_ffi = false;             // the function in the form of TVM-FFI, too
};
Exit build_kernel(const BuildOptions& options);

// Compiles what a warm-up list has (runtime/ahead/warm_up.h), for the cache on disk.
struct WarmOptions {
  std::string list;    // a file
  std::string arch;    // "sm_90a": without a GPU; empty: for the device
  std::string device;  // empty: cuda:0 where there is one, else the default architecture
  int threads = 0;     // 0: one for each core
  bool quiet = false;  // no line for each job
  bool json = false;
};
Exit warm_cache(const WarmOptions& options);

// Measures the configurations of a kernel and keeps the fastest; or lists, exports or imports what is kept. `timer`
// takes the place of a GPU's.
struct TuneOptions {
  KernelChoice choice;              // without a name: one of the others
  std::vector<std::string> shapes;  // "4096x4096x64" or "m=4096,n=4096,k=64"; none: the sizes
  std::string device;               // empty: cuda:0
  double budget = 120;              // seconds
  bool all = false;                 // print every candidate's time
  bool list = false;
  std::string export_file, import_file;
};
Exit tune_kernel(const TuneOptions& options, const Timer& timer = {});

// Measures kernels of the library on a GPU, beside peers in one process, which is Python's.
struct BenchOptions {
  KernelChoice choice;              // without a name: a suite
  std::vector<std::string> shapes;  // as TuneOptions has them; none: the sizes
  std::string dtypes;               // "bf16,f32": of the setting dtype; empty: as it is set
  std::string suite;                // "smoke", "full" or a file
  std::string against;              // "torch,torch.compile,triton,cub"
  std::string device;               // empty: cuda:0
  int rounds = 15;                  // bursts of each contender
  std::string json, plot, report;   // files, and a folder; empty: none
  std::string command;              // as it was typed, for the figures
};
Exit bench_kernels(const BenchOptions& options);

// Runs a kernel of the library under Nsight Compute: what bounds it, and what its source lines wait for.
struct ProfileOptions {
  KernelChoice choice;
  std::string shape;       // as TuneOptions has it; empty: the sizes
  std::string device;      // empty: cuda:0
  std::string json, html;  // files; empty: none
  std::string command;     // as it was typed
};
Exit profile_kernel(const ProfileOptions& options);

// Shows a registered kernel at each stage of its compilation.
struct DumpOptions {
  KernelChoice choice;
  std::vector<std::string> stages;  // "trace,ir" each; none: all, or with stats or a report none
  std::string arch;                 // empty: sm_90a
  PassOptions passes;
  std::string levels;  // "3", or with `diff` two, as "0,3"; empty: by `passes`
  bool diff = false;   // two levels beside each other
  bool stats = false;
  bool report = false;  // what became of it in figures (runtime/observe/kernel_report.h)
  bool json = false;
  std::string folder;  // empty: stdout
};
Exit dump_kernel(const DumpOptions& options);

// What became of each source line of a registered kernel.
struct ExplainOptions {
  KernelChoice choice;
  std::string arch;  // empty: sm_90a
  PassOptions passes;
  bool json = false;
  std::string html;  // a file for the page; empty: text
};
Exit explain_kernel(const ExplainOptions& options);

// Runs passes on a kernel in textual IR.
struct OptOptions {
  std::string file;  // "-": stdin
  PassOptions passes;
  std::string emit = "ir";
  std::string arch;  // empty: the file's
  bool locs = false;
  std::string output;  // empty: stdout
};
Exit optimize_file(const OptOptions& options);

// Lists passes with their options, and levels.
struct PassesOptions {
  bool json = false;
};
Exit list_passes(const PassesOptions& options);

// The language reference, as Markdown.
struct ReferenceOptions {
  std::string output;  // empty: stdout
};
Exit write_reference(const ReferenceOptions& options);

// Evaluates expressions of layouts (dsl/layout/calculator.h).
struct LayoutOptions {
  std::string expression;
  bool batch = false;  // one a line on stdin, one result a line
  bool table = false;  // the indices as a grid
  std::string svg;     // files for pictures
  std::string html;
  std::string tile;               // of a layout of threads and values: the tile's shape
  std::string atom;               // a copy atom's name, in the place of an expression
  int element_bits = 16;          // of the atom's elements
  int bank_bits = 0;              // of shared memory: bits of an element
  bool descriptor = false;        // the matrix descriptors of the layout
  bool boxes = false;             // the copy engine's boxes of the layout
  std::string type = "bf16";      // of its elements
  int rows = 0;                   // of an instruction's part; 0: of the layout
  std::string mma;                // an atom of products, in the place of an expression
  std::string atoms = "(1,1,1)";  // how often it is repeated along m, n and k
  bool mmas = false;              // lists atoms of products
  bool functions = false;         // lists what expressions may call
};
Exit calculate_layout(const LayoutOptions& options);

}  // namespace heddle::tools
