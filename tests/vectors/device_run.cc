#include "vectors/device_run.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "heddle/ir/kernel_source.h"
#include "heddle/runtime/launch.h"

namespace heddle::vectors {
namespace {

using ir::AttrKey;
using ir::Opcode;
using ir::Scalar;
using ir::Space;
using ir::Type;
using ir::ValueId;
using runtime::Argument;

constexpr int kThreads = 256;
// Cases that share a kernel: their parameters fit, and assemblers start less often.
constexpr size_t kBatch = 32;

// Thread i applies each case to element i of its operands, which are as many pointers, and stores
// the result to one more.
class CasesKernel : public ir::KernelSource {
 public:
  CasesKernel(absl::Span<const Case> cases, absl::Span<const std::vector<Column>> inputs)
      : cases_(cases), inputs_(inputs) {
    for (const Case& c : cases) {
      for (const Scalar scalar : c.operands) add_param(scalar, true);
      add_param(c.result, false);
    }
  }

  const std::string& name() const override { return name_; }
  ir::SourceLine place() const override { return {}; }
  absl::Span<const ir::ParamInfo> params() const override { return params_; }

  ir::TraceResult trace(const ir::Specialization& specialization) const override {
    ir::TraceResult result{ir::Kernel(name_), {}};
    ir::Kernel& kernel = result.kernel;
    kernel.block = specialization.block;
    kernel.target = specialization.target;
    std::vector<ValueId> views;
    for (const ir::ParamInfo& info : params_) {
      views.push_back(kernel.add_param(info.name, info.type, {ir::kDynamic}, {1}));
      kernel.params().back().unbounded = true;
    }
    for (const ir::Guard& guard : specialization.facts) kernel.set_fact(guard.fact, guard.value);
    build(kernel, views);
    return result;
  }

 private:
  void add_param(Scalar scalar, bool read_only) {
    params_.push_back({.name = absl::StrCat("p", params_.size()),
                       .type = Type::view(scalar, Space::kGlobal, 1, read_only),
                       .unbounded = true});
  }

  void build(ir::Kernel& kernel, const std::vector<ValueId>& views) const {
    ir::Builder b(kernel);
    const auto x = [&](Opcode opcode) {
      return b.create(opcode, {}, ir::kI32Type, {{AttrKey::kAxis, 0}});
    };
    const ValueId first = b.create(Opcode::kMul, {x(Opcode::kBlockIdx), x(Opcode::kBlockDim)});
    const ValueId i = b.create(Opcode::kAdd, {first, x(Opcode::kThreadIdx)});
    size_t next = 0;
    for (size_t n = 0; n < cases_.size(); ++n) {
      const auto count = static_cast<int64_t>(inputs_[n][0].size());
      const ValueId stop = b.constant_int(ir::kI32Type, count);
      b.set_loc(kernel.intern_loc(cases_[n].name, 1));
      b.begin_if(b.create(Opcode::kLt, {i, stop}));
      std::vector<ValueId> operands;
      for (const Scalar scalar : cases_[n].operands) {
        operands.push_back(b.create(Opcode::kLoad, {views[next++], i}, Type::of(scalar)));
      }
      b.create(Opcode::kStore, {views[next++], apply(b, cases_[n], operands), i});
      b.yield({});
      b.next_region();
      b.yield({});
      b.end_region();
    }
  }

  const std::string name_ = "cases";
  absl::Span<const Case> cases_;
  absl::Span<const std::vector<Column>> inputs_;
  std::vector<ir::ParamInfo> params_;
};

// An element takes as many bytes as its type; hosts are little-endian.
std::vector<std::byte> to_bytes(Scalar scalar, const Column& column) {
  const auto size = static_cast<size_t>(bytes_of(scalar));
  std::vector<std::byte> bytes(column.size() * size);
  for (size_t i = 0; i < column.size(); ++i) {
    std::memcpy(bytes.data() + i * size, &column[i], size);
  }
  return bytes;
}
Column from_bytes(Scalar scalar, const std::vector<std::byte>& bytes) {
  const auto size = static_cast<size_t>(bytes_of(scalar));
  Column column(bytes.size() / size);
  for (size_t i = 0; i < column.size(); ++i) {
    std::memcpy(&column[i], bytes.data() + i * size, size);
  }
  return column;
}

Status run_batch(const Device& device, absl::Span<const Case> cases,
                 absl::Span<const std::vector<Column>> inputs, std::vector<Column>& results) {
  const CasesKernel kernel(cases, inputs);
  std::vector<Buffer> buffers;
  std::vector<size_t> outputs;
  size_t most = 0;
  for (size_t n = 0; n < cases.size(); ++n) {
    for (size_t k = 0; k < cases[n].operands.size(); ++k) {
      const std::vector<std::byte> bytes = to_bytes(cases[n].operands[k], inputs[n][k]);
      StatusOr<Buffer> buffer = device.upload<std::byte>(bytes);
      if (!buffer.ok()) return buffer.status();
      buffers.push_back(*std::move(buffer));
    }
    const size_t count = inputs[n][0].size();
    most = std::max(most, count);
    StatusOr<Buffer> buffer =
        device.allocate(count * static_cast<size_t>(bytes_of(cases[n].result)));
    if (!buffer.ok()) return buffer.status();
    outputs.push_back(buffers.size());
    buffers.push_back(*std::move(buffer));
  }
  std::vector<Argument> arguments;
  for (const Buffer& buffer : buffers) {
    arguments.push_back(runtime::pointer_argument(buffer.address()));
  }
  const Stream stream = device.default_stream();
  const LaunchShape config{.grid = static_cast<int64_t>((most + kThreads - 1) / kThreads),
                           .block = kThreads};
  if (Status s = runtime::launch(stream, kernel, config, arguments); !s.ok()) return s;
  for (size_t n = 0; n < cases.size(); ++n) {
    const StatusOr<std::vector<std::byte>> bytes = buffers[outputs[n]].download<std::byte>(stream);
    if (!bytes.ok()) return bytes.status();
    results.push_back(from_bytes(cases[n].result, *bytes));
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<Column>> run_on(const Device& device, absl::Span<const Case> cases,
                                     absl::Span<const std::vector<Column>> inputs) {
  std::vector<Column> results;
  for (size_t at = 0; at < cases.size(); at += kBatch) {
    const Status s =
        run_batch(device, cases.subspan(at, kBatch), inputs.subspan(at, kBatch), results);
    if (!s.ok()) return s;
  }
  return results;
}

}  // namespace heddle::vectors
