// embedding and its gradient as operations.
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/embedding/embedding.h"
#include "heddle/kernels/reference_internal.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::kernels {
namespace {

// A row's number, as an input has it.
StatusOr<int64_t> id_at(const runtime::HostValues& ids, int64_t i, int64_t rows) {
  const double id = ids.values[static_cast<size_t>(i)];
  if (id >= 0 && id < static_cast<double>(rows)) return static_cast<int64_t>(id);
  return InvalidArgumentError(
      absl::StrCat("id ", i, " is ", id, ", and the table has ", rows, " rows"));
}

Outputs embedding_reference(const Settings&, const Tensors& tensors) {
  const runtime::HostValues &table = tensors.at("table"), &ids = tensors.at("ids");
  const int64_t rows = table.shape.extents[0], columns = table.shape.extents[1];
  runtime::Expected y;
  for (int64_t i = 0; i < ids.shape.extents[0]; ++i) {
    const StatusOr<int64_t> id = id_at(ids, i, rows);
    if (!id.ok()) return id.status();
    const auto first = table.values.begin() + *id * columns;
    y.values.insert(y.values.end(), first, first + columns);
  }
  y.tolerance.assign(y.values.size(), 0);
  return std::map<std::string, runtime::Expected>{{"y", y}};
}

Outputs embedding_backward_reference(const Settings&, const Tensors& tensors) {
  const runtime::HostValues &before = tensors.at("dtable"), &ids = tensors.at("ids"),
                            &dy = tensors.at("dy");
  const int64_t rows = before.shape.extents[0], columns = before.shape.extents[1];
  runtime::Expected dtable{before.values, {}};
  std::vector<double> magnitude, terms;
  for (const double value : before.values) magnitude.push_back(std::abs(value));
  terms.assign(magnitude.size(), 1);
  for (int64_t i = 0; i < ids.shape.extents[0]; ++i) {
    const StatusOr<int64_t> id = id_at(ids, i, rows);
    if (!id.ok()) return id.status();
    for (int64_t c = 0; c < columns; ++c) {
      const auto at = static_cast<size_t>(*id * columns + c);
      const double term = dy.values[static_cast<size_t>(i * columns + c)];
      dtable.values[at] += term;
      magnitude[at] += std::abs(term);
      terms[at] += 1;
    }
  }
  // In any order each term is rounded as often as there are terms, at most.
  for (size_t i = 0; i < magnitude.size(); ++i) {
    dtable.tolerance.push_back(terms[i] * kRounding * magnitude[i]);
  }
  return std::map<std::string, runtime::Expected>{{"dtable", dtable}};
}

template <class T, class Id>
using Embedding = Status(const Stream&, const TensorRef<const T, 2>&, const TensorRef<const Id, 1>&,
                         const TensorRef<T, 2>&);
template <class T, class Id>
using EmbeddingBackward = Status(const Stream&, const TensorRef<const Id, 1>&,
                                 const TensorRef<const T, 2>&, const TensorRef<float, 2>&);

const Registered registered_embedding({
    .name = "embedding",
    .summary = "y(i, ·) = table(ids(i), ·)",
    .arguments = {"table: dtype[vocabulary, columns]", "ids: index[n]", "y: dtype[n, columns]"},
    .functions = {host_function<Embedding<float, int64_t>>(embedding<float, int64_t>),
                  host_function<Embedding<float, int32_t>>(embedding<float, int32_t>),
                  host_function<Embedding<half, int64_t>>(embedding<half, int64_t>),
                  host_function<Embedding<half, int32_t>>(embedding<half, int32_t>),
                  host_function<Embedding<bfloat16, int64_t>>(embedding<bfloat16, int64_t>),
                  host_function<Embedding<bfloat16, int32_t>>(embedding<bfloat16, int32_t>)},
    .settings = {{.name = "dtype", .help = "element type of table and y"},
                 {.name = "index", .help = "element type of ids, which are rows of the table"}},
    .sizes = {{"vocabulary", 32768}, {"columns", 4096}, {"n", 8192}},
    .reference = embedding_reference,
});

const Registered registered_embedding_backward({
    .name = "embedding_backward",
    .summary = "dtable(ids(i), ·) += dy(i, ·)",
    .arguments = {"ids: index[n]", "dy: dtype[n, columns]",
                  "dtable: inout f32[vocabulary, columns]"},
    .functions =
        {host_function<EmbeddingBackward<float, int64_t>>(embedding_backward<float, int64_t>),
         host_function<EmbeddingBackward<float, int32_t>>(embedding_backward<float, int32_t>),
         host_function<EmbeddingBackward<half, int64_t>>(embedding_backward<half, int64_t>),
         host_function<EmbeddingBackward<half, int32_t>>(embedding_backward<half, int32_t>),
         host_function<EmbeddingBackward<bfloat16, int64_t>>(embedding_backward<bfloat16, int64_t>),
         host_function<EmbeddingBackward<bfloat16, int32_t>>(
             embedding_backward<bfloat16, int32_t>)},
    .settings = {{.name = "dtype", .help = "element type of dy"},
                 {.name = "index", .help = "element type of ids, which are rows of the table"}},
    .sizes = {{"vocabulary", 32768}, {"columns", 4096}, {"n", 8192}},
    .reference = embedding_backward_reference,
});

}  // namespace
}  // namespace heddle::kernels
