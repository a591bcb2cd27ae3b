// A program of one's own with the heddle command for its own kernel, and nothing of the kernel
// library.
#include <heddle/heddle.h>
#include <heddle/runtime/registry.h>
#include <heddle/tools/command_line.h>

namespace {

using namespace heddle;

const auto doubled =
    define_kernel("doubled(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
      Int i = thread_idx.x;
      If(i < x.shape(0), [&] { y(i) = x(i) + x(i); });
    });

const Registered registered(
    {.name = "doubled",
     .summary = "y = 2 x",
     .settings = {},
     .variant = [](const Settings&) -> absl::StatusOr<Variant> {
       CompileOptions options;
       options.block = {64, 1, 1};
       return Variant{&doubled.source(), {tensor({kAny}), tensor({kAny})}, options};
     },
     .plan = nullptr,
     .reference = nullptr});

}  // namespace

int main(int argc, char** argv) { return heddle::tools::run_command_line(argc, argv); }
