#include "heddle/dsl/mma/descriptor.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/dsl/mma/swizzle_internal.h"
#include "heddle/dsl/tensor/runs_internal.h"

namespace heddle {

namespace {

using detail::kChunkBytes;
using detail::kSwizzleLines;

constexpr int kStepBytes = 32;      // of a row, that one instruction takes
constexpr int kTransposeBits = 16;  // of elements whose tiles may be MN-major

// Where the elements along one mode of a tile are, and where a canonical layout has them: element i of
// an instruction's part at i % period * unit + i / period * next.
struct Line {
  std::vector<int64_t> at;  // from the tile's first element
  int64_t part;             // elements of an instruction
  int64_t period, unit, next = 0;

  // Takes the distance between periods from the first part.
  void find_next() {
    if (part > period) next = at[static_cast<size_t>(period)];
  }
  int64_t wanted(int64_t i) const { return i % period * unit + i / period * next; }
  // The first element that is elsewhere; -1: none.
  int64_t misplaced() const {
    for (size_t i = 0; i < at.size(); ++i) {
      const auto in_part = static_cast<int64_t>(i) % part;
      if (at[i] - at[i - static_cast<size_t>(in_part)] != wanted(in_part)) {
        return static_cast<int64_t>(i);
      }
    }
    return -1;
  }
  // Where the parts start, in bytes.
  std::vector<int64_t> starts(int bytes) const {
    std::vector<int64_t> result;
    for (size_t i = 0; i < at.size(); i += static_cast<size_t>(part)) {
      result.push_back(at[i] * bytes);
    }
    return result;
  }
};

std::vector<int64_t> places(const Layout& mode) {
  const detail::StaticLayout index(mode);
  std::vector<int64_t> at(static_cast<size_t>(size(mode).value()));
  for (size_t i = 0; i < at.size(); ++i) at[i] = index(static_cast<int64_t>(i));
  return at;
}

std::string swizzle_text(int bytes) {
  return bytes == 0 ? "no swizzle" : absl::StrCat("a swizzle of ", bytes, " bytes");
}

const char* major_text(Major major) { return major == Major::k ? "K-major" : "MN-major"; }

}  // namespace

bool SmemDescriptor::wrong(std::string what, std::string fix) {
  what_ = std::move(what);
  fix_ = std::move(fix);
  return false;
}

SmemDescriptor::SmemDescriptor(const Layout& tile, ir::Scalar scalar, int64_t rows)
    : bytes_(ir::bytes_of(scalar)), rows_(rows), step_(kStepBytes / ir::bytes_of(scalar)) {
  if (!tile.ok()) {
    wrong("was not made", tile.error());
    return;
  }
  const Layout outer = tile.outer();
  if (!tile.shape().is_tuple() || rank(tile) != 2 || !is_static(outer)) {
    wrong("has no two modes of host numbers", "slice and tile it until (rows, depth) is left");
    return;
  }
  const int64_t height = size(get(outer, 0)).value(), depth = size(get(outer, 1)).value();
  if (rows <= 0 || rows % kSwizzleLines != 0 || height % rows != 0 || height == 0) {
    wrong(absl::StrCat("has ", height, " rows"),
          absl::StrCat("an instruction takes ", rows, ", and the tile a multiple of that"));
    return;
  }
  if (depth == 0 || depth % step_ != 0) {
    wrong(absl::StrCat("has ", depth, " columns"),
          absl::StrCat("a product takes a multiple of ", step_));
    return;
  }
  const auto swizzle = detail::line_bytes_of(tile.swizzle(), 8 * bytes_);
  if (!swizzle || tile.inner() != nullptr) {
    const Swizzle widest = detail::swizzle_of_lines(detail::kMostSwizzleBytes, 8 * bytes_);
    wrong("is swizzled as no matrix descriptor can say",
          absl::StrCat("for elements of ", 8 * bytes_, " bits, use S<1,", widest.base(),
                       ",3>, S<2,", widest.base(), ",3> or ", widest.to_string(), ", or none"));
    return;
  }
  swizzle_ = *swizzle;
  read_lines(outer);
}

bool SmemDescriptor::read_lines(const Layout& tile) {
  const int64_t chunk = kChunkBytes / bytes_;
  const int64_t pitch = std::max(swizzle_, kChunkBytes) / bytes_;
  Line lines[] = {{.at = places(get(tile, 0)), .part = rows_, .period = 1, .unit = 1},
                  {.at = places(get(tile, 1)), .part = step_, .period = 1, .unit = 1}};
  major_ = lines[0].at[1] == 1 && lines[1].at[1] != 1 ? Major::mn : Major::k;
  if (major_ == Major::mn && 8 * bytes_ != kTransposeBits) {
    return wrong(
        absl::StrCat("is contiguous along its rows, of elements of ", 8 * bytes_, " bits"),
        "tensor cores read MN-major tiles of 16-bit elements alone: store this one K-major, "
        "contiguous along the depth");
  }
  Line& along = lines[major_ == Major::k ? 1 : 0];
  Line& across = lines[major_ == Major::k ? 0 : 1];
  // Under a swizzle a K-major step lies within a line.
  along.period = major_ == Major::k && swizzle_ != 0 ? 2 * chunk : pitch;
  across.period = kSwizzleLines;
  across.unit = pitch;
  for (Line& line : lines) {
    if (line.part % line.period != 0) {
      return wrong(
          absl::StrCat("lies in lines of ", line.period, " elements under ", swizzle_text(swizzle_),
                       ", of which instructions of ", line.part, " rows take no whole number"),
          "take a narrower swizzle, or instructions of more rows");
    }
    line.find_next();
  }
  for (const int mode : {0, 1}) {
    const int64_t i = lines[mode].misplaced();
    if (i < 0) continue;
    const int64_t in_part = i % lines[mode].part, first = i - in_part;
    const auto element = [&](int64_t at) {
      return mode == 0 ? absl::StrCat("(", at, ", 0)") : absl::StrCat("(0, ", at, ")");
    };
    const auto& at = lines[mode].at;
    return wrong(
        absl::StrCat("is not canonical: element ", element(i), " is ",
                     at[static_cast<size_t>(i)] - at[static_cast<size_t>(first)],
                     " elements behind ", first == 0 ? "the first" : "element " + element(first),
                     ", and a matrix descriptor with ", swizzle_text(swizzle_), " has it ",
                     lines[mode].wanted(in_part), " behind"),
        absl::StrCat("let lines be contiguous along the ", major_ == Major::k ? "depth" : "rows",
                     ", ", pitch,
                     " elements apart, and groups of eight lines equally far apart, as "
                     "make_smem_layout() lays them"));
  }
  // Without a swizzle and MN-major, the offsets change places.
  const bool swapped = major_ == Major::mn && swizzle_ == 0;
  const Line& leads = swapped ? across : along;
  const Line& strides = swapped ? along : across;
  uses_leading_ = leads.part > leads.period;
  uses_stride_ = strides.part > strides.period;
  leading_ = uses_leading_ ? leads.next * bytes_ : kChunkBytes;
  stride_ = strides.next * bytes_;
  row_starts_ = lines[0].starts(bytes_);
  step_starts_ = lines[1].starts(bytes_);
  constexpr int64_t kMostOffset = ((1 << 14) - 1) * kChunkBytes;
  std::vector<int64_t> offsets = {leading_, stride_};
  for (const int64_t offset : offsets) {
    if (offset >= 0 && offset <= kMostOffset && offset % kChunkBytes == 0) continue;
    return wrong(absl::StrCat("has core matrices ", offset, " bytes apart"),
                 absl::StrCat("a matrix descriptor counts in 16 bytes, up to ", kMostOffset));
  }
  for (const auto* starts : {&row_starts_, &step_starts_}) {
    for (const int64_t start : *starts) {
      if (start % kChunkBytes == 0) continue;
      return wrong(absl::StrCat("has an instruction's part that starts at byte ", start),
                   "let each part start at a multiple of 16 bytes");
    }
  }
  return true;
}

uint64_t SmemDescriptor::bits(int64_t address) const {
  const auto field = [](int64_t bytes) {
    return static_cast<uint64_t>(bytes / kChunkBytes) & ((1 << 14) - 1);
  };
  const uint64_t kind = swizzle_ == 128 ? 1 : swizzle_ == 64 ? 2 : swizzle_ == 32 ? 3 : 0;
  return field(address) | field(leading_) << 16 | field(stride_) << 32 | kind << 62;
}

std::string to_string(const SmemDescriptor& d) {
  if (!d.ok()) return absl::StrCat("error: the tile ", d.error(), "; ", d.fix(), "\n");
  const auto used = [](bool uses) { return uses ? "" : ", not used"; };
  std::vector<int64_t> steps, parts;
  for (int64_t i = 0; i < d.steps(); ++i) steps.push_back(d.start(0, i));
  for (int64_t i = 0; i < d.row_parts(); ++i) parts.push_back(d.start(i, 0));
  return absl::StrCat(
      major_text(d.major()), ", ", swizzle_text(d.swizzle()), "\nstart: ", d.start(0, 0),
      "\nLBO: ", d.leading(), " bytes", used(d.uses_leading()), "\nSBO: ", d.stride(), " bytes",
      used(d.uses_stride()), "\nk-steps of ", d.step(), " elements: ", absl::StrJoin(steps, ", "),
      "\nparts of ", d.rows(), " rows: ", absl::StrJoin(parts, ", "), "\nbits: 0x",
      absl::Hex(d.bits(d.start(0, 0)), absl::kZeroPad16), "\n");
}

}  // namespace heddle
