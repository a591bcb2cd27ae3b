#include "heddle/ir/interp/mma.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "heddle/ir/check.h"
#include "heddle/ir/interp/report.h"
#include "heddle/ir/interp/scalar/elementwise.h"

namespace heddle::ir::interp {
namespace {

constexpr int kBlockRows = 16;    // computed at once: every m is a multiple of it
constexpr int kBlockColumns = 8;  // likewise, every n
constexpr int kMostRows = 64;

template <class T>
double number_of(T element) {
  return static_cast<double>(widen(element));
}

template <class T>
struct As {
  using type = T;
};

// Calls visit(As<T>) with the lane type of an element of a or b.
template <class Visit>
void visit_input(Scalar scalar, Visit visit) {
  switch (scalar) {
    case Scalar::kF16:
      return visit(As<Lane<Scalar::kF16>>());
    case Scalar::kBF16:
      return visit(As<Lane<Scalar::kBF16>>());
    case Scalar::kTF32:
      return visit(As<Lane<Scalar::kTF32>>());
    case Scalar::kE4M3:
      return visit(As<Lane<Scalar::kE4M3>>());
    case Scalar::kE5M2:
      return visit(As<Lane<Scalar::kE5M2>>());
    case Scalar::kI8:
      return visit(As<Lane<Scalar::kI8>>());
    case Scalar::kU8:
      return visit(As<Lane<Scalar::kU8>>());
    default:
      check_failed(__FILE__, __LINE__, "scalar", "the verifier lets no other type be multiplied");
  }
}

void round_to(double sum, float* element) { *element = static_cast<float>(sum); }
void round_to(double sum, F16* element) { *element = f16_from(odd_float_from(sum)); }
// Sums of bytes' products are exact, and modulo 2^32.
void round_to(double sum, int32_t* element) {
  *element = static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(sum)));
}

template <class T>
void multiply_into(const Matrix& a, const Matrix& b, const Accumulators& accumulators,
                   const Warp* first) {
  const FragmentPlaces& places = *accumulators.places;
  const int threads = static_cast<int>(places.of_thread.size());
  const int rows = places.rows;
  // The values of a thread in so many columns.
  const int values = rows * kBlockColumns / threads;
  std::array<double, kMostRows * kBlockColumns> d;
  for (int block = 0; block < places.columns / kBlockColumns; ++block) {
    const int start = block * kBlockColumns * rows;
    const auto for_each_element = [&](const std::array<uint32_t, 4>& registers, auto visit) {
      for (int w = 0; w < threads / kLanes; ++w) {
        T* const fragment = first[w].reg<T>(registers[static_cast<size_t>(w)]);
        for (int v = block * values; v < (block + 1) * values; ++v) {
          const int* const lanes = &places.of_thread[static_cast<size_t>(w * kLanes)];
          double* const to = d.data() + places.of_value[static_cast<size_t>(v)] - start;
          for (int lane = 0; lane < kLanes; ++lane) {
            visit(to[lanes[lane]], fragment[v * kLanes + lane]);
          }
        }
      }
    };
    if (accumulators.keep) {
      for_each_element(accumulators.from,
                       [](double& number, T& element) { number = number_of(element); });
    } else {
      std::fill_n(d.begin(), rows * kBlockColumns, 0.0);
    }
    for (int column = 0; column < kBlockColumns; ++column) {
      const double* const b_row = b.numbers.data() + block * kBlockColumns + column;
      for (int row = 0; row < rows; row += kBlockRows) {
        double* const d_at = d.data() + column * rows + row;
        double sums[kBlockRows];
        std::copy_n(d_at, kBlockRows, sums);
        for (int k = 0; k < a.columns; ++k) {
          const double* const a_at = a.numbers.data() + k * rows + row;
          const double factor = b_row[k * b.rows];
          for (int i = 0; i < kBlockRows; ++i) sums[i] += a_at[i] * factor;
        }
        std::copy_n(sums, kBlockRows, d_at);
      }
    }
    for_each_element(accumulators.to,
                     [](double& number, T& element) { round_to(number, &element); });
  }
}

