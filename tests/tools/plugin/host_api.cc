// A plug-in that uses the host's side of Heddle too: its reference runs the kernel on a device of
// its own, by calls that the program which loads it never makes.
#include <string>

#include "absl/strings/match.h"
#include "heddle/heddle.h"
#include "heddle/ir/text/parser.h"
#include "heddle/ir/text/printer.h"
#include "heddle/runtime/cuda/module.h"
#include "heddle/runtime/operation/registry.h"

namespace {

using namespace heddle;

constexpr int kThreads = 64;

const auto doubled =
    define_kernel("doubled(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
      Int i = block_idx.x * kThreads + thread_idx.x;
      If(i < x.shape(0), [&] { y(i) = 2.0f * x(i); });
    });

Status expect(bool right, absl::string_view what) {
  return right ? OkStatus() : InternalError(what);
}

Status use_host_api(const std::vector<float>& x, std::vector<float>& y) {
  const auto count = static_cast<int64_t>(x.size());
  const Device device = Device::open_private_interp(Device::open("interp")->info());
  const Stream stream = device.create_stream().value();
  runtime::Event start = device.create_event().value(), stop = device.create_event().value();
  const runtime::PinnedBuffer pinned = device.allocate_pinned(4 * x.size()).value();
  const Buffer in = device.upload(absl::MakeConstSpan(x)).value();
  Buffer out = device.allocate(4 * x.size()).value();
  Status status = start.record(stream);
  status.Update(out.fill32(stream, 0, x.size()));
  status.Update(
      doubled.launch(stream, {.grid = (count + kThreads - 1) / kThreads, .block = kThreads},
                     as_tensor<const float>(in, {count}), as_tensor<float>(out, {count})));
  status.Update(out.copy_to_host(stream, pinned.data(), 4 * x.size()));
  status.Update(stop.record(stream));
  status.Update(stream.wait(stop));
  status.Update(device.synchronize());
  status.Update(runtime::Event::elapsed_ms(start, stop).status());
  if (!status.ok()) return status;
  const auto* const first = static_cast<const float*>(pinned.data());
  y.assign(first, first + x.size());

  CompileOptions options;
  options.block = {kThreads, 1, 1};
  options.target = "sm_90";
  options.stage = runtime::Stage::kPtx;
  const auto compiled = doubled.compile(Signature{tensor({kAny}), tensor({kAny})}, options);
  if (!compiled.ok()) return compiled.status();
  const std::string text = ir::print(compiled->ir());
  status.Update(expect(absl::StrContains(compiled->ptx(), ".entry"), "no PTX"));
  status.Update(expect(ir::print(*ir::parse(text, "doubled")) == text, "the text does not return"));
  status.Update(expect(!runtime::Module::load_ptx(device, "").ok(), "machine code on no machine"));
  return status;
}

using Outputs = StatusOr<std::map<std::string, runtime::Expected>>;

Outputs reference(const Settings&, const std::map<std::string, runtime::HostValues>& inputs) {
  const std::vector<double>& x = inputs.at("x").values;
  std::vector<float> y;
  if (Status s = use_host_api({x.begin(), x.end()}, y); !s.ok()) return s;
  return std::map<std::string, runtime::Expected>{
      {"y", {{y.begin(), y.end()}, std::vector<double>(y.size())}}};
}

const Registered registered(
    {.name = "host_api",
     .summary = "y = 2 x",
     .arguments = {"x: f32[n]", "y: f32[n]"},
     .functions = {host_function([](const Stream& stream, const TensorRef<const float, 1>& x,
                                    const TensorRef<float, 1>& y) {
       const int64_t blocks = (x.extents[0] + kThreads - 1) / kThreads;
       return doubled.launch(stream, {.grid = blocks, .block = kThreads}, x, y);
     })},
     .sizes = {{"n", 1024}},
     .reference = reference});

}  // namespace
