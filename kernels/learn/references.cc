// Plain loops: exact where integers are computed or where the kernel's roundings can be repeated,
// within the errors of f32 and of its functions otherwise.
#include <algorithm>
#include <array>
#include <vector>

#include "heddle/kernels/learn/04_nbody.h"
#include "heddle/kernels/learn/11_stencil.h"
#include "heddle/kernels/learn/references_internal.h"

namespace heddle::learn::reference {
namespace {

using kernels::Close, kernels::elements, kernels::kRounding, kernels::only_output, kernels::real;
using kernels::Sum, kernels::whole;
using runtime::Expected;

// How often each value of so many bits occurs in "words".
Outputs count_values(const Tensors& tensors, int bits) {
  std::vector<double> counts(size_t{1} << bits);
  for (const double value : tensors.at("words").values) {
    const auto word = static_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += bits) ++counts[word >> shift & (counts.size() - 1)];
  }
  return only_output(tensors, "bins", [&](int64_t i) { return Close{counts[i]}; });
}

using Words = std::array<uint32_t, 4>;

// Philox4x32-10 (program 10).
Words philox(uint32_t counter, uint32_t k0) {
  Words c = {counter, 0, 0, 0};
  uint32_t k1 = 0;
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(a)};
  }
  return c;
}

// The same roundings as the kernel's.
bool is_hit(uint32_t a, uint32_t b) {
  const float x = std::fma(static_cast<float>(a), 0x1p-32f, 0x1p-33f);
  const float y = std::fma(static_cast<float>(b), 0x1p-32f, 0x1p-33f);
  return std::fma(x, x, y * y) < 1.0f;
}

}  // namespace

Outputs saxpy(const Settings& settings, const Tensors& tensors) {
  const double a = real(settings, "a");
  const std::vector<double>&x = tensors.at("x").values, &y = tensors.at("y").values;
  return only_output(tensors, "y", [&](int64_t i) {
    Sum sum;
    sum.add(a * x[i]);
    sum.add(y[i]);
    return sum.within(2);
  });
}

Outputs transpose(const Settings&, const Tensors& tensors) {
  const auto& x = tensors.at("x");
  const int64_t rows = x.shape.extents[0], columns = x.shape.extents[1];
  return only_output(tensors, "y",
                     [&](int64_t i) { return Close{x.values[i % rows * columns + i / rows]}; });
}

Outputs histogram(const Settings&, const Tensors& tensors) { return count_values(tensors, 8); }
Outputs cluster_histogram(const Settings&, const Tensors& tensors) {
  return count_values(tensors, 16);
}

Outputs nbody(const Settings& settings, const Tensors& tensors) {
  const double dt = real(settings, "dt");
  const std::vector<double>& body = tensors.at("body").values;
  const std::vector<double>& velocity = tensors.at("velocity").values;
  // A term of an acceleration is some roundings and a cube of rsqrt off, the sum one for each term.
  const double roundings = 32 + static_cast<double>(body.size()) / 4;
  const Expected faster = elements(tensors.at("velocity"), [&](int64_t at) {
    const int64_t axis = at % 4;
    if (axis == 3) return Close{velocity[at]};
    const double* const own = &body[at - axis];
    Sum pull;
    for (size_t j = 0; j < body.size(); j += 4) {
      double square = kSoftening2;
      for (int k = 0; k < 3; ++k) square += (body[j + k] - own[k]) * (body[j + k] - own[k]);
      pull.add((body[j + axis] - own[axis]) * body[j + 3] / (square * std::sqrt(square)) * dt);
    }
    const double v = velocity[at] + pull.value;
    return Close{v, pull.within(roundings).tolerance + kRounding * std::abs(v)};
  });
  const Expected moved = elements(tensors.at("moved"), [&](int64_t at) {
    if (at % 4 == 3) return Close{body[at]};
    Sum sum;
    sum.add(body[at]);
    sum.add(faster.values[at] * dt);
    return Close{sum.value, sum.within(2).tolerance + faster.tolerance[at] * dt};
  });
  return std::map<std::string, Expected>{{"velocity", faster}, {"moved", moved}};
}

// The same roundings as the kernel's: the edge of the set is chaotic.
Outputs mandelbrot(const Settings& settings, const Tensors& tensors) {
  const float left = real(settings, "left"), top = real(settings, "top");
  const float step = real(settings, "step");
  const int64_t limit = whole(settings, "limit"), width = tensors.at("image").shape.extents[1];
  return only_output(tensors, "image", [&](int64_t i) {
    const float re = std::fma(static_cast<float>(i % width), step, left);
    const float im = std::fma(static_cast<float>(i / width), step, top);
    float x = 0, y = 0;
    int64_t count = 0;
    for (; count < limit && std::fma(x, x, y * y) <= 4.0f; ++count) {
      const float next = std::fma(x, x, std::fma(-y, y, re));
      y = std::fma(x + x, y, im);
      x = next;
    }
    return Close{static_cast<double>(count)};
  });
}