const Instr* run_mma(const Instr* instr, Warp& warp) {
  if (!whole_warp_is_here(instr, warp, "products of matrices")) {
    return warp.suspend(WarpState::kStopped, instr);
  }
  const Mma& mma = warp.block->machine->code->mmas[instr->aux];
  Matrix a(mma.a.rows, mma.a.columns), b(mma.b.rows, mma.b.columns);
  read_fragments(mma.a, mma.types.a, &warp, instr->a, &a);
  read_fragments(mma.b, mma.types.b, &warp, instr->b, &b);
  multiply(a, b,
           {.places = &mma.accumulator,
            .scalar = mma.types.accumulator,
            .from = {instr->c},
            .to = {instr->dst}},
           &warp);
  return instr + 1;
}

}  // namespace

FragmentPlaces::FragmentPlaces(const MmaFragment& fragment)
    : rows(fragment.rows), columns(fragment.columns) {
  const auto place = [this](MmaElement element) { return element.row + rows * element.column; };
  for (int t = 0; t < fragment.threads(); ++t) of_thread.push_back(place(fragment.at(t, 0)));
  for (int v = 0; v < fragment.values(); ++v) of_value.push_back(place(fragment.at(0, v)));
}

void Matrix::negate() {
  for (size_t i = 0; i < static_cast<size_t>(rows * columns); ++i) numbers[i] = -numbers[i];
}

void read_numbers(Scalar scalar, const void* elements, int count, double* numbers) {
  visit_input(scalar, [&](auto as) {
    using T = typename decltype(as)::type;
    const T* const from = static_cast<const T*>(elements);
    for (int i = 0; i < count; ++i) numbers[i] = number_of(from[i]);
  });
}

void read_fragments(const FragmentPlaces& places, Scalar scalar, const Warp* first, uint32_t reg,
                    Matrix* matrix) {
  visit_input(scalar, [&](auto as) {
    using T = typename decltype(as)::type;
    for (size_t w = 0; w < places.of_thread.size() / kLanes; ++w) {
      const T* fragment = first[w].reg<T>(reg);
      for (const int place : places.of_value) {
        for (size_t lane = 0; lane < kLanes; ++lane) {
          matrix->numbers[static_cast<size_t>(places.of_thread[w * kLanes + lane] + place)] =
              number_of(fragment[lane]);
        }
        fragment += kLanes;
      }
    }
  });
}

void multiply(const Matrix& a, const Matrix& b, const Accumulators& accumulators,
              const Warp* first) {
  switch (accumulators.scalar) {
    case Scalar::kF32:
      return multiply_into<float>(a, b, accumulators, first);
    case Scalar::kF16:
      return multiply_into<F16>(a, b, accumulators, first);
    case Scalar::kI32:
      return multiply_into<int32_t>(a, b, accumulators, first);
    default:
      check_failed(__FILE__, __LINE__, "scalar", "the verifier lets no other accumulator pass");
  }
}

bool whole_warp_is_here(const Instr* instr, const Warp& warp, absl::string_view what) {
  if (warp.mask == kAllLanes) return true;
  Reporter& reporter = *warp.block->machine->reporter;
  const Mask missing = ~warp.mask;
  const Mask left = missing & warp.exists;
  if (left == 0) {
    reporter.add_fatal(*warp.block, instr,
                       absl::StrCat(what,
                                    " need a warp of 32 threads, and the last warp of this "
                                    "block has ",
                                    std::popcount(warp.exists)),
                       "launch blocks of a multiple of 32 threads");
  } else {
    reporter.add_fatal(*warp.block, instr,
                       absl::StrCat(what, " need all 32 threads of their warp at once"),
                       "move it out of the branch or loop, or make its condition the same for the "
                       "warp",
                       {where_lane_is(warp, instr, std::countr_zero(left))});
  }
  return false;
}

Handler mma_handler() { return &run_mma; }

}  // namespace heddle::ir::interp
