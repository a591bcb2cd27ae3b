#include <algorithm>

#include "heddle/kernels/gemm/named_epilogue.h"
#include "heddle/kernels/gemm/reference_internal.h"

namespace heddle::kernels {
namespace {

// How tensor cores add: an instruction takes so many products of an element and the sum so far, aligns them
// to the largest and cuts off what is below some of its bits, and cuts the new sum to f32.
struct Adder {
  int depth;   // products of an instruction
  double cut;  // bits below this are cut off, of the largest
};
// An instruction has 32 bytes of depth. Of float8_e4m3 13 bits remain behind the point, of other types 24
// and more.
Adder adder_of(ir::Scalar scalar) {
  const int bytes = ir::bytes_of(scalar);
  return {32 / bytes, bytes == 1 ? 0x1p-13 : 0x1p-24};
}

// A sum of products, and how far the tensor cores may be from it, that adds up the instructions. Of the sum
// so far each may cut the whole of a bit. Of each product it cuts a part of one towards zero: where these parts are
// alike, as much as there are more products of one sign; where they are not, as much as independent
// numbers differ from their mean, of which six standard deviations are allowed. (The worst case, all that
// products of one sign could lose, would for float8_e4m3 allow errors as large as the sums.)
Close product(const double* a, const double* b, int64_t depth, const Adder& adder) {
  constexpr double kDeviations = 6, kVariance = 1.0 / 12;  // of numbers between 0 and 1
  double sum = 0, magnitude = 0, of_sums = 0, alike = 0, squares = 0;
  for (int64_t first = 0; first < depth; first += adder.depth) {
    double largest = std::abs(sum);
    int positive = 0, negative = 0;
    for (int64_t k = first; k < std::min(first + adder.depth, depth); ++k) {
      const double term = a[k] * b[k];
      sum += term;
      magnitude += std::abs(term);
      largest = std::max(largest, std::abs(term));
      positive += term > 0;
      negative += term < 0;
    }
    largest = std::max(largest, std::abs(sum));
    const double bit = largest * adder.cut;
    of_sums += bit + largest * 2 * kRounding;
    alike += bit * (positive - negative);
    squares += bit * bit * (positive + negative);
  }
  const double of_products = std::abs(alike) + kDeviations * std::sqrt(squares * kVariance);
  return {sum, of_sums + std::min(of_products, magnitude)};
}

// A matrix with k along its rows: rows of `depth` elements.
std::vector<double> along_k(const runtime::HostValues& x, bool transposed) {
  if (!transposed) return x.values;
  const auto depth = static_cast<size_t>(x.shape.extents[0]);
  const auto rows = static_cast<size_t>(x.shape.extents[1]);
  std::vector<double> turned(x.values.size());
  for (size_t k = 0; k < depth; ++k) {
    for (size_t row = 0; row < rows; ++row) turned[row * depth + k] = x.values[k * rows + row];
  }
  return turned;
}

template <class Row>
const Row& row_of(const std::vector<Row>& rows, const std::string& name) {
  return *std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
}

}  // namespace

const std::vector<GemmFiles>& gemm_files() {
  static const auto& rows = *new std::vector<GemmFiles>{
      {"tn", false, false}, {"tt", false, true}, {"nn", true, false}, {"nt", true, true}};
  return rows;
}

Outputs gemm_reference(const Settings& settings, const Tensors& tensors) {
  const runtime::HostValues& in = tensors.at("a");
  const GemmFiles& files = row_of(gemm_files(), settings.find("layout")->second);
  const NamedEpilogue& epilogue = row_of(named_epilogues(), settings.find("epilogue")->second);
  const double alpha = real(settings, "alpha"), beta = real(settings, "beta");
  const std::vector<double> a = along_k(in, files.a_along_m);
  const std::vector<double> b = along_k(tensors.at("b"), files.b_along_n);
  const int64_t depth = in.shape.extents[files.a_along_m ? 0 : 1];
  const int64_t columns = tensors.at("d").shape.extents[1];
  const Adder adder = adder_of(in.shape.dtype);
  const ir::Scalar results = tensors.at("d").shape.dtype;
  const Rounding last = rounding_of(results);
  const double rounding = ir::bytes_of(results) <= 2 ? epilogue.narrow_rounding : epilogue.rounding;
  const auto element = [&](const char* name, int64_t i) {
    return tensors.at(name).values[static_cast<size_t>(i)];
  };
  return only_output(tensors, "d", [&](int64_t i) {
    const int64_t column = i % columns;
    const Close sum =
        product(a.data() + i / columns * depth, b.data() + column * depth, depth, adder);
    const double scaled = alpha * sum.value;
    const double added = beta == 0 ? 0 : beta * element("c", i);
    const Addends with{epilogue.bias ? element("bias", column) : 0,
                       epilogue.residual ? element("residual", i) : 0};
    const double value = epilogue.exact(scaled + added, with);
    // Each of what is added is rounded once or twice, and what comes of it at each further step.
    const double terms = std::abs(scaled) + std::abs(added) + std::abs(with.bias);
    const double error = std::abs(alpha) * sum.tolerance + 4 * kRounding * terms;
    return last.of(value, epilogue.slope * error + rounding * (1 + terms) +
                              2 * kRounding * std::abs(with.residual));
  });
}

}  // namespace heddle::kernels
