// The sum of every row of a matrix at every stage: a C++ lambda (kernels/row_sum.cc) is traced,
// optimised, printed as PTX, assembled and launched, on a GPU where there is one and in the
// interpreter otherwise; the result is checked against sums in double precision.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "heddle/codegen/ptx.h"
#include "heddle/codegen/toolchain/ptxas.h"
#include "heddle/ir/text/printer.h"
#include "heddle/runtime/stopwatch_internal.h"
#include "heddle/tools/command/advice.h"
#include "heddle/tools/command/check.h"
#include "heddle/tools/command/execution.h"
#include "heddle/tools/command/kernel_choice.h"
#include "heddle/tools/command/outcome.h"
#include "heddle/tools/command/statistics.h"
#include "heddle/tools/elements.h"
#include "heddle/tools/npy.h"

namespace heddle::tools {
namespace {

struct DemoOptions {
  int64_t rows = 1024;
  int64_t columns = 1000;
  std::string dtype = "f32";
  std::string device;
  std::string matrix;  // where the matrix goes; empty: beside this program
};

constexpr uint64_t kSeed = 20250101;

// Numbers from -1 to 1, the same on every machine: the upper 53 bits of splitmix64.
std::vector<double> make_numbers(size_t count) {
  std::vector<double> numbers(count);
  uint64_t state = kSeed;
  for (double& number : numbers) {
    uint64_t bits = state += 0x9E3779B97F4A7C15;
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9;
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB;
    bits ^= bits >> 31;
    number = static_cast<double>(bits >> 11) * 0x1p-52 - 1;
  }
  return numbers;
}

std::string default_path() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / "demo_matrix.npy").string();
}

// Writes the matrix to its file and reads it back, as a user's data would be read.
StatusOr<HostArray> matrix_from_file(const DemoOptions& options, ir::Scalar dtype) {
  StatusOr<HostArray> matrix = HostArray::allocate({dtype, {options.rows, options.columns}});
  if (!matrix.ok()) return matrix;
  const size_t count = matrix->byte_count / ir::bytes_of(dtype);
  from_doubles(dtype, make_numbers(count), matrix->bytes());
  const std::string path = options.matrix.empty() ? default_path() : options.matrix;
  if (Status s = write_npy(path, *matrix); !s.ok()) return s;
  absl::PrintF("matrix: %s from %s (seed %d)\n", describe(matrix->shape), path, kSeed);
  return read_npy(path);
}

void print_heading(absl::string_view what) { absl::PrintF("\n==== %s\n\n", what); }

// What ran on the interpreter has no PTX yet.
StatusOr<codegen::PtxModule> ptx_of(const runtime::Compilation& compilation) {
  if (!compilation.ptx.text.empty()) return compilation.ptx;
  return codegen::emit_ptx(compilation.optimized);
}

StatusOr<codegen::Assembly> assembly_of(const runtime::Compilation& compilation,
                                        const codegen::PtxModule& ptx) {
  if (!compilation.assembly.cubin.empty()) return compilation.assembly;
  codegen::AssembleOptions options;
  options.arch = std::string(compilation.optimized.target->name);
  options.entries = {ptx.entry};
  return codegen::assemble(ptx.text, options);
}

