#include "heddle/tools/command_line.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/wording.h"
#include "heddle/tools/command/commands.h"

namespace heddle::tools {
namespace {

// Everything that can stand on the command line.
struct Options {
  std::vector<std::string> plugins;
  ListOptions list;
  EnvOptions env;
  CacheOptions cache;
  RunOptions run;
  BuildOptions build;
  WarmOptions warm;
  TuneOptions tune;
  BenchOptions bench;
  ProfileOptions profile;
  DumpOptions dump;
  ExplainOptions explain;
  OptOptions opt;
  PassesOptions passes;
  ReferenceOptions reference;
  LayoutOptions layout;
};

// Elsewhere an empty value means that the option was not given.
CLI::Validator given(const std::string& value) {
  return CLI::Validator(
      [value](std::string& text) {
        return text.empty() ? absl::StrCat("is empty; it takes ", value) : std::string();
      },
      "");
}

CLI::Validator whole_number(int most) {
  return CLI::Validator(
      [most](std::string& text) {
        int number = 0;
        if (absl::SimpleAtoi(text, &number) && number >= 0 && number <= most) {
          text = absl::StrCat(number);  // CLI11 would read 010 as eight
          return std::string();
        }
        return absl::StrCat("'", text, "' is no whole number from 0 to ", most);
      },
      "");
}

// One value each time that the option is given: otherwise it would take the arguments after it too.
void add_each(CLI::App* app, const std::string& name, std::vector<std::string>& values,
              const std::string& value, const std::string& help) {
  app->add_option(name, values, help)
      ->type_name(value)
      ->allow_extra_args(false)
      ->check(given(value));
}

void add_text(CLI::App* app, const std::string& name, std::string& text, const std::string& value,
              const std::string& help) {
  app->add_option(name, text, help)->type_name(value)->check(given(value));
}

void add_kernel(CLI::App* app, KernelChoice& choice, bool required = true) {
  app->add_option("KERNEL", choice.kernel, "a name from 'heddle list'")
      ->type_name("")
      ->required(required);
  add_each(app, "--set", choice.settings, "NAME=VALUE", "a setting of the kernel");
  add_each(app, "--size", choice.sizes, "NAME=N", "a dimension that no input tells");
}

void add_passes(CLI::App* app, PassOptions& passes) {
  app->add_option("--passes", passes.passes,
                  "passes by name, such as unroll{factor=4}, or a level, O0 to O3; "
                  "O3,-licm leaves one out; default: O3")
      ->type_name("A,B,...");
  add_text(app, "--print-before", passes.print_before, "PASS|all", "print the IR before a pass");
  add_text(app, "--print-after", passes.print_after, "PASS|all", "print the IR after a pass");
  app->add_option("--pass-limit", passes.limit, "run so many passes and no more")
      ->type_name("N")
      ->check(whole_number(1'000'000));
  app->add_flag("--print-changed", passes.print_changed, "print what each pass changes, as a diff");
  app->add_flag("--time-passes", passes.time, "say how long each pass took");
  app->add_flag("--verify", passes.verify, "verify the IR before the passes and after each");
}

CLI::App* add_list(CLI::App& app, Options& options) {
  CLI::App* const list = app.add_subcommand("list", "the kernels that there are");
  list->add_option("KERNEL", options.list.kernel, "what this one takes, and its settings")
      ->type_name("")
      ->check(given("a kernel's name"));
  list->add_flag("--json", options.list.json, "as JSON");
  return list;
}

CLI::App* add_env(CLI::App& app, Options& options) {
  CLI::App* const env =
      app.add_subcommand("env", "what this machine has, and how to get what it lacks");
  env->add_flag("--json", options.env.json, "as JSON");
  return env;
}

CLI::App* add_cache(CLI::App& app, Options& options) {
  CLI::App* const cache = app.add_subcommand("cache", "the compiled kernels that are kept on disk");
  cache
      ->add_option("ACTION", options.cache.action,
                   "info, list, clear, or verify, which deletes what is damaged; default: info")
      ->type_name("")
      ->check(CLI::IsMember(cache_actions()));
  cache->add_flag("--json", options.cache.json, "as JSON");
  return cache;
}

CLI::App* add_run(CLI::App& app, Options& options) {
  RunOptions& o = options.run;
  CLI::App* const run = app.add_subcommand("run", "run a kernel on .npy files");
  add_kernel(run, o.choice);
  add_each(run, "--in", o.inputs, "NAME=FILE",
           "an input; types that NumPy lacks as bits, or rounded from float32");
  add_each(run, "--out", o.outputs, "NAME=FILE", "where an output goes");
  add_text(run, "--device", o.device, "interp|cuda:N", "default: cuda:0 if there is one");
  run->add_flag("--check", o.check, "compare with the kernel's reference in double precision");
  run->add_option("--repeat", o.repeat, "launch it so often again, and time that")
      ->type_name("N")
      ->check(whole_number(1'000'000));
  run->add_option("--max-instructions", o.max_instructions,
                  "when the interpreter gives up on a block; 0: never")
      ->type_name("N")
      ->check(whole_number(2'000'000'000));
  add_text(run, "--completion", o.completion, "early|late|seed:N",
           "when the interpreter completes copies and products");
  return run;
}

CLI::App* add_build(CLI::App& app, Options& options) {
  BuildOptions& o = options.build;
  CLI::App* const build = app.add_subcommand(
      "build", "make C and a shared library of a kernel, for programs that run without Heddle");
  add_kernel(build, o.choice);
  add_each(build, "--shape", o.shapes, "SHAPE",
           "what to build for, such as 8192x1024; may be given several times");
  add_text(build, "--arch", o.targets, "A,B,...",
           "architectures, such as sm_80,sm_90a; default: sm_90a");
  add_text(build, "-o,--out", o.folder, "FOLDER", "where files go; default: here");
  add_text(build, "--name", o.name, "NAME", "of the function and the files; default: the kernel's");
  build->add_flag("--no-library", o.no_library, "write sources alone");
  build->add_flag("--tvm-ffi", o.tvm_ffi,
                  "also NAME_tvm_ffi.c, and __tvm_ffi_NAME in the library: for torch, JAX and C++ "
                  "by TVM-FFI");
  return build;
}

CLI::App* add_warm(CLI::App& app, Options& options) {
  WarmOptions& o = options.warm;
  CLI::App* const warm = app.add_subcommand(
      "warm", "compile what a program has recorded (HEDDLE_RECORD), for the cache on disk");
  warm->add_option("FILE", o.list, "a warm-up list")
      ->type_name("")
      ->required()
      ->check(given("a file"));
  CLI::Option* const arch =
      warm->add_option("--arch", o.arch, "an architecture, such as sm_90a, without a GPU")
          ->type_name("ARCH")
          ->check(given("ARCH"));
  warm->add_option("--device", o.device,
                   "a GPU, for whose architecture; default: cuda:0 if there is one, else sm_90a")
      ->type_name("cuda:N")
      ->check(given("cuda:N"))
      ->excludes(arch);
  warm->add_option("--threads", o.threads, "that compile; default: one for each core")
      ->type_name("N")
      ->check(whole_number(1024));
  warm->add_flag("--quiet", o.quiet, "print no line for each that is compiled");
  warm->add_flag("--json", o.json, "the summary as JSON alone");
  return warm;
}

CLI::App* add_tune(CLI::App& app, Options& options) {
  TuneOptions& o = options.tune;
  CLI::App* const tune = app.add_subcommand(
      "tune", "measure a kernel's configurations on a GPU; launches use the fastest from then on");
  add_kernel(tune, o.choice, /*required=*/false);
  add_each(tune, "--shape", o.shapes, "SHAPE",
           "what to tune for, such as 4096x4096x64 or m=4096,n=4096,k=64");
  add_text(tune, "--device", o.device, "cuda:N", "default: cuda:0");
  tune->add_option("--budget", o.budget, "for all shapes together; default: 120")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 1e6));
  tune->add_flag("--all", o.all, "print the times of all candidates, fastest first");
  tune->add_flag("--list", o.list, "print what is kept");
  add_text(tune, "--export", o.export_file, "FILE", "write what is kept to one file");
  add_text(tune, "--import", o.import_file, "FILE", "keep what such a file has");
  return tune;
}

CLI::App* add_bench(CLI::App& app, Options& options) {
  BenchOptions& o = options.bench;
  CLI::App* const bench = app.add_subcommand(
      "bench",
      "measure kernels on a GPU beside torch, torch.compile, Triton and CUB, in one process");
  add_kernel(bench, o.choice, /*required=*/false);
  add_each(bench, "--shape", o.shapes, "SHAPE",
           "a size to measure, such as 8192x8192 or rows=8192,columns=1023");
  add_text(bench, "--dtype", o.dtypes, "TYPE,...", "element types: a case for each");
  add_text(bench, "--suite", o.suite, "smoke|full|FILE", "cases from a file, instead of a kernel");
  add_text(bench, "--against", o.against, "PEER,...", "torch, torch.compile, triton, cub");
  add_text(bench, "--device", o.device, "cuda:N|interp", "default: cuda:0");
  bench->add_option("--rounds", o.rounds, "bursts of each contender; default: 15")
      ->type_name("N")
      ->check(CLI::Range(1, 10'000));
  add_text(bench, "--json", o.json, "FILE", "write the figures");
  add_text(bench, "--plot", o.plot, "FILE.svg", "draw them over size");
  add_text(bench, "--report", o.report, "DIR", "write a page of figures and drawings");
  return bench;
}

CLI::App* add_profile(CLI::App& app, Options& options) {
  ProfileOptions& o = options.profile;
  CLI::App* const profile = app.add_subcommand(
      "profile", "say by Nsight Compute what bounds a kernel, and what its lines wait for");
  add_kernel(profile, o.choice);
  add_text(profile, "--shape", o.shape, "SHAPE",
           "such as 8192x8192 or rows=8192,columns=1023; default: the kernel's example");
  add_text(profile, "--device", o.device, "cuda:N", "default: cuda:0");
  add_text(profile, "--json", o.json, "FILE", "write what was found");
  add_text(profile, "--html", o.html, "FILE", "write a page of it");
  return profile;
}

CLI::App* add_dump(CLI::App& app, Options& options) {
  DumpOptions& o = options.dump;
  CLI::App* const dump = app.add_subcommand("dump", "show what becomes of a kernel");
  add_kernel(dump, o.choice);
  add_each(dump, "--stage", o.stages, "STAGE",
           "trace, constants, ir, ptx, cubin, sass or all; several with commas");
  add_text(dump, "--arch", o.arch, "SM", "the target, such as sm_90a");
  add_passes(dump, o.passes);
  dump->add_option("--opt", o.levels, "the level of optimisation, 0 to 3; two with --diff")
      ->type_name("N|N,M")
      ->check(given("a level"))
      ->excludes("--passes");
  dump->add_flag("--stats", o.stats, "count ops and instructions; registers, spills, memory");
  dump->add_flag("--report", o.report,
                 "registers, spills, shared memory, occupancy, times, ptxas's notes by C++ line");
  dump->add_flag("--json", o.json, "everything as one JSON document");
  dump->add_option("-o,--output", o.folder, "a file for each stage in this folder, made if need be")
      ->type_name("DIR")
      ->check(given("DIR"))
      ->excludes("--json");
  dump->add_flag("--diff", o.diff, "two levels beside each other: IR, PTX, SASS")
      ->needs("--opt")
      ->excludes("--json")
      ->excludes("--output")
      ->excludes("--report")
      ->excludes("--stats");
  return dump;
}

CLI::App* add_explain(CLI::App& app, Options& options) {
  ExplainOptions& o = options.explain;
  CLI::App* const explain =
      app.add_subcommand("explain", "show what became of each source line of a kernel");
  add_kernel(explain, o.choice);
  add_text(explain, "--arch", o.arch, "SM", "the target, such as sm_90a");
  add_passes(explain, o.passes);
  explain->add_flag("--json", o.json, "everything as one JSON document");
  explain->add_option("--html", o.html, "a page to look at, with IR, PTX and machine code by line")
      ->type_name("FILE")
      ->check(given("FILE"))
      ->excludes("--json");
  return explain;
}

CLI::App* add_opt(CLI::App& app, Options& options) {
  OptOptions& o = options.opt;
  CLI::App* const opt = app.add_subcommand("opt", "run passes on a kernel in textual IR");
  opt->add_option("FILE", o.file, "textual IR; - is stdin")
      ->type_name("")
      ->required()
      ->check(given("a file, or - for stdin"));
  add_passes(opt, o.passes);
  opt->add_option("--emit", o.emit, "ir, ptx or cubin")
      ->type_name("KIND")
      ->check(CLI::IsMember({"ir", "ptx", "cubin"}));
  add_text(opt, "--arch", o.arch, "SM", "the target instead of the file's");
  opt->add_flag("--locs", o.locs, "print each op with its place in the source");
  add_text(opt, "-o,--output", o.output, "FILE", "where the result goes, in a folder that exists");
  return opt;
}

CLI::App* add_passes_command(CLI::App& app, Options& options) {
  CLI::App* const passes = app.add_subcommand("passes", "the passes that there are, and levels");
  passes->add_flag("--json", options.passes.json, "as one JSON document");
  return passes;
}

CLI::App* add_reference(CLI::App& app, Options& options) {
  CLI::App* const reference =
      app.add_subcommand("reference", "every operation and function, as Markdown");
  add_text(reference, "-o,--out", options.reference.output, "FILE",
           "where it goes, in a folder that exists");
  return reference;
}

CLI::App* add_layout(CLI::App& app, Options& options) {
  CLI::App* const layout = app.add_subcommand("layout", "the layout calculator, and pictures");
  layout->footer(
      "Expressions are in CuTe's notation:\n"
      "  heddle layout 'zipped_divide((9,(4,8)):(59,(13,1)), <3:3,(2,4):(1,8)>)'\n"
      "  heddle layout '((4,8):(8,1))((2,3))'          a layout at a coordinate\n"
      "  heddle layout 'coalesce((?{div=8},4):(1,?))'  ? is a number that is not known yet\n"
      "  heddle layout --table 'S<2,0,2> o 0 o (4,4):(4,1)'\n"
      "  heddle layout --svg tile.svg --banks 16 'S<3,3,3> o 0 o (8,64):(64,1)'\n"
      "  heddle layout --html tv.html --tv '(8,16)' 'make_layout_tv((4,8):(8,1), (2,2):(2,1))'\n"
      "  heddle layout --atom ldmatrix.x4 --svg ldmatrix.svg\n"
      "  heddle layout --mma mma.m16n8k16.f32.f16.f16 --atoms '(2,2,1)' --html mma.html\n"
      "  heddle layout --descriptor --type bf16 --rows 64 'S<3,3,3> o 0 o (128,64):(64,1)'\n"
      "  heddle layout --boxes --html boxes.html 'S<3,3,3> o 0 o (64,(64,2)):(64,(1,4096))'");
  layout->add_option("expression", options.layout.expression)->option_text("EXPRESSION");
  layout->add_flag("--batch", options.layout.batch,
                   "one expression a line on stdin, a result or 'error: ...' a line");
  layout->add_flag("--table", options.layout.table, "the indices as a grid");
  add_text(layout, "--svg", options.layout.svg, "FILE", "a picture, in a folder that exists");
  add_text(layout, "--html", options.layout.html, "FILE",
           "a page: pointing at a cell shows coordinate, index and bank");
  add_text(layout, "--tv", options.layout.tile, "TILE",
           "draw threads and values: the layout is from (thread,value) into a tile of that shape");
  layout
      ->add_option("--banks", options.layout.bank_bits,
                   "colour by shared memory's banks; elements have so many bits")
      ->option_text("BITS")
      ->check(CLI::Range(1, 1024));
  add_text(
      layout, "--atom", options.layout.atom, "NAME",
      "a copy atom in the place of an expression: universal.128, cp.async.64, ldmatrix.x4.trans");
  layout->add_option("--element", options.layout.element_bits, "bits of the atom's elements")
      ->option_text("BITS");
  add_text(
      layout, "--mma", options.layout.mma, "NAME",
      "an atom of matrix products in the place of an expression: wgmma.m64n128k16.f32.bf16.bf16");
  add_text(layout, "--atoms", options.layout.atoms, "SHAPE",
           "the atoms of a tiled product along m, n and k: '(2,2,1)'");
  layout->add_flag("--mmas", options.layout.mmas, "list the atoms of matrix products");
  layout
      ->add_flag("--descriptor", options.layout.descriptor,
                 "the matrix descriptors of a tile (rows,depth) in shared memory")
      ->excludes(
          layout->add_flag("--boxes", options.layout.boxes,
                           "the boxes by which the copy engine fills a tile in shared memory"));
  add_text(layout, "--type", options.layout.type, "TYPE", "of the tile's elements: bf16");
  layout
      ->add_option("--rows", options.layout.rows,
                   "of one instruction's part of the tile: of A 64, of B the product's columns")
      ->option_text("N")
      ->check(CLI::Range(8, 256));
  layout->add_flag("--functions", options.layout.functions, "list what expressions may call");
  return layout;
}

struct Command {
  CLI::App* app;
  std::function<Exit()> run;
};

// What CLI11 did not understand, with the option that was probably meant.
Exit misunderstood(const CLI::App& app, const std::string& extra) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(absl::StrCat("--", name));
  }
  const std::vector<absl::string_view> views(names.begin(), names.end());
  return misused(absl::StrCat(app.get_name(), ": unexpected argument '", extra, "'",
                              ir::suggest(extra.substr(0, extra.find('=')), views), " ('heddle ",
                              app.get_name(), " --help' shows all)"));
}

// CLI11 would report an unknown command as one that is missing.
Status check_command(const std::vector<Command>& commands, int argc, char** argv) {
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.app->get_name());
  const std::string known =
      "commands: list, env, cache, run, build, warm, tune, bench, profile, dump, explain, opt, "
      "passes, "
      "reference, "
      "layout ('heddle --help' explains them)";
  if (argc < 2) return InvalidArgumentError(absl::StrCat("what is to be done? ", known));
  const absl::string_view word = argv[1];
  const bool option = absl::StartsWith(word, "-");
  if (option) names = {"-h", "--help", "--version"};
  if (std::find(names.begin(), names.end(), word) != names.end()) return OkStatus();
  const std::vector<absl::string_view> views(names.begin(), names.end());
  return InvalidArgumentError(absl::StrCat("unknown ", option ? "option" : "command", " '", word,
                                           "'", ir::suggest(word, views), "; ", known));
}

Exit dispatch(int argc, char** argv) {
  Options options;
  CLI::App app("Heddle: GPU kernels written as C++ lambdas, to look at, run and check.", "heddle");
  app.set_version_flag("--version", absl::StrCat("heddle ", HEDDLE_VERSION));
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  const std::vector<Command> commands = {
      {add_list(app, options), [&] { return list_kernels(options.list); }},
      {add_env(app, options), [&] { return show_environment(options.env); }},
      {add_cache(app, options), [&] { return manage_cache(options.cache); }},
      {add_run(app, options), [&] { return run_kernel(options.run); }},
      {add_build(app, options), [&] { return build_kernel(options.build); }},
      {add_warm(app, options), [&] { return warm_cache(options.warm); }},
      {add_tune(app, options), [&] { return tune_kernel(options.tune); }},
      {add_bench(app, options), [&] { return bench_kernels(options.bench); }},
      {add_profile(app, options), [&] { return profile_kernel(options.profile); }},
      {add_dump(app, options), [&] { return dump_kernel(options.dump); }},
      {add_explain(app, options), [&] { return explain_kernel(options.explain); }},
      {add_opt(app, options), [&] { return optimize_file(options.opt); }},
      {add_passes_command(app, options), [&] { return list_passes(options.passes); }},
      {add_reference(app, options), [&] { return write_reference(options.reference); }},
      {add_layout(app, options), [&] { return calculate_layout(options.layout); }},
  };
  for (const Command& command : commands) {
    add_each(command.app, "--plugin", options.plugins, "LIBRARY",
             "load kernels and passes from a library");
    command.app->allow_extras();
  }
  if (Status s = check_command(commands, argc, argv); !s.ok()) return misused(s);
  options.bench.command = options.profile.command =
      absl::StrCat("heddle ", absl::StrJoin(argv + 1, argv + argc, " "));

  const Command* chosen = nullptr;
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wish) {  // --help, --version
    app.exit(wish, std::cout, std::cerr);
    return Exit::kDone;
  } catch (const CLI::ParseError& error) {
    return misused(error.what());
  }
  for (const Command& command : commands) {
    if (command.app->parsed()) chosen = &command;
  }
  if (chosen == nullptr) return misused("name one command");
  if (const std::vector<std::string> extras = chosen->app->remaining(); !extras.empty()) {
    return misunderstood(*chosen->app, extras[0]);
  }
  for (const std::string& plugin : options.plugins) {
    if (Status s = load_plugin(plugin); !s.ok()) return misused(s);
  }
  return chosen->run();
}

