// A plug-in with operations of its own, and passes that know them.
#include <heddle/dsl/extend/custom_function.h>
#include <heddle/dsl/extend/replace_op.h>
#include <heddle/heddle.h>
#include <heddle/ir/analysis/aliasing.h>
#include <heddle/runtime/operation/registry.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <vector>

using namespace heddle;

// <page>
// An op that Heddle lacks: its row, its PTX, and what it computes.
const CustomFunction<uint32_t(uint32_t, uint32_t, uint32_t)> add_distance(
    {.row = ir::op_row("acme.sad", "a:u32 b:u32 c:u32 -> u32", ir::kPure),
     .summary = "c and the distance of a and b, added up",
     .ptx = {{"sad.u32 %0, %1, %2, %3;"}}},
    [](uint32_t a, uint32_t b, uint32_t c) { return c + (a < b ? b - a : a - b); });

// How far the rows of two matrices are apart, by the sum of their elements' distances.
const auto distances = define_kernel(
    "distances(a, b, y)",
    [](Tensor<const uint32_t, 2> a, Tensor<const uint32_t, 2> b, Tensor<uint32_t, 1> y) {
      const Int row = block_idx.x * block_dim.x + thread_idx.x;
      If(row < y.shape(0), [&] {
        y(row) = For(range(a.shape(1)), UInt(0), [&](const Int& i, const UInt& sum) {
          return add_distance(a(row, i), b(row, i), sum);
        });
      });
    });
// </page>

// <page>
// A mark: the block's threads, or those of a cluster's blocks, each have a part of a sum.
const CustomFunction<float(float)> whole_sum(
    {.row = ir::op_row("acme.whole_sum", "a:T -> T", ir::DataClass::kFloat, ir::Scope::kBlock),
     .summary = "the sum of all threads' parts"});

// Each block, or cluster, has a row.
const auto norms = define_kernel("norms(x, y)", [](Tensor<const float, 2> x, Tensor<float, 1> y) {
  const Int row = block_idx.x / cluster_size();
  const Int first = (block_idx.x % cluster_size()) * block_dim.x + thread_idx.x;
  const Float part =
      For(range(first, x.shape(1), block_dim.x * cluster_size()), Float(0),
          [&](const Int& i, const Float& sum) { return sum + x(row, i) * x(row, i); });
  y(row) = sqrt(whole_sum(part));
});

// The pass finds marked parts, and has them added up where they stand. Its function is written in the language.
StatusOr<bool> add_up(ir::PassContext& context) {
  return replace_ops(context, whole_sum.op().opcode(), [](const Float& part) -> Float {
    const Float in_block = block_reduce(part, plus{});
    if (cluster_size() == 1) return in_block;
    const Shared<float> slot(1);
    If(thread_idx.x == 0, [&] { slot(0) = in_block; });
    sync_cluster();
    Var<float> sum(0.0f);
    for (int rank = 0; rank < cluster_size(); ++rank) sum += map_shared(slot, rank)(0);
    sync_cluster();
    return sum;
  });
}

const ir::RegisteredPass all_reduce({.name = "all-reduce",
                                     .summary = "Add up partial sums over the block or cluster",
                                     .run = add_up,
                                     .breaks = {ir::kNoVariables},
                                     .before = "promote-vars"});
// </page>

// <page>
// The product goes to memory, and its epilogue takes it from there.
const auto activated = define_kernel("activated(x, bias, y, scratch)",
                                     [](Tensor<const float, 1> x, Tensor<const float, 1> bias,
                                        Tensor<float, 1> y, Tensor<float, 1> scratch) {
                                       const Int i = block_idx.x * block_dim.x + thread_idx.x;
                                       If(i < x.shape(0), [&] {
                                         scratch(i) = x(i) * 0.5f;
                                         y(i) = max(scratch(i) + bias(i), 0.0f);
                                       });
                                     });

// Fuses epilogues into what produces their inputs: what a thread has stored, its later loads of the same element take
// from registers. A tensor called scratch is nobody's when the kernel ends: stores that nobody loads are removed.
class Fusion {
 public:
  explicit Fusion(ir::PassContext& context)
      : kernel_(context), aliasing_(context.analysis<ir::Aliasing>()) {}

  bool run() {
    visit(kernel_.body());
    kernel_.walk([&](ir::OpId id) {
      if (kernel_.op(id).opcode == ir::Opcode::kLoad) loaded_.insert(kernel_.op(id).view());
    });
    for (const ir::OpId store : stores_) {
      const ir::ValueId view = kernel_.op(store).view();
      const std::optional<int> param = kernel_.param_index(view);
      if (!param || loaded_.contains(view)) continue;
      if (kernel_.text(kernel_.value(view).name) != "scratch") continue;
      kernel_.erase(store);
      changed_ = true;
    }
    return changed_;
  }

