// A program of one's own with the heddle command for its own kernel, and nothing of the kernel
// library.
#include <heddle/heddle.h>
#include <heddle/runtime/operation/registry.h>
#include <heddle/tools/command_line.h>

namespace {

using namespace heddle;

const auto doubled =
    define_kernel("doubled(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
      Int i = thread_idx.x;
      If(i < x.shape(0), [&] { y(i) = x(i) + x(i); });
    });

const Registered registered({.name = "doubled",
                             .summary = "y = 2 x",
                             .arguments = {"x: f32[n]", "y: f32[n]"},
                             .functions = {host_function([](const Stream& stream,
                                                            const TensorRef<const float, 1>& x,
                                                            const TensorRef<float, 1>& y) {
                               return doubled.launch(stream, {.block = 64}, x, y);
                             })},
                             .sizes = {{"n", 64}}});

}  // namespace

// <page>
int main(int argc, char** argv) { return heddle::tools::run_command_line(argc, argv); }
// </page>
