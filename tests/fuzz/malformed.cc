#include "fuzz/malformed.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "fuzz/generator.h"
#include "heddle/codegen/ptx.h"
#include "heddle/dsl/layout/calculator.h"
#include "heddle/dsl/layout/draw.h"
#include "heddle/ir/interp/interpreter.h"
#include "heddle/ir/launch/abi.h"
#include "heddle/ir/passes/pipeline.h"
#include "heddle/ir/text/parser.h"
#include "heddle/ir/text/printer.h"
#include "heddle/ir/verify/verifier.h"
#include "heddle/tools/npy.h"
#include "ir/text/text_samples.h"

namespace heddle::fuzz {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// --- Kernels as text ---

std::vector<std::string> ir_samples(const std::string& folder) {
  std::vector<std::string> samples(std::begin(ir::kSamples), std::end(ir::kSamples));
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/filetests")) {
    if (entry.path().extension() == ".ir") samples.push_back(text_of(entry.path()));
  }
  std::sort(samples.begin(), samples.end());
  for (uint64_t seed = 0; seed < 20; ++seed) samples.push_back(ir::print(random_program(seed)));
  return samples;
}

constexpr absl::string_view kFile = "mutant.ir";

// "mutant.ir:3" and, with a column, ":10", before the message.
bool starts_with_place(absl::string_view message, bool column) {
  const auto number = [&] {
    const size_t before = message.size();
    while (!message.empty() && absl::ascii_isdigit(static_cast<unsigned char>(message[0]))) {
      message.remove_prefix(1);
    }
    return message.size() < before;
  };
  if (!absl::ConsumePrefix(&message, kFile) || !absl::ConsumePrefix(&message, ":") || !number()) {
    return false;
  }
  if (column && (!absl::ConsumePrefix(&message, ":") || !number())) return false;
  return absl::StartsWith(message, ": ");
}