// Prints every stage. Without ptxas the demo goes on; anything else is an error.
Status show_stages(const runtime::Compilation& compilation) {
  const absl::string_view target = compilation.optimized.target->name;
  print_heading("traced IR");
  absl::PrintF("%s", ir::print(compilation.traced));
  print_heading("optimised IR");
  absl::PrintF("%s", ir::print(compilation.optimized));
  runtime::Stopwatch stopwatch;
  const StatusOr<codegen::PtxModule> ptx = ptx_of(compilation);
  if (!ptx.ok()) return ptx.status();
  const double emit_us = stopwatch.lap();
  print_heading(absl::StrCat("PTX for ", target));
  absl::PrintF("%s", ptx->text);
  print_heading("ptxas");
  stopwatch.lap();
  const StatusOr<codegen::Assembly> assembly = assembly_of(compilation, *ptx);
  const double assemble_us = stopwatch.lap();
  if (assembly.ok()) {
    absl::PrintF("%s", describe(*assembly, ptx->entry));
  } else if (IsNotFound(assembly.status())) {
    absl::PrintF("%s\n",
                 advise(absl::StrCat(assembly.status().message(), "; the rest works without it")));
  } else {
    return assembly.status();
  }
  if (compilation.ptx.text.empty()) {
    absl::PrintF(
        "made for this output alone, since the interpreter needs neither: PTX in %.1f us, "
        "machine code in %.1f us\n",
        emit_us, assemble_us);
  }
  return OkStatus();
}

Exit demonstrate(const DemoOptions& options) {
  const StatusOr<ChosenKernel> kernel =
      choose_kernel({"row_sum", {absl::StrCat("dtype=", options.dtype)}});
  if (!kernel.ok()) return misused(kernel.status());
  const std::optional<ir::Scalar> dtype = ir::scalar_from_name(options.dtype);
  if (!dtype) return misused(absl::StrCat("unknown element type '", options.dtype, "'"));
  const StatusOr<Device> device = open_device(options.device);
  if (!device.ok()) {
    return IsInvalidArgument(device.status()) ? misused(device.status()) : failed(device.status());
  }
  runtime::Stopwatch stopwatch;
  StatusOr<HostArray> matrix = matrix_from_file(options, *dtype);
  if (!matrix.ok()) return misused(matrix.status());
  const double file_us = stopwatch.lap();

  HostArrays inputs;
  inputs["x"] = *std::move(matrix);
  const StatusOr<runtime::BoundCall> call = bind_inputs(*kernel, inputs);
  if (!call.ok()) return failed(call.status());
  const StatusOr<Execution> done = execute(*device, *call, inputs, /*repeat=*/0);
  if (!done.ok()) return failed(done.status());
  absl::PrintF("device: %s (%s)\n", device->name(), device->info().name);
  for (const auto& compilation : done->compilations) {
    if (Status s = show_stages(*compilation); !s.ok()) return failed(s);
  }

  stopwatch.lap();
  const StatusOr<Verdict> verdict = check_results(*kernel, inputs, done->outputs);
  if (!verdict.ok()) return failed(verdict.status());
  const double check_us = stopwatch.lap();
  print_heading("time of every stage");
  absl::PrintF("%-14s %12.1f us\n%s%-14s %12.1f us\n", "matrix file", file_us,
               describe_times(*done), "check", check_us);
  print_heading("result against sums in double precision");
  absl::PrintF("%s", verdict->text);
  return verdict->right ? Exit::kDone : failed("row_sum computed a wrong result");
}

Exit run_demo(int argc, char** argv) {
  DemoOptions options;
  CLI::App app("Sums every row of a matrix, and shows each stage on the way.", "demo");
  app.add_option("--rows", options.rows, "rows of the matrix")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--columns", options.columns, "columns of the matrix")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--dtype", options.dtype, "f32, f16 or bf16")->capture_default_str();
  app.add_option("--device", options.device, "interp or cuda:N; default: cuda:0 if there is one");
  app.add_option("--matrix", options.matrix,
                 "the .npy file to write; default: beside this program");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wish) {  // --help
    app.exit(wish, std::cout, std::cerr);
    return Exit::kDone;
  } catch (const CLI::ParseError& error) {
    return misused(error.what());
  }
  return demonstrate(options);
}

}  // namespace
}  // namespace heddle::tools

int main(int argc, char** argv) {
  try {
    return static_cast<int>(heddle::tools::run_demo(argc, argv));
  } catch (const std::exception& error) {
    return static_cast<int>(heddle::tools::failed(error.what()));
  }
}
