// Twin of topk for rows of 8192 elements and a k of up to 8: a block has a row, tile by tile. Elements that a bound lets
// through are kept in shared memory.
#include "groups.cuh"

namespace {

using Word = unsigned long long;
// Threads, elements of each of a tile, and groups of threads whose best elements tell a bound.
constexpr int kThreads = 256, kElements = 8, kTile = kThreads * kElements, kColumns = 8192;
constexpr int kGroups = 16, kGroup = kThreads / kGroups;
// Entries that are sorted as they are; of more, the best are found by their digits.
constexpr int kFewEntries = 512, kDigitBits = 10, kDigits = 1 << kDigitBits;

// An entry stands for an element: of two, the greater one is the one that comes first. 0 is none's.
constexpr unsigned kLastColumn = 0xfffffffe;
__device__ Word entry_of(float x, int column) {
  const float number = x + 0.0f;  // -0 becomes 0
  const unsigned bits = __float_as_uint(number),
                 key = static_cast<int>(bits) < 0 ? ~bits : bits | 0x80000000u,
                 with_nan = number != number ? ~0u : key;
  return static_cast<Word>(with_nan) << 32 | (kLastColumn - column);
}
__device__ int column_of(Word entry) { return kLastColumn - static_cast<unsigned>(entry); }
// The number that an entry's element has; NaN of none.
__device__ float number_of(Word entry) {
  const unsigned key = entry >> 32;
  return __uint_as_float(static_cast<int>(key) < 0 ? key & 0x7fffffffu : ~key);
}

struct Shared {
  Word entries[2 * kTile], bests[kGroups];
  int digits[kDigits], of_warps[kThreads / 32];
  int count, beating[3], chosen[3];
};

// The greatest first, by threads that are numbered from 0 in steps of kBy: a bitonic network.
template <int kBy, class Sync>
__device__ void sort_by_network(Word* keys, int count, Sync sync) {
  const auto step = [&](int half, auto second_of) {
    sync();
    const int pairs = (((count - 1) | (2 * half - 1)) + 1) / 2;
    for (int i = threadIdx.x; i < pairs; i += kBy) {
      const int in_half = i & (half - 1), begin = 2 * (i - in_half), first = begin + in_half,
                second = second_of(begin, in_half);
      if (second >= count) continue;
      const Word a = keys[first], b = keys[second];
      if (b > a) {
        keys[first] = b;
        keys[second] = a;
      }
    }
  };
  for (int run = 1; run < count; run *= 2) {
    step(run, [&](int begin, int i) { return begin + 2 * run - 1 - i; });
    for (int stride = run / 2; stride > 0; stride /= 2) {
      step(stride, [&](int begin, int i) { return begin + i + stride; });
    }
  }
}
// As few as a warp compares at once by the first warp alone.
__device__ void sort(Word* keys, int count) {
  if (count <= 64) {
    __syncthreads();
    if (threadIdx.x < 32) sort_by_network<32>(keys, count, [] { __syncwarp(); });
  } else {
    sort_by_network<kThreads>(keys, count, [] { __syncthreads(); });
  }
  __syncthreads();
}

// What a thread has of a tile.
struct Vectors {
  float4 of[2];
  int first;  // column; the second vector is a block's width further on
  __device__ float operator[](int i) const {
    const float4& v = of[i / 4];
    return i % 4 == 0 ? v.x : i % 4 == 1 ? v.y : i % 4 == 2 ? v.z : v.w;
  }
  __device__ int column(int i) const { return first + i / 4 * 4 * kThreads + i % 4; }
  // A bit for each element of which is(element, column) says so.
  template <class Is>
  __device__ unsigned mask(Is is) const {
    unsigned bits = 0;
#pragma unroll
    for (int i = 0; i < kElements; ++i) bits |= is((*this)[i], column(i)) ? 1u << i : 0;
    return bits;
  }
};

// How many threads' elements beat the bound; of tiles one behind the other, with a barrier each.
__device__ int threads_that(Shared& all, bool are, int tile) {
  const int those = __popc(__ballot_sync(kAll, are)), place = tile % 3;
  if (lane_id() == 0 && those > 0) atomicAdd(&all.beating[place], those);
  if (threadIdx.x == 0) all.beating[(tile + 1) % 3] = 0;  // all have read it
  __syncthreads();
  return all.beating[place];
}

// Keeps those whose bits are set; in the places of those that are not beyond the bound, none.
__device__ void keep(Shared& all, const Vectors& vectors, unsigned bits, Word bound) {
  const int own = __popc(bits), up_to_lane = warp_scan(own);
  int first = 0;
  if (lane_id() == 31) first = atomicAdd(&all.count, up_to_lane);
  int place = __shfl_sync(kAll, first, 31) + up_to_lane - own;
#pragma unroll
  for (int i = 0; i < kElements; ++i) {
    if ((bits & 1u << i) == 0) continue;
    const Word entry = entry_of(vectors[i], vectors.column(i));
    all.entries[place++] = entry > bound ? entry : 0;
  }
}

// Of the best element of each group the k-th best, which k elements reach.
__device__ Word bound_of(Shared& all, const Vectors& vectors, int k) {
  Word best = 0;
#pragma unroll
  for (int i = 0; i < kElements; ++i) {
    best = max(best, entry_of(vectors[i], vectors.column(i)));
  }
  best = over_lanes<kGroup>(best, Maximum());
  if (threadIdx.x % kGroup == 0) all.bests[threadIdx.x / kGroup] = best;
  sort(all.bests, kGroups);
  const Word least = all.bests[k - 1];
  __syncthreads();
  return least;
}

// Of the threads in front of each.
__device__ int block_scan_exclusive(Shared& all, int own) {
  const int up_to_lane = warp_scan(own), warp = threadIdx.x / 32;
  __syncthreads();
  if (lane_id() == 31) all.of_warps[warp] = up_to_lane;
  __syncthreads();
  const int up_to_warp = warp_scan(all.of_warps[min(lane_id(), kThreads / 32 - 1)]),
            before = __shfl_sync(kAll, up_to_warp, max(warp - 1, 0));
  return (warp > 0 ? before : 0) + in_front(up_to_lane);
}

// Keeps the k best of more entries, in any order, and gives the last of them: by their digits, from the first one on.
// Rarely called, so that its registers are not to count.
__device__ __noinline__ Word keep_best(Shared& all, int count, int k) {
  constexpr int kEach = kDigits / kThreads;
  Word prefix = 0;  // of the last one
  int shift = 64, wanted = k, with_prefix = count;
  while (with_prefix > wanted) {
    const int bits = min(shift, kDigitBits), before = shift;
    shift -= bits;
#pragma unroll
    for (int i = 0; i < kEach; ++i) all.digits[threadIdx.x + i * kThreads] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += kThreads) {
      const Word entry = all.entries[i];
      // All 64 bits of a number are not shifted out.
      if (before == 64 || entry >> before == prefix) {
        atomicAdd(&all.digits[static_cast<int>(entry >> shift) & ((1 << bits) - 1)], 1);
      }
    }
    __syncthreads();
    // From the greatest digit on; a thread has neighbours.
    const int first = kDigits - 1 - threadIdx.x * kEach;
    int here[kEach], own = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) own += here[i] = all.digits[first - i];
    int so_far = block_scan_exclusive(all, own);
    if (so_far < wanted && wanted <= so_far + own) {
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (so_far < wanted && wanted <= so_far + here[i]) {
          all.chosen[0] = first - i;
          all.chosen[1] = wanted - so_far;
          all.chosen[2] = here[i];
        }
        so_far += here[i];
      }
    }
    __syncthreads();
    prefix = prefix << bits | all.chosen[0];
    wanted = all.chosen[1];
    with_prefix = all.chosen[2];
  }
  // Entries move to places whose own have been read.
  const Word last = max(prefix << min(shift, 63), Word{1});
  if (threadIdx.x == 0) all.count = 0;
  for (int begin = 0; begin < count; begin += kThreads) {
    const int i = begin + threadIdx.x;
    const Word entry = i < count ? all.entries[i] : 0;
    __syncthreads();
    if (entry >= last) all.entries[atomicAdd(&all.count, 1)] = entry;
  }
  __syncthreads();
  return last;
}

}  // namespace