// Runs it on arguments that mean nothing.
void interpret(const ir::Kernel& kernel) {
  constexpr uint64_t kBytes = 4096;
  const auto program = ir::interp::compile(kernel, {.checks = true});
  if (!program.ok()) return;
  ir::interp::Memory memory;
  const std::vector<uint8_t> zeros(kBytes);
  const ir::ParamLayout layout = param_layout(kernel);
  std::vector<std::byte> params(static_cast<size_t>(layout.bytes));
  for (const ir::ParamSlot& slot : layout.slots) {
    uint64_t bits = 3;
    if (slot.kind == ir::SlotKind::kAddress) {
      bits = memory.allocate(kBytes).value();
      if (!memory.copy_from_host(bits, zeros.data(), kBytes).ok()) return;
    }
    std::memcpy(&params[static_cast<size_t>(slot.offset)], &bits, static_cast<size_t>(slot.bytes));
  }
  const ir::Dim3 block = kernel.has_dynamic_block() ? ir::Dim3{32, 1, 1} : kernel.block;
  // What it says is of no interest here, and says where when the kernel is wrong.
  (void)ir::interp::run(
      *program,
      {.grid = kernel.cluster, .block = block, .params = params, .dynamic_shared_bytes = 64},
      memory, {.max_instructions = 20'000});
}

std::string ir_complaint(const std::string& text, bool& accepted) {
  StatusOr<ir::Kernel> kernel = ir::parse(text, kFile, {.text_as_source = true});
  if (!kernel.ok()) {
    const absl::string_view message = kernel.status().message();
    return starts_with_place(message, true) ? "" : absl::StrCat("no place in: ", message);
  }
  const std::string printed = print(*kernel, {.locs = true});
  const StatusOr<ir::Kernel> again = ir::parse(printed, "printed.ir");
  if (!again.ok()) return absl::StrCat("cannot read what is printed: ", again.status().message());
  if (print(*again, {.locs = true}) != printed) return "printed, read and printed, it differs";
  const ir::Diagnostics wrong = verify(*kernel);
  for (const ir::Diagnostic& diagnostic : wrong) {
    const std::string message = to_string(diagnostic);
    if (!starts_with_place(message, false)) return absl::StrCat("no place in: ", message);
  }
  if (!wrong.empty()) return "";
  accepted = true;
  if (kernel->block.count() <= 1024) interpret(*kernel);
  const Status passed = run_pipeline(*kernel, ir::kDefaultPipeline, {.verify_each = true});
  if (!passed.ok()) return absl::StrCat("after a pass: ", passed.message());
  if (kernel->block.count() <= 1024) interpret(*kernel);
  if (!verify(*kernel, ir::Stage::kEmittable).empty()) return "";
  const StatusOr<codegen::PtxModule> ptx = codegen::emit_ptx(*kernel);
  if (ptx.ok() || absl::StrContains(ptx.status().message(), kFile)) return "";
  return absl::StrCat("no place in: ", ptx.status().message());
}

// --- .npy ---

std::string npy_of(absl::string_view descr, absl::string_view order, absl::string_view shape,
                   char version, size_t bytes) {
  std::string header = absl::StrCat("{'descr': '", descr, "', 'fortran_order': ", order,
                                    ", 'shape': ", shape, ", }");
  header.resize((12 + header.size() + 64) / 64 * 64 - (version == 1 ? 10 : 12), ' ');
  header.back() = '\n';
  std::string text("\x93NUMPY", 6);
  text += {version, '\0', static_cast<char>(header.size()), static_cast<char>(header.size() >> 8)};
  if (version > 1) text += std::string(2, '\0');
  return text + header + std::string(bytes, '\x7f');
}

std::vector<std::string> npy_samples(const std::string&) {
  return {npy_of("<f4", "False", "(2, 3)", 1, 24), npy_of("<f4", "True", "(2, 3)", 1, 24),
          npy_of("|b1", "False", "(5,)", 1, 5),    npy_of("|u1", "False", "(5,)", 2, 5),
          npy_of("<i8", "False", "()", 3, 8),      npy_of("<u2", "True", "(2, 2, 2)", 2, 16),
          npy_of("<f8", "False", "(0, 7)", 1, 0),  npy_of("<f2", "True", "(1, 1, 1, 3)", 1, 6)};
}

std::string npy_complaint(const std::string& text, bool& accepted) {
  const int file = memfd_create("mutant.npy", MFD_CLOEXEC);
  const absl::Cleanup close_file = [file] { close(file); };
  if (file < 0 || write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return "the test cannot write a file";
  }
  const std::string path = absl::StrCat("/proc/self/fd/", file);
  const StatusOr<tools::HostArray> array = tools::read_npy(path);
  accepted = array.ok();
  if (array.ok()) {
    // Every byte is there.
    size_t sum = 0;
    for (const std::byte byte : array->bytes()) sum += static_cast<size_t>(byte);
    return sum <= 255 * array->byte_count ? "" : "bytes of more than 255";
  }
  const absl::string_view message = array.status().message();
  const bool located = absl::StartsWith(message, path + ": ") && message.size() > path.size() + 8;
  return located ? "" : absl::StrCat("no place in: ", message);
}

// --- Layouts ---

std::vector<std::string> layout_samples(const std::string&) {
  std::vector<std::string> samples = {"zipped_divide((9,(4,8)):(59,(13,1)), <3:3,(2,4):(1,8)>)",
                                      "((4,8):(8,1))((2,3))",
                                      "S<3,4,3> o 0 o (8,8):(8,1)",
                                      "composition((6,2):(8,2), (4,3):(3,1))",
                                      "complement((2,2):(1,6), 24)",
                                      "logical_product((2,2):(4,1), 6:1)",
                                      "make_layout((?{div=8},4), (4,1))",
                                      "coalesce((2,(1,6)):(1,(6,2)))",
                                      "(4,(2,2)):(1@0,(1@1,2@1))",
                                      "tile_to_shape((8,8):(8,1), (16,32), (1,0))",
                                      "right_inverse((4,5):(5,1))",
                                      "idx2crd(13, (4,(2,3)))",
                                      "max_common_layout((4,8):(1,4), (4,8):(8,1))",
                                      "blocked_product((2,5):(5,1), (3,4):(1,3))",
                                      "raked_product((2,5):(5,1), (3,4):(1,3))",
                                      "flat_divide((9,(4,8)):(59,(13,1)), (3,_))",
                                      "recast(32, 16, S<2,3,3> o 0 o (8,16):(16,1))",
                                      "slice((_,3), (4,8):(8,1))",
                                      "((32,2),(4,4)):((_4,1),(0,?))"};
  for (const std::string& function : calculator_functions()) {
    samples.push_back(function.substr(0, function.find('(')) + "((4,(2,3)):(6,(3,1)), (2,3))");
  }
  return samples;
}

std::string layout_complaint(const std::string& text, bool& accepted) {
  constexpr absl::string_view kError = "error: ";
  const std::string value = evaluate(text);
  accepted = !absl::StartsWith(value, kError);
  if (!accepted) {
    return absl::StrContains(value, "column ") ? "" : absl::StrCat("no place in: ", value);
  }
  // What is printed means the same.
  const Layout layout = parse_layout(text);
  if (layout.ok()) {
    layout_table(layout);
    layout_svg(layout, {});
  }
  return "";
}

}  // namespace

absl::Span<const Format> formats() {
  static constexpr Format kFormats[] = {
      {"ir", ir_samples, ir_complaint},
      {"npy", npy_samples, npy_complaint},
      {"layout", layout_samples, layout_complaint},
  };
  return kFormats;
}

}  // namespace heddle::fuzz