Outputs black_scholes(const Settings& settings, const Tensors& tensors) {
  const double rate = real(settings, "rate"), volatility = real(settings, "volatility");
  const auto normal = [](double d) { return 0.5 * std::erfc(-d / std::sqrt(2.0)); };
  const std::vector<double>&prices = tensors.at("price").values,
        &strikes = tensors.at("strike").values, &years = tensors.at("years").values;
  // A call less its put is what the share is worth less what the strike is worth today.
  const auto options = [&](bool is_put) {
    return elements(tensors.at("call"), [&](int64_t i) {
      const double spread = volatility * std::sqrt(years[i]);
      const double growth = (rate + volatility * volatility / 2) * years[i];
      const double d1 = (std::log(prices[i] / strikes[i]) + growth) / spread;
      const double discounted = strikes[i] * std::exp(-rate * years[i]);
      const double call = prices[i] * normal(d1) - discounted * normal(d1 - spread);
      // The polynomial is good to 7.5e-8, the functions to some units of 2^-24.
      return Close{is_put ? call - prices[i] + discounted : call, (prices[i] + discounted) * 1e-6};
    });
  };
  return std::map<std::string, Expected>{{"call", options(false)}, {"put", options(true)}};
}

Outputs bitonic_sort(const Settings&, const Tensors& tensors) {
  std::vector<double> keys = tensors.at("keys").values;
  std::sort(keys.begin(), keys.end());
  return only_output(tensors, "keys", [&](int64_t i) { return Close{keys[i]}; });
}

Outputs scan(const Settings&, const Tensors& tensors) {
  const std::vector<double>& x = tensors.at("x").values;
  uint32_t sum = 0;  // modulo 2^32
  return only_output(tensors, "y", [&](int64_t i) {
    sum += static_cast<uint32_t>(x[i]);
    return Close{static_cast<double>(sum)};
  });
}

Outputs spmv(const Settings&, const Tensors& tensors) {
  const std::vector<double>&start = tensors.at("start").values,
        &column = tensors.at("column").values, &value = tensors.at("value").values,
        &x = tensors.at("x").values;
  return only_output(tensors, "y", [&](int64_t row) {
    const auto first = static_cast<int64_t>(start[row]), end = static_cast<int64_t>(start[row + 1]);
    Sum sum;
    for (int64_t i = first; i < end; ++i) {
      sum.add(value[i] * x[static_cast<size_t>(column[i])]);
    }
    return sum.within(8 + static_cast<double>(end - first) / kWarpSize);
  });
}

Outputs monte_carlo_pi(const Settings& settings, const Tensors& tensors) {
  const auto n = static_cast<uint32_t>(whole(settings, "n"));
  const auto seed = static_cast<uint32_t>(whole(settings, "seed"));
  double hits = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const Words w = philox(i, seed);
    hits += is_hit(w[0], w[1]) + is_hit(w[2], w[3]);
  }
  return only_output(tensors, "hits", [&](int64_t) { return Close{hits}; });
}

Outputs stencil(const Settings&, const Tensors& tensors) {
  const auto& x = tensors.at("x");
  const std::vector<int64_t>& extents = tensors.at("y").shape.extents;
  const int64_t rows = extents[1], columns = extents[2];
  const int64_t row_step = x.shape.extents[2], plane_step = x.shape.extents[1] * row_step;
  return only_output(tensors, "y", [&](int64_t at) {
    const int64_t z = at / (rows * columns), i = at / columns % rows, j = at % columns;
    const double* const centre =
        &x.values[(z + kReach) * plane_step + (i + kReach) * row_step + j + kReach];
    Sum sum;
    sum.add(kWeights[0] * *centre);
    for (int64_t k = 1; k <= kReach; ++k) {
      for (const int64_t step : {int64_t{1}, row_step, plane_step}) {
        sum.add(kWeights[k] * centre[k * step]);
        sum.add(kWeights[k] * centre[-k * step]);
      }
    }
    return sum.within(8);
  });
}

Outputs tv_add(const Settings&, const Tensors& tensors) {
  const std::vector<double>&x = tensors.at("x").values, &y = tensors.at("y").values;
  return only_output(tensors, "z", [&](int64_t i) {
    return Close{x[i] + y[i], kRounding * std::abs(x[i] + y[i])};
  });
}

Outputs swap_heads(const Settings&, const Tensors& tensors) {
  const auto& x = tensors.at("x");
  const int64_t sequence = x.shape.extents[1], heads = x.shape.extents[2];
  const int64_t width = x.shape.extents[3];
  return only_output(tensors, "y", [&](int64_t at) {
    const int64_t w = at % width, s = at / width % sequence, h = at / width / sequence % heads;
    const int64_t b = at / width / sequence / heads;
    return Close{x.values[((b * sequence + s) * heads + h) * width + w]};
  });
}

}  // namespace heddle::learn::reference
