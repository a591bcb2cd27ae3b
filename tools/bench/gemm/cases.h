// The products of shapes.def as data, and what is to be reached.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/tools/bench/gemm/data.h"
#include "nlohmann/json.hpp"

namespace heddle::bench {

inline std::vector<std::string> words(std::string_view text, char separator = ' ') {
  std::vector<std::string> found;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    if (end > at) found.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return found;
}

struct Product {
  const char *dtype, *layout, *variant;
  int count;        // of groups of rows
  int64_t m, n, k;  // m is the mean of the groups' rows
  const char* groups;

  bool is(std::string_view kind) const { return variant == kind; }
  bool has_groups() const { return is("grouped") || is("masked"); }
  std::string name() const {
    std::string text = std::string(dtype) + " " + layout + " ";
    if (*variant != 0) text += std::string(variant) + " ";
    if (has_groups()) text += std::to_string(count) + " x ";
    return text + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  }
  double operations() const {
    return 2.0 * static_cast<double>(count * m) * static_cast<double>(n) * static_cast<double>(k);
  }
  // The same in small, for a look at the benchmark itself without a GPU.
  Product shrunk(int64_t by) const {
    const auto smaller = [&](int64_t extent) {
      return std::min(extent, std::max<int64_t>(16, extent / by));
    };
    Product small = *this;
    small.m = smaller(m);
    small.n = smaller(n);
    small.k = smaller(k);
    return small;
  }
  // The rows of each group: from a quarter to seven quarters of m, and m on average; of many groups one is
  // empty.
  std::vector<int64_t> rows() const {
    std::vector<int64_t> all;
    for (int pair = 0; pair < count / 2; ++pair) {
      const double part = 0.75 * random_number(static_cast<uint32_t>(pair), 17, 24);
      const auto more =
          pair == 0 && count >= 16 ? m : static_cast<int64_t>(part * static_cast<double>(m));
      all.push_back(m + more);
      all.push_back(m - more);
    }
    if (count % 2 == 1) all.push_back(m);
    return all;
  }
};

struct Aim {
  const char *group, *what, *statistic, *against;
  double aim;
};

#define HEDDLE_GEMM(dtype, layout, ...) HEDDLE_GEMM_ROW(dtype, layout, __VA_ARGS__)
#define HEDDLE_GEMM_ROW(dtype, layout, variant, ...) {dtype, layout, variant, 1, __VA_ARGS__},
#define HEDDLE_GEMM_OF_GROUPS(dtype, ...) {dtype, "tn", __VA_ARGS__},
#define HEDDLE_GEMM_AIM(...)
inline constexpr Product kProducts[] = {
#include "heddle/tools/bench/gemm/shapes.def"
};
#define HEDDLE_GEMM(...)
#define HEDDLE_GEMM_OF_GROUPS(...)
#define HEDDLE_GEMM_AIM(...) {__VA_ARGS__},
inline constexpr Aim kAims[] = {
#include "heddle/tools/bench/gemm/shapes.def"
};
#undef HEDDLE_GEMM_ROW

inline bool is_in_group(const Product& product, const char* group) {
  const std::vector<std::string> groups = words(product.groups);
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

inline nlohmann::ordered_json aims() {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Aim& aim : kAims) {
    const auto products =
        std::count_if(std::begin(kProducts), std::end(kProducts),
                      [&](const Product& product) { return is_in_group(product, aim.group); });
    all.push_back({{"group", aim.group},
                   {"products", products},
                   {"case", aim.what},
                   {"statistic", aim.statistic},
                   {"against", aim.against},
                   {"aim", aim.aim}});
  }
  return all;
}

}  // namespace heddle::bench