// Where a standard stream is closed, the next file that is opened would get its number, and then what is
// printed. /dev/null is opened in its place, in the direction that makes each use fail.
void occupy_standard_streams() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(number, F_GETFD) == -1 && errno == EBADF) {
      open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
  }
}

// Lost output is a failure, unless the reader closed the pipe.
Exit flush(Exit result) {
  errno = 0;
  std::cout.flush();  // which flushes stdout too, and is then the one that fails
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout;
  if (!lost) return result;
  const int error = errno;
  const Exit worse = result == Exit::kDone ? Exit::kFailed : result;
  if (error == EPIPE) return worse;
  failed(absl::StrCat("standard output cannot be written",
                      error == 0 ? "" : absl::StrCat(": ", std::strerror(error))));
  return worse;
}

}  // namespace

int run_command_line(int argc, char** argv) {
  occupy_standard_streams();
  Exit result = Exit::kFailed;
  try {
    result = dispatch(argc, argv);
  } catch (const std::bad_alloc&) {
    result = failed("there is not enough memory");
  } catch (const std::exception& error) {  // of a library, or of a plug-in's kernel
    result = failed(error.what());
  } catch (...) {
    result = failed("a kernel or plug-in threw something that is no std::exception");
  }
  return static_cast<int>(flush(result));
}

}  // namespace heddle::tools