 private:
  void visit(ir::RegionId region) {
    std::map<ir::ValueId, ir::OpId>
        last;  // store to each view, as long as nothing else may have changed it
    for (const ir::OpId id : kernel_.ops(region)) {
      const ir::Op& op = kernel_.op(id);
      for (const ir::RegionId inner : op.regions) visit(inner);
      if (op.opcode == ir::Opcode::kLoad && last.contains(op.view())) {
        const ir::Op& store = kernel_.op(last.at(op.view()));
        if (store.offset() == op.offset() &&
            kernel_.type(store.value()) == kernel_.type(op.result())) {
          kernel_.replace_all_uses(op.result(), store.value());
          kernel_.erase(id);
          changed_ = true;
          continue;
        }
      }
      std::erase_if(last, [&](const auto& known) {
        const int object = aliasing_.object_of(known.first);
        return !op.regions.empty() || aliasing_.clobber(op, object) != ir::Clobber::kNo;
      });
      if (op.opcode == ir::Opcode::kStore) {
        last[op.view()] = id;
        stores_.push_back(id);
      }
    }
  }

  ir::Kernel& kernel_;
  const ir::Aliasing& aliasing_;
  std::vector<ir::OpId> stores_;
  std::set<ir::ValueId> loaded_;
  bool changed_ = false;
};

const ir::RegisteredPass fuse_epilogue(
    {.name = "fuse-epilogue",
     .summary = "Hand what is stored on to loads of the same element",
     .run = [](ir::PassContext& context) -> StatusOr<bool> { return Fusion(context).run(); },
     .after = "cse"});
// </page>

// --- What `heddle run --check` needs of them ---

using Inputs = std::map<std::string, runtime::HostValues>;
using Outputs = std::map<std::string, runtime::Expected>;

// An output of n elements by a function of their numbers.
template <class Value>
Outputs expected(size_t n, double tolerance, const Value& value) {
  runtime::Expected y;
  for (size_t i = 0; i < n; ++i) {
    y.values.push_back(value(i));
    y.tolerance.push_back(tolerance);
  }
  return {{"y", y}};
}

const Registered distances_registered(
    {.name = "distances",
     .summary = "y = the sums of the distances of two matrices' rows",
     .arguments = {"a: u32[rows, columns]", "b: u32[rows, columns]", "y: u32[rows]"},
     .functions = {host_function([](const Stream& stream, const TensorRef<const uint32_t, 2>& a,
                                    const TensorRef<const uint32_t, 2>& b,
                                    const TensorRef<uint32_t, 1>& y) {
       return distances.launch(stream, {.grid = (y.extents[0] + 127) / 128, .block = 128}, a, b, y);
     })},
     .sizes = {{"rows", 200}, {"columns", 50}},
     .reference = [](const runtime::Settings&, const Inputs& in) -> StatusOr<Outputs> {
       const auto& a = in.at("a").values;
       const auto& b = in.at("b").values;
       const auto columns = static_cast<size_t>(in.at("a").shape.extents[1]);
       return expected(a.size() / columns, 0, [&](size_t row) {
         uint32_t sum = 0;
         for (size_t i = row * columns; i < (row + 1) * columns; ++i) {
           sum += static_cast<uint32_t>(std::abs(a[i] - b[i]));
         }
         return static_cast<double>(sum);
       });
     }});

const Registered norms_registered(
    {.name = "norms",
     .summary = "y = the norms of x's rows",
     .arguments = {"cluster: i32", "x: f32[rows, columns]", "y: f32[rows]"},
     .functions = {host_function([](const Stream& stream, int cluster,
                                    const TensorRef<const float, 2>& x,
                                    const TensorRef<float, 1>& y) {
       return norms.launch(
           stream, {.grid = x.extents[0] * cluster, .block = 128, .cluster = cluster}, x, y);
     })},
     .settings = {{.name = "cluster", .help = "blocks for each row", .default_value = "1"}},
     .sizes = {{"rows", 3}, {"columns", 1000}},
     .reference = [](const runtime::Settings&, const Inputs& in) -> StatusOr<Outputs> {
       const auto& x = in.at("x").values;
       const auto columns = static_cast<size_t>(in.at("x").shape.extents[1]);
       return expected(x.size() / columns, 1e-3, [&](size_t row) {
         double sum = 0;
         for (size_t i = row * columns; i < (row + 1) * columns; ++i) sum += x[i] * x[i];
         return std::sqrt(sum);
       });
     }});

const Registered activated_registered(
    {.name = "activated",
     .summary = "y = max(x / 2 + bias, 0)",
     .arguments = {"x: f32[n]", "bias: f32[n]", "y: f32[n]"},
     .functions = {host_function([](const Stream& stream, const TensorRef<const float, 1>& x,
                                    const TensorRef<const float, 1>& bias,
                                    const TensorRef<float, 1>& y) -> Status {
       const int64_t n = x.extents[0];
       const StatusOr<Buffer> scratch = stream.device().allocate(n * sizeof(float));
       if (!scratch.ok()) return scratch.status();
       const Status done = activated.launch(stream, {.grid = (n + 127) / 128, .block = 128}, x,
                                            bias, y, as_tensor<float>(*scratch, {n}));
       return done.ok() ? stream.synchronize() : done;
     })},
     .sizes = {{"n", 1000}},
     .reference = [](const runtime::Settings&, const Inputs& in) -> StatusOr<Outputs> {
       const auto& x = in.at("x").values;
       const auto& bias = in.at("bias").values;
       return expected(x.size(), 1e-6, [&](size_t i) { return std::max(x[i] / 2 + bias[i], 0.0); });
     }});
