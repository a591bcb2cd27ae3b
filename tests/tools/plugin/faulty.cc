// Kernels that are wrong in every way that the heddle command must survive. Each takes x and writes
// y, an f32 vector of the same length.
#include <stdexcept>

#include "heddle/heddle.h"
#include "heddle/runtime/operation/registry.h"

namespace {

using namespace heddle;
using runtime::Expected;
using runtime::HostValues;

constexpr int kThreads = 32;

using VectorKernel = Kernel<Tensor<const float, 1>, Tensor<float, 1>>;

const VectorKernel copy =
    define_kernel("copy(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
      Int i = block_idx.x * kThreads + thread_idx.x;
      If(i < x.shape(0), [&] { y(i) = x(i); });
    });
const VectorKernel out_of_bounds =
    define_kernel("out_of_bounds(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
      Int i = block_idx.x * kThreads + thread_idx.x;
      y(i) = x(i + 1);
    });
const VectorKernel mistaken =
    define_kernel("mistaken(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
      If(thread_idx.x < 7, [&] {
        sync_threads();
        y(thread_idx.x) = x(thread_idx.x);
      });
    });

HostFunction launching(const VectorKernel& kernel) {
  return host_function([&kernel](const Stream& stream, const TensorRef<const float, 1>& x,
                                 const TensorRef<float, 1>& y) {
    const int64_t blocks = (x.extents[0] + kThreads - 1) / kThreads;
    return kernel.launch(stream, {.grid = blocks, .block = kThreads}, x, y);
  });
}

OperationSpec entry(const char* name, const VectorKernel& kernel) {
  return {.name = name,
          .summary = "does wrong",
          .arguments = {"x: f32[n]", "y: f32[n]"},
          .functions = {launching(kernel)},
          .sizes = {{"n", 40}}};
}

using Outputs = StatusOr<std::map<std::string, Expected>>;
using Inputs = std::map<std::string, HostValues>;

OperationSpec with_reference(OperationSpec spec,
                             Outputs (*reference)(const Settings&, const Inputs&)) {
  spec.reference = reference;
  return spec;
}

// Expects every element but the first two to be one more than it is.
Outputs one_more(const Settings&, const Inputs& inputs) {
  Expected y;
  for (const double x : inputs.at("x").values) {
    y.values.push_back(y.values.size() < 2 ? x : x + 1);
    y.tolerance.push_back(0.25);
  }
  return std::map<std::string, Expected>{{"y", y}};
}
Outputs too_short(const Settings&, const Inputs&) {
  return std::map<std::string, Expected>{{"y", {{1.0}, {0.0}}}};
}
Outputs of_another(const Settings&, const Inputs&) {
  return std::map<std::string, Expected>{{"z", {{1.0}, {0.0}}}};
}
Outputs thrown(const Settings&, const Inputs&) { throw std::runtime_error("the reference threw"); }

OperationSpec without_function(OperationSpec spec) {
  spec.functions.clear();
  return spec;
}
OperationSpec with_arguments(OperationSpec spec, std::vector<std::string> arguments) {
  spec.arguments = std::move(arguments);
  return spec;
}
// Launches nothing, and one that looks at what it has computed.
Status do_nothing(const Stream&, const TensorRef<const float, 1>&, const TensorRef<float, 1>&) {
  return OkStatus();
}
Status look(const Stream& stream, const TensorRef<const float, 1>& x,
            const TensorRef<float, 1>& y) {
  const int64_t blocks = (x.extents[0] + kThreads - 1) / kThreads;
  Status launched = copy.launch(stream, {.grid = blocks, .block = kThreads}, x, y);
  if (!launched.ok()) return launched;
  float first = 0;
  const auto address = reinterpret_cast<runtime::DeviceAddress>(y.data);
  if (Status s = stream.copy_to_host(&first, address, sizeof(first)); !s.ok()) return s;
  return first == 0 ? OkStatus() : InternalError("y starts with another number");
}
// Launches several kernels of one name, each of which is gone before the next is made.
Status launch_same_name(const Stream& stream, const TensorRef<const float, 1>& x,
                        const TensorRef<float, 1>& y) {
  Status status;
  for (float factor : {1.0f, 2.0f, 3.0f, 4.0f}) {
    const auto again =
        local_kernel("again(x, y)", [&](Tensor<const float, 1> from, Tensor<float, 1> to) {
          If(thread_idx.x < from.shape(0), [&] { to(thread_idx.x) = factor * from(thread_idx.x); });
        });
    status.Update(again.launch(stream, {.grid = 1, .block = kThreads}, x, y));
  }
  return status;
}
Status launch_with_much_shared(const Stream& stream, const TensorRef<const float, 1>& x,
                               const TensorRef<float, 1>& y) {
  return copy.launch(stream, {.grid = 2, .block = kThreads, .shared_bytes = 120000}, x, y);
}
// Fails once, with the code of a copy to the host on a device that runs nothing.
Status give_up(const Stream&, const TensorRef<const float, 1>&, const TensorRef<float, 1>&) {
  static int calls = 0;
  return calls++ == 0 ? FailedPreconditionError("the library is not licensed here") : OkStatus();
}
OperationSpec calling(OperationSpec spec, HostFunction function) {
  spec.functions = {std::move(function)};
  return spec;
}

const Registered entries[] = {
    Registered(with_reference(entry("wrong_result", copy), one_more)),
    Registered(with_reference(entry("short_reference", copy), too_short)),
    Registered(with_reference(entry("other_reference", copy), of_another)),
    Registered(with_reference(entry("throwing_reference", copy), thrown)),
    Registered(entry("out_of_bounds", out_of_bounds)),
    Registered(entry("mistaken", mistaken)),
    Registered(without_function(entry("no_function", copy))),
    Registered(with_arguments(entry("short_declaration", copy), {"x: f32[n]"})),
    Registered(calling(entry("does_nothing", copy), host_function(do_nothing))),
    Registered(calling(entry("looks", copy), host_function(look))),
    Registered(calling(entry("same_name", copy), host_function(launch_same_name))),
    Registered(calling(entry("much_shared", copy), host_function(launch_with_much_shared))),
    Registered(calling(entry("gives_up", copy), host_function(give_up))),
};

}  // namespace
