// Kernels written without any word of speed (plain/*.h) on a GPU beside their CUDA C++ twins (plain/*.cu): pairs.h.
// scale_rows stands beside a copy of as many bytes as well.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "bench/pairs.h"
#include "bench/plain/images.h"
#include "bench/plain/matrices.h"
#include "bench/plain/rows.h"
#include "bench/plain/searches.h"
#include "bench/plain/streams.h"

namespace heddle::bench {
namespace {

class Bench : public Pairs {
 public:
  using Pairs::Pairs;

  nlohmann::ordered_json all() {
    for (const int columns : {8192, 8191, 1023, 65537}) rows(columns);
    images();
    matrices();
    searches();
    streams();
    return figures();
  }

 private:
  // Kernels of a matrix of about 2^26 elements, rows to blocks.
  void rows(int columns) {
    const int rows = (1 << 26) / columns;
    const int64_t n = int64_t{rows} * columns;
    const std::string size = by(rows, columns);
    const LaunchShape shape{.grid = rows, .block = 256};
    const Buffer x = floats(n, -4, 4), weight = floats(columns, 0.5f, 2),
                 bias = floats(columns, -1, 1);
    const auto in = as_tensor<const float>(x, {rows, columns});
    const auto matrix = [&](Buffer& out) { return as_tensor<float>(out, {rows, columns}); };
    compare(
        "rows", "scale_rows", size, n, {4 * n}, 1e-7,
        [&](Buffer* out) {
          return plain::scale_rows.launch(stream(), shape, in, matrix(out[0]), 2.5f);
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, shape, address(x), address(out[0]), 2.5f, columns);
        });
    if (is_timed()) {
      nlohmann::ordered_json beside_copy = Twins::compare(
          "scale_rows by 1", size, {4 * n}, 1e-7,
          [&](Buffer* out, bool ours) {
            check(ours ? plain::scale_rows.launch(stream(), shape, in, matrix(out[0]), 1.0f)
                       : out[0].copy_from(stream(), x, 4 * n));
          },
          "copy");
      add(std::move(beside_copy));
    }
    compare(
        "rows", "softmax", size, n, {4 * n}, 1e-5,
        [&](Buffer* out) { return plain::softmax.launch(stream(), shape, in, matrix(out[0])); },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, shape, address(x), address(out[0]), columns);
        });
    compare(
        "rows", "layer_norm", size, n, {4 * n}, 1e-4,
        [&](Buffer* out) {
          return plain::layer_norm.launch(stream(), shape, in,
                                          as_tensor<const float>(weight, {columns}),
                                          as_tensor<const float>(bias, {columns}), matrix(out[0]));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, shape, address(x), address(weight), address(bias), address(out[0]),
                 columns);
        });
    const int groups = columns % 64 == 0 ? columns / 64 : columns % 31 == 0 ? columns / 31 : 1;
    const Buffer scales = floats(int64_t{rows} * groups, 0.5f, 2);
    compare(
        "rows", "group_scale", size, n, {4 * n}, 1e-7,
        [&](Buffer* out) {
          return plain::group_scale.launch(
              stream(), shape, in, as_tensor<const float>(scales, {rows, groups}), matrix(out[0]));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, shape, address(x), address(scales), address(out[0]),
                 int64_t{columns}, int64_t{groups});
        });
    // Half of the words' bytes serve as numbers of 16 bits; small exponents, so that none is NaN.
    const Buffer words = random_words(device(), stream(), n / 2 + 1, 0xbfffbfff);
    compare(
        "rows", "softmax_bf16", size, n, {2 * n}, {1e-2, Held::kBFloats},
        [&](Buffer* out) {
          return plain::softmax_bf16.launch(stream(), shape,
                                            as_tensor<const bfloat16>(words, {rows, columns}),
                                            as_tensor<bfloat16>(out[0], {rows, columns}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, shape, address(words), address(out[0]), columns);
        });
    compare(
        "streams", "bias_gelu", size, n, {2 * n}, {1e-3, Held::kHalves},
        [&](Buffer* out) {
          return plain::bias_gelu.launch(
              stream(), shape, as_tensor<const half>(words, {rows, columns}),
              as_tensor<const half>(words, {columns}), as_tensor<half>(out[0], {rows, columns}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, shape, address(words), address(words), address(out[0]), columns);
        });
  }

  void images() {
    const int pixels = (1 << 26) + 5;
    const Buffer rgb = random_words(device(), stream(), 3l * pixels / 4 + 1);
    const LaunchShape one_each{.grid = blocks(pixels), .block = 256};
    compare(
        "images", "grey", std::to_string(pixels), pixels, {pixels / 4 * 4 + 4}, 0,
        [&](Buffer* out) {
          return plain::grey.launch(stream(), one_each, as_tensor<const uint8_t>(rgb, {pixels, 3}),
                                    as_tensor<uint8_t>(out[0], {pixels}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, one_each, address(rgb), address(out[0]), pixels);
        });

    const int rows = 8190, columns = 8200;
    const int64_t n = int64_t{rows} * columns;
    const LaunchShape tiles{.grid = {blocks(columns, 32), blocks(rows, 8)}, .block = {32, 8}};
    const Buffer x = floats(n, 70, 90), power = floats(n, 0, 1);
    const auto in = as_tensor<const float>(x, {rows, columns});
    compare(
        "images", "convolution", by(rows, columns), n, {4 * n}, 1e-6,
        [&](Buffer* out) {
          return plain::convolution.launch(stream(), tiles, in,
                                           as_tensor<float>(out[0], {rows, columns}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, tiles, address(x), address(out[0]), rows, columns);
        });
    struct Numbers {
      float across, down, up, step;
    };
    compare(
        "images", "hotspot", by(rows, columns), n, {4 * n}, 1e-6,
        [&](Buffer* out) {
          return plain::hotspot.launch(
              stream(), tiles, as_tensor<const float>(power, {rows, columns}), in,
              as_tensor<float>(out[0], {rows, columns}), plain::Heat{0.1f, 0.2f, 0.05f, 0.3f});
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, tiles, address(power), address(x), address(out[0]),
                 Numbers{0.1f, 0.2f, 0.05f, 0.3f}, rows, columns);
        });

    const int channels = 64, height = 514, width = 510, size = 3, out_height = 514, out_width = 510;
    const int64_t count = int64_t{channels} * out_height * out_width, all = count * size * size;
    const Buffer image = floats(int64_t{channels} * height * width, -1, 1);
    struct Window {
      int height, width, size, pad, stride, out_height, out_width;
    };
    const LaunchShape columns_each{.grid = blocks(count), .block = 256};
    compare(
        "images", "im2col", "64 × 514 × 510, 3 × 3", static_cast<double>(all), {4 * all}, 1e-7,
        [&](Buffer* out) {
          return plain::im2col.launch(
              stream(), columns_each,
              as_tensor<const float>(image, {int64_t{channels} * height * width}),
              as_tensor<float>(out[0], {all}),
              plain::Window{height, width, size, 1, 1, out_height, out_width});
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, columns_each, address(image), address(out[0]),
                 Window{height, width, size, 1, 1, out_height, out_width}, static_cast<int>(count));
        });
  }

  void matrices() {
    const int n = 1024, large = 4096;
    const Buffer a = floats(int64_t{large} * large, -1, 1),
                 b = floats(int64_t{large} * large, 0, 1);
    const LaunchShape each{.grid = {n / 32, n / 8}, .block = {32, 8}};
    compare(
        "matrices", "product", by(n, n), double{n} * n * n, {4l * n * n}, 1e-6,
        [&](Buffer* out) {
          return plain::product.launch(stream(), each, as_tensor<const float>(a, {n, n}),
                                       as_tensor<const float>(b, {n, n}),
                                       as_tensor<float>(out[0], {n, n}), 1.5f, 0.0f);
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, each, address(a), address(b), address(out[0]), 1.5f, 0.0f, n, n,
                 n);
        });
    const LaunchShape tiles{.grid = {large / plain::kTile, large / plain::kTile}, .block = 256};
    compare(
        "matrices", "tiled_product", by(large, large), double{large} * large * large,
        {4l * large * large}, 1e-6,
        [&](Buffer* out) {
          return plain::tiled_product.launch(
              stream(), tiles, as_tensor<const float>(a, {large, large}),
              as_tensor<const float>(b, {large, large}), as_tensor<float>(out[0], {large, large}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, tiles, address(a), address(b), address(out[0]), large, large);
        });
    const int count = 1 << 20, clusters = 16, features = 15;
    const LaunchShape points{.grid = blocks(count), .block = 256};
    compare(
        "matrices", "nearest", "1048576 points, 15 features, 16 centres",
        double{count} * clusters * features, {4l * count}, 0,
        [&](Buffer* out) {
          return plain::nearest.launch(
              stream(), points, as_tensor<const float>(a, {features, count}),
              as_tensor<const float>(b, {clusters, features}), as_tensor<int32_t>(out[0], {count}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, points, address(a), address(b), address(out[0]), count, clusters,
                 features);
        });
    const LaunchShape steps{.grid = {large / 32, large / 8}, .block = {32, 8}};
    compare(
        "matrices", "shortest_paths", by(large, large), double{large} * large, {4l * large * large},
        0,
        [&](Buffer* out) {
          return plain::shortest_paths.launch(stream(), steps,
                                              as_tensor<int32_t>(out[0], {large, large}), 77);
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, steps, address(out[0]), 77, large);
        });
  }

  void searches() {
    const int count = 1 << 20, length = 64;
    const LaunchShape each{.grid = blocks(count), .block = 256};
    const Buffer keys = random_words(device(), stream(), int64_t{count} * length, 63),
                 wanted = random_words(device(), stream(), count + 7, 63);
    const Buffer x = floats(int64_t{count} * length, -1, 1);
    compare(
        "searches", "linear_search", by(length, count), double{count} * length, {4l * count}, 0,
        [&](Buffer* out) {
          return plain::linear_search.launch(
              stream(), each, as_tensor<const int32_t>(keys, {length, count}),
              as_tensor<const int32_t>(wanted, {count}), as_tensor<int32_t>(out[0], {count}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, each, address(keys), address(wanted), address(out[0]), count,
                 length);
        });
    compare(
        "searches", "sum_of_roots", by(length, count), double{count} * length, {4l * count}, 1e-6,
        [&](Buffer* out) {
          return plain::sum_of_roots.launch(stream(), each,
                                            as_tensor<const float>(x, {length, count}),
                                            as_tensor<float>(out[0], {count}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, each, address(x), address(out[0]), count, length);
        });
    compare(
        "searches", "collatz", std::to_string(count), count, {4l * count}, 0,
        [&](Buffer* out) {
          return plain::collatz.launch(stream(), each, as_tensor<int32_t>(out[0], {count}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, each, address(out[0]), count);
        });

    const int points = 1 << 22;
    std::vector<float> grid(11303);
    for (size_t i = 0; i < grid.size(); ++i) grid[i] = static_cast<float>(i) / 11303.0f;
    const Buffer grid_buffer = take(device().upload(absl::MakeConstSpan(grid))),
                 values = floats(points, 0, 1);
    const int energies = static_cast<int>(grid.size());
    const LaunchShape lookups{.grid = blocks(points), .block = 256};
    compare(
        "searches", "grid_search", by(points, energies), points, {4l * points}, 0,
        [&](Buffer* out) {
          return plain::grid_search.launch(
              stream(), lookups, as_tensor<const float>(grid_buffer, {energies}),
              as_tensor<const float>(values, {points}), as_tensor<int32_t>(out[0], {points}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, lookups, address(grid_buffer), address(values), address(out[0]),
                 points, energies);
        });

    // A table three quarters full; every second key is in it.
    const int places = 1 << 20;
    std::vector<uint32_t> table(places), wanted_keys(points);
    std::mt19937 random(5);
    std::vector<uint32_t> stored;
    for (int i = 0; i < places / 4 * 3; ++i) {
      const uint32_t key = random() | 1;
      const uint32_t mixed = (key ^ (key >> 16)) * 0x85ebca6bu;
      uint32_t place = (mixed ^ (mixed >> 13)) & (places - 1);
      while (table[place] != 0) place = (place + 1) & (places - 1);
      table[place] = key;
      stored.push_back(key);
    }
    for (size_t i = 0; i < wanted_keys.size(); ++i) {
      wanted_keys[i] = i % 2 == 0 ? stored[random() % stored.size()] : random() | 1;
    }
    const Buffer table_buffer = take(device().upload(absl::MakeConstSpan(table))),
                 key_buffer = take(device().upload(absl::MakeConstSpan(wanted_keys)));
    compare(
        "searches", "hash_find", by(points, places), points, {4l * points}, 0,
        [&](Buffer* out) {
          return plain::hash_find.launch(stream(), lookups,
                                         as_tensor<const uint32_t>(table_buffer, {places}),
                                         as_tensor<const uint32_t>(key_buffer, {points}),
                                         as_tensor<int32_t>(out[0], {points}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, lookups, address(table_buffer), address(key_buffer),
                 address(out[0]), points, places);
        });

    // All of the stored keys, each once, into an empty table, which both sides clear first.
    std::sort(stored.begin(), stored.end());
    stored.erase(std::unique(stored.begin(), stored.end()), stored.end());
    std::shuffle(stored.begin(), stored.end(), random);
    const int fresh = static_cast<int>(stored.size());
    const Buffer stored_buffer = take(device().upload(absl::MakeConstSpan(stored)));
    const LaunchShape inserts{.grid = blocks(fresh), .block = 256};
    Buffer filled = take(device().allocate(int64_t{4} * places));
    compare(
        "searches", "hash_insert", by(fresh, places), fresh, {4l * fresh}, 0,
        [&](Buffer* out) {
          check(filled.fill(stream(), 0));
          return plain::hash_insert.launch(stream(), inserts, as_tensor<uint32_t>(filled, {places}),
                                           as_tensor<const uint32_t>(stored_buffer, {fresh}),
                                           as_tensor<int32_t>(out[0], {fresh}));
        },
        [&](const Function& twin, Buffer* out) {
          check(filled.fill(stream(), 0));
          launch(stream(), twin, inserts, address(filled), address(stored_buffer), address(out[0]),
                 fresh, places);
        });

    // Small integers, so that all but roots and quotients is exact and both sides hit the same spheres.
    const int rays = 1 << 20, spheres = 256;
    const auto whole_numbers = [&](int64_t size, int least, int most) {
      std::uniform_int_distribution<int> uniform(least, most);
      std::vector<float> numbers(static_cast<size_t>(size));
      for (float& number : numbers) number = static_cast<float>(uniform(random));
      return numbers;
    };
    std::vector<float> world = whole_numbers(4 * spheres, -40, 40);
    for (size_t i = 3; i < world.size(); i += 4) world[i] = 1.0f + static_cast<float>(i % 3);
    const Buffer direction_buffer =
                     take(device().upload(absl::MakeConstSpan(whole_numbers(3 * rays, -15, 15)))),
                 sphere_buffer = take(device().upload(absl::MakeConstSpan(world)));
    const LaunchShape each_ray{.grid = blocks(rays), .block = 256};
    compare(
        "searches", "hits", by(rays, spheres), double{rays} * spheres, {4l * rays, 12l * rays},
        1e-5,
        [&](Buffer* out) {
          return plain::hits.launch(
              stream(), each_ray, as_tensor<const float>(direction_buffer, {rays, 3}),
              as_tensor<const float>(sphere_buffer, {spheres, 4}), as_tensor<float>(out[0], {rays}),
              as_tensor<float>(out[1], {rays, 3}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, each_ray, address(direction_buffer), address(sphere_buffer),
                 address(out[0]), address(out[1]), rays, spheres);
        });

    const int rows = 8192, columns = 8192;
    const Buffer scores = floats(int64_t{rows} * columns, -1, 1);
    const LaunchShape each_row{.grid = rows, .block = 256};
    compare(
        "searches", "top_k", by(rows, columns), double{rows} * columns, {4l * rows * 8}, 0,
        [&](Buffer* out) {
          return plain::top_k.launch(stream(), each_row,
                                     as_tensor<const float>(scores, {rows, columns}),
                                     as_tensor<float>(out[0], {rows, 8}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, each_row, address(scores), address(out[0]), columns);
        });
  }

  void streams() {
    const int n = (1 << 26) + 4;
    const std::string size = std::to_string(n);
    const Buffer a = floats(n, -1, 1), b = floats(n, 0, 1);
    const auto left = as_tensor<const float>(a, {n}), right = as_tensor<const float>(b, {n});
    const LaunchShape each{.grid = blocks(n), .block = 256};
    const LaunchShape resident{.grid = 8 * device().info().sm_count, .block = 256};
    compare(
        "streams", "triad", size, n, {4l * n}, 1e-6,
        [&](Buffer* out) {
          return plain::triad.launch(stream(), each, as_tensor<float>(out[0], {n}), left, right,
                                     0.4f);
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, each, address(out[0]), address(a), address(b), 0.4f, n);
        });
    const int64_t sums = resident.grid.x;
    compare(
        "streams", "dot", size, n, {4 * sums}, 1e-4,
        [&](Buffer* out) {
          return plain::dot.launch(stream(), resident, left, right,
                                   as_tensor<float>(out[0], {sums}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, resident, address(a), address(b), address(out[0]), n);
        });
    const Buffer halves = random_words(device(), stream(), n / 2, 0xb3ffb3ff);
    const half factor(0.5f);
    compare(
        "streams", "half_axpy", size, n, {2l * n}, 0,
        [&](Buffer* out) {
          return plain::half_axpy.launch(stream(), resident, as_tensor<const half>(halves, {n}),
                                         as_tensor<half>(out[0], {n}), factor);
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, resident, address(halves), address(out[0]),
                 std::bit_cast<uint16_t>(factor), n);
        });
    compare(
        "streams", "quantise", size, n, {n}, 0,
        [&](Buffer* out) {
          return plain::quantise.launch(stream(), resident, left,
                                        as_tensor<float8_e4m3>(out[0], {n}), 300.0f);
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, resident, address(a), address(out[0]), 300.0f, n);
        });
    // Bytes of which none is NaN.
    const Buffer bytes = random_words(device(), stream(), n / 4, 0xbfbfbfbf);
    compare(
        "streams", "dequantise", size, n, {2l * n}, 0,
        [&](Buffer* out) {
          return plain::dequantise.launch(stream(), resident,
                                          as_tensor<const float8_e4m3>(bytes, {n}),
                                          as_tensor<half>(out[0], {n}), factor);
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, resident, address(bytes), address(out[0]),
                 std::bit_cast<uint16_t>(factor), n);
        });
    constexpr int kPoints = 512;
    const int transforms = n / kPoints / 2;
    std::vector<float> turns;
    for (int k = 0; k < kPoints / 2; ++k) {
      const double angle = -std::numbers::pi * k / (kPoints / 2);
      for (const double part : {std::cos(angle), std::sin(angle)}) {
        turns.push_back(static_cast<float>(part));
      }
    }
    const Buffer roots = take(device().upload(absl::MakeConstSpan(turns)));
    const LaunchShape each_transform{.grid = transforms, .block = kPoints / 2};
    compare(
        "streams", "fft", by(transforms, kPoints), double{kPoints} * transforms,
        {8l * kPoints * transforms}, 1e-6,
        [&](Buffer* out) {
          return plain::fft.launch(stream(), each_transform,
                                   as_tensor<const float>(a, {transforms, kPoints, 2}),
                                   as_tensor<const float>(roots, {kPoints / 2, 2}),
                                   as_tensor<float>(out[0], {transforms, kPoints, 2}));
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, each_transform, address(a), address(roots), address(out[0]));
        });
    const LaunchShape fours{.grid = blocks(n / 4), .block = 256};
    compare(
        "streams", "walsh", size, n / 4, {4l * n}, 1e-6,
        [&](Buffer* out) {
          return plain::walsh.launch(stream(), fours, left, as_tensor<float>(out[0], {n}), 1);
        },
        [&](const Function& twin, Buffer* out) {
          launch(stream(), twin, fours, address(a), address(out[0]), 1, n);
        });
  }
};

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) {
  return heddle::bench::run_pairs<heddle::bench::Bench>(
      "Plain kernels beside their CUDA C++ twins.", argc, argv);
}
