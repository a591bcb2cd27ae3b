// 6. Black-Scholes: functions, and two results from one pass.
//
//   black_scholes.launch(stream, black_scholes_shape(n), market, price, strike, years, call, put);
//
// A device function is a C++ function on values; what it records becomes part of the kernel.
// fast::exp and fast::log are the special function unit's, a few units in the last place off; exp
// and log would be good to one (dsl/math/math.def). Each thread takes two neighbouring options in one
// access an array, which keeps more loads under way.
#pragma once

#include <initializer_list>

#include "heddle/dsl/dsl.h"

namespace heddle::learn {

struct Market {
  Float rate, volatility;
};

// The normal distribution up to d, by a polynomial (Abramowitz and Stegun 26.2.17).
inline Float normal_cdf(const Float& d) {
  Float k = rcp(1.0f + 0.2316419f * abs(d));
  Var<float> tail(0.0f);
  for (float c : {1.330274429f, -1.821255978f, 1.781477937f, -0.356563782f, 0.31938153f}) {
    tail = (tail + c) * k;
  }
  Float upper = 0.39894228f * fast::exp(-0.5f * d * d) * tail;
  return select(d > 0.0f, 1.0f - upper, upper);
}

struct Option {
  Float call, put;
};

inline Option price_option(const Market& m, const Float& price, const Float& strike,
                           const Float& years) {
  Float root = rsqrt(years);  // 1 / √years: a multiplication where a division would be slow
  Float growth = (m.rate + 0.5f * m.volatility * m.volatility) * years;
  Float d1 = (fast::log(price / strike) + growth) * root * rcp(m.volatility);
  Float n1 = normal_cdf(d1), n2 = normal_cdf(d1 - m.volatility * years * root);
  Float discounted = strike * fast::exp(-m.rate * years);
  return {price * n1 - discounted * n2, discounted * (1.0f - n2) - price * (1.0f - n1)};
}

inline const auto black_scholes =
    define_kernel("black_scholes(rate, volatility, price, strike, years, call, put)",
                  [](Market market, Tensor<const float, 1> price, Tensor<const float, 1> strike,
                     Tensor<const float, 1> years, Tensor<float, 1> call, Tensor<float, 1> put) {
                    Int i = 2 * (block_idx.x * block_dim.x + thread_idx.x);
                    If(i < price.shape(0), [&] {
                      Vec<float, 2> s = price.vec<2>(i), x = strike.vec<2>(i), t = years.vec<2>(i);
                      Option first = price_option(market, s[0], x[0], t[0]);
                      Option second = price_option(market, s[1], x[1], t[1]);
                      call.vec<2>(i) = Vec<float, 2>(first.call, second.call);
                      put.vec<2>(i) = Vec<float, 2>(first.put, second.put);
                    });
                  });

constexpr LaunchShape black_scholes_shape(int64_t n) {
  return {.grid = (n / 2 + 127) / 128, .block = 128};
}

}  // namespace heddle::learn