extern "C" __global__ __launch_bounds__(kThreads) void cuda_topk(const float* __restrict__ x,
                                                                 float* __restrict__ values,
                                                                 long long* __restrict__ indices,
                                                                 int k) {
  __shared__ Shared all;
  x += static_cast<long long>(blockIdx.x) * kColumns;
  values += static_cast<long long>(blockIdx.x) * k;
  indices += static_cast<long long>(blockIdx.x) * k;
  if (threadIdx.x == 0) all.count = all.beating[0] = all.beating[1] = all.beating[2] = 0;
  __syncthreads();
  Word bound = 0;  // all that is to be found is beyond it
  int most = 0;    // that are kept, at most
  for (int tile = 0; tile < kColumns / kTile; ++tile) {
    Vectors vectors;
    vectors.first = tile * kTile + 4 * threadIdx.x;
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      vectors.of[v] = *reinterpret_cast<const float4*>(x + vectors.first + v * 4 * kThreads);
    }
    // Neither way round is a NaN passed over, be it the element or the bound's.
    const float bar = number_of(bound);
    unsigned beating = vectors.mask([&](float number, int) { return !(number <= bar); });
    const int threads = threads_that(all, beating != 0, tile);
    if (threads == 0) continue;
    most += threads * kElements;
    // Where many do, as in the first tile, the least of the k best groups' best ones is a higher bound.
    if (threads > kThreads * 3 / 4) {
      bound = max(bound, bound_of(all, vectors, k) - 1);
      beating =
          vectors.mask([&](float number, int column) { return entry_of(number, column) > bound; });
      most = kTile + 1;
    }
    keep(all, vectors, beating, bound);
    if (most <= kTile) continue;
    __syncthreads();
    most = all.count;
    if (most > kTile / 2) {
      bound = max(bound, keep_best(all, most, k) - 1);
      most = k;
    }
  }
  __syncthreads();
  int found = all.count;
  if (found > max(2 * k, kFewEntries)) {
    keep_best(all, found, k);
    found = k;
  }
  sort(all.entries, found);
  for (int i = threadIdx.x; i < k; i += kThreads) {
    const int column = column_of(all.entries[i]);
    values[i] = x[column];
    indices[i] = column;
  }
}
