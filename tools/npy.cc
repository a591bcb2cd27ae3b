#include "heddle/tools/npy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace heddle::tools {
namespace {

using absl::string_view;
using ir::Scalar;

constexpr string_view kMagic("\x93NUMPY", 6);
constexpr size_t kMostModes = 32;

struct TypeRow {
  string_view code;  // without the byte order
  Scalar scalar;
};
constexpr TypeRow kTypes[] =
    {
        {"b1", Scalar::kBool}, {"i1", Scalar::kI8},     {"u1", Scalar::kU8},
        {"i2", Scalar::kI16},  {"i4", Scalar::kI32},    {"u4", Scalar::kU32},
        {"i8", Scalar::kI64},  {"u8", Scalar::kU64},    {"f2", Scalar::kF16},
        {"u2", Scalar::kBF16},  // NumPy has no bf16 and no 8-bit floats: these are their bits
        {"u2", Scalar::kU16},  {"u1", Scalar::kE4M3},   {"u1", Scalar::kE5M2},
        {"u1", Scalar::kE8M0}, {"u1", Scalar::kE2M1X2}, {"f4", Scalar::kF32},
        {"f4", Scalar::kTF32},  // of which the lower 13 bits do not count
        {"f8", Scalar::kF64},
};
static_assert(std::size(kTypes) == ir::kScalarCount - 1, "an element type has no code in NumPy");

// Single bytes have no order; all others are little-endian.
string_view byte_order(Scalar scalar) { return ir::bytes_of(scalar) == 1 ? "|" : "<"; }

string_view code_of(Scalar scalar) {
  return std::find_if(std::begin(kTypes), std::end(kTypes),
                      [&](const TypeRow& type) { return type.scalar == scalar; })
      ->code;
}

// What can be read, as NumPy writes it, and as what: "|b1 (bool), |i1 (i8), …". A code's first row
// says how it is read.
std::string readable_types() {
  std::vector<std::string> types;
  for (auto row = std::begin(kTypes); row != std::end(kTypes); ++row) {
    const bool again = std::any_of(std::begin(kTypes), row,
                                   [&](const TypeRow& type) { return type.code == row->code; });
    if (again) continue;
    types.push_back(
        absl::StrCat(byte_order(row->scalar), row->code, " (", ir::info(row->scalar).name, ")"));
  }
  return absl::StrJoin(types, ", ");
}

Status invalid(string_view clause) { return InvalidArgumentError(clause); }

// "(3, 4)", as Python writes it.
std::string python_tuple(absl::Span<const int64_t> extents) {
  return absl::StrCat("(", absl::StrJoin(extents, ", "), extents.size() == 1 ? ",)" : ")");
}

// The part of a header that a message may quote: a file can hold anything.
std::string quoted(string_view text) {
  constexpr size_t kLongest = 40;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kLongest)),
                      text.size() > kLongest ? "…'" : "'");
}

StatusOr<size_t> byte_count_of(const runtime::TensorShape& shape) {
  // An empty tensor has no bytes, however large its other extents.
  if (std::find(shape.extents.begin(), shape.extents.end(), 0) != shape.extents.end()) return 0;
  uint64_t bytes = static_cast<uint64_t>(ir::bytes_of(shape.dtype));
  for (const int64_t extent : shape.extents) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes) ||
        bytes > static_cast<uint64_t>(INT64_MAX)) {
      return invalid(absl::StrCat("has the shape ", python_tuple(shape.extents),
                                  ", more than memory can hold"));
    }
  }
  return bytes;
}

// The header proper: a Python dict literal of three keys, in any order.
class HeaderParser {
 public:
  explicit HeaderParser(string_view text) : text_(text) {}

  StatusOr<NpyHeader> parse() {
    NpyHeader header;
    bool has_descr = false, has_order = false, has_shape = false;
    if (!take('{')) return malformed("'{'");
    while (!take('}')) {
      const std::optional<string_view> key = string();
      if (!key) return malformed("a key or '}'");
      if (!take(':')) return malformed("':'");
      bool* const seen = *key == "descr"           ? &has_descr
                         : *key == "fortran_order" ? &has_order
                         : *key == "shape"         ? &has_shape
                                                   : nullptr;
      if (seen == nullptr) {
        return invalid(absl::StrCat("has a header with the unknown key ", quoted(*key)));
      }
      if (std::exchange(*seen, true)) {
        return invalid(absl::StrCat("has a header that gives ", quoted(*key), " twice"));
      }
      Status value = seen == &has_descr   ? parse_descr(header)
                     : seen == &has_order ? parse_order(header)
                                          : parse_shape(header);
      if (!value.ok()) return value;
      if (!take(',') && !at('}')) return malformed("',' or '}'");
    }
    skip_space();
    if (next_ != text_.size()) return malformed("the header's end");
    for (const auto& [seen, key] :
         {std::pair{has_descr, "descr"}, {has_order, "fortran_order"}, {has_shape, "shape"}}) {
      if (!seen) return invalid(absl::StrCat("has a header without '", key, "'"));
    }
    return header;
  }

 private:
  Status parse_descr(NpyHeader& header) {
    const std::optional<string_view> descr = string();
    if (!descr) {
      if (at('[') || at('(')) return invalid("holds records; Heddle reads plain elements");
      return malformed("an element type");
    }
    string_view code = descr->substr(std::min<size_t>(1, descr->size()));
    // The names of bytes without a meaning, as which ml_dtypes saves bf16 and 8-bit floats.
    const bool has_no_meaning = code == "V2" || code == "V1";
    if (has_no_meaning) code = code == "V2" ? "u2" : "u1";
    const auto row = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](const TypeRow& type) { return type.code == code; });
    if (row == std::end(kTypes)) {
      return invalid(absl::StrCat("holds elements of type ", quoted(*descr), "; Heddle reads ",
                                  readable_types()));
    }
    const char order = descr->front();
    if (order == '>') {
      return invalid(absl::StrCat("holds big-endian elements (", quoted(*descr),
                                  "); convert it with .astype('<", code, "')"));
    }
    // Single bytes have no order.
    const bool one_byte = ir::bytes_of(row->scalar) == 1;
    if (order != '<' && order != '=' && !(order == '|' && (one_byte || has_no_meaning))) {
      return invalid(absl::StrCat("holds elements of the unknown byte order ", quoted(*descr)));
    }
    header.shape.dtype = row->scalar;
    return OkStatus();
  }

  Status parse_order(NpyHeader& header) {
    skip_space();
    const string_view rest = text_.substr(next_);
    for (const auto& [word, value] :
         {std::pair<string_view, bool>{"True", true}, {"False", false}}) {
      if (absl::StartsWith(rest, word)) {
        next_ += word.size();
        header.fortran_order = value;
        return OkStatus();
      }
    }
    return malformed("True or False");
  }

  Status parse_shape(NpyHeader& header) {
    if (!take('(')) return malformed("a shape in parentheses");
    bool comma = true;  // as if before the first
    while (!at(')')) {
      if (!comma) return malformed("',' or ')'");
      skip_space();
      const size_t start = next_;
      while (next_ < text_.size() && (absl::ascii_isdigit(text_[next_]) || text_[next_] == '-')) {
        ++next_;
      }
      const string_view digits = text_.substr(start, next_ - start);
      if (digits.empty()) return malformed("an extent");
      int64_t extent = 0;
      if (!absl::SimpleAtoi(digits, &extent)) {
        return invalid(
            absl::StrCat("has the extent ", quoted(digits), ", which is no 64-bit number"));
      }
      if (extent < 0) return invalid(absl::StrCat("has a negative extent (", extent, ")"));
      header.shape.extents.push_back(extent);
      if (header.shape.extents.size() > kMostModes) {
        return invalid(absl::StrCat("has more than ", kMostModes, " modes"));
      }
      comma = take(',');
    }
    // To Python, (5) is a number.
    if (header.shape.extents.size() == 1 && !comma) return malformed("','");
    take(')');
    return OkStatus();
  }

  void skip_space() {
    while (next_ < text_.size() && absl::ascii_isspace(text_[next_])) ++next_;
  }
  bool at(char c) {
    skip_space();
    return next_ < text_.size() && text_[next_] == c;
  }
  bool take(char c) {
    if (!at(c)) return false;
    ++next_;
    return true;
  }
  std::optional<string_view> string() {
    skip_space();
    const char quote = next_ < text_.size() ? text_[next_] : '\0';
    if (quote != '\'' && quote != '"') return std::nullopt;
    const size_t start = next_ + 1;
    const size_t end = text_.find(quote, start);
    if (end == string_view::npos) return std::nullopt;
    next_ = end + 1;
    return text_.substr(start, end - start);
  }
  Status malformed(string_view wanted) const {
    return invalid(
        absl::StrCat("has a malformed header: expected ", wanted, " at its byte ", next_));
  }

  const string_view text_;
  size_t next_ = 0;
};

// From the first mode fastest to the last mode fastest.
void transpose_from_fortran(const runtime::TensorShape& shape, const std::byte* from,
                            std::byte* to) {
  const size_t element = ir::bytes_of(shape.dtype);
  struct Mode {
    int64_t extent;
    size_t stride;  // in bytes, of `from`
    int64_t at = 0;
  };
  std::vector<Mode> modes;
  size_t count = 1;
  for (const int64_t extent : shape.extents) {
    modes.push_back({extent, count * element});
    count *= static_cast<size_t>(extent);
  }
  size_t offset = 0;
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(to + i * element, from + offset, element);
    for (auto mode = modes.rbegin(); mode != modes.rend(); ++mode) {
      offset += mode->stride;
      if (++mode->at < mode->extent) break;
      offset -= mode->stride * static_cast<size_t>(mode->at);
      mode->at = 0;
    }
  }
}

Status system_error(const std::string& path, string_view clause) {
  return ErrnoToStatus(errno, absl::StrCat(path, ": ", clause));
}

Status about(const std::string& path, const Status& status) {
  return Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

// Reads until `bytes` are there or the file ends; returns how many there were, -1 on an error.
ssize_t read_fully(int file, std::byte* to, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = read(file, to + done, bytes - done);
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    done += static_cast<size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

bool write_fully(int file, absl::Span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

std::string header_text(const runtime::TensorShape& shape) {
  std::string dict =
      absl::StrCat("{'descr': '", byte_order(shape.dtype), code_of(shape.dtype),
                   "', 'fortran_order': False, 'shape': ", python_tuple(shape.extents), ", }");
  // The data start at a multiple of 64 bytes.
  constexpr size_t kFixed = kMagic.size() + 4;
  dict.resize((kFixed + dict.size() + 1 + 63) / 64 * 64 - kFixed, ' ');
  dict.back() = '\n';
  std::string text(kMagic);
  text.append(
      {'\1', '\0', static_cast<char>(dict.size() & 0xFF), static_cast<char>(dict.size() >> 8)});
  return text + dict;
}

}  // namespace

bool numpy_has_float(Scalar float_type) {
  return code_of(float_type)[0] == 'f' && float_type != Scalar::kTF32;
}

bool same_in_numpy(Scalar a, Scalar b) { return code_of(a) == code_of(b); }

StatusOr<HostArray> HostArray::allocate(runtime::TensorShape shape) {
  for (const int64_t extent : shape.extents) {
    if (extent < 0) return invalid(absl::StrCat("has a negative extent (", extent, ")"));
  }
  const StatusOr<size_t> bytes = byte_count_of(shape);
  if (!bytes.ok()) return bytes.status();
  HostArray array;
  array.data.reset(new (std::nothrow) std::byte[*bytes]);
  if (array.data == nullptr) {
    return ResourceExhaustedError(
        absl::StrCat("needs ", *bytes, " bytes of memory, which are not there"));
  }
  array.shape = std::move(shape);
  array.byte_count = *bytes;
  return array;
}

StatusOr<NpyHeader> parse_npy_header(string_view start) {
  if (!absl::StartsWith(start, kMagic.substr(0, std::min(start.size(), kMagic.size())))) {
    return invalid("is no .npy file");
  }
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(start[i]); };
  if (start.size() < kMagic.size() + 4) return invalid("is cut off in its header");
  const int major = byte(6), minor = byte(7);
  if (major < 1 || major > 3 || minor != 0) {
    return invalid(
        absl::StrCat("has format version ", major, ".", minor, "; Heddle reads 1.0, 2.0 and 3.0"));
  }
  const size_t prefix = major == 1 ? 10 : 12;
  if (start.size() < prefix) return invalid("is cut off in its header");
  size_t length = byte(8) | size_t{byte(9)} << 8;
  if (major > 1) length |= size_t{byte(10)} << 16 | size_t{byte(11)} << 24;
  if (prefix + length > kMostNpyHeaderBytes) {
    return invalid(absl::StrCat("has a header of ", length, " bytes; Heddle reads up to ",
                                kMostNpyHeaderBytes - prefix));
  }
  if (start.size() < prefix + length) return invalid("is cut off in its header");
  StatusOr<NpyHeader> header = HeaderParser(start.substr(prefix, length)).parse();
  if (!header.ok()) return header;
  header->data_offset = prefix + length;
  const StatusOr<size_t> bytes = byte_count_of(header->shape);
  if (!bytes.ok()) return bytes.status();
  header->data_bytes = *bytes;
  return header;
}

// Read, not mapped: another program that cuts a mapped file short would kill this one.
StatusOr<HostArray> read_npy(const std::string& path) {
  // O_NONBLOCK: opening a pipe that nobody writes to must not wait.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return system_error(path, "cannot be opened");
  const absl::Cleanup close_file = [file] { close(file); };
  struct stat status {};
  if (fstat(file, &status) != 0) return system_error(path, "cannot be examined");
  if (!S_ISREG(status.st_mode)) {
    return invalid(absl::StrCat(path, ": is ", S_ISDIR(status.st_mode) ? "a folder" : "a device",
                                ", not a .npy file"));
  }
  std::string start(kMostNpyHeaderBytes, '\0');
  const ssize_t got = read_fully(file, reinterpret_cast<std::byte*>(start.data()), start.size());
  if (got < 0) return system_error(path, "cannot be read");
  start.resize(static_cast<size_t>(got));
  const StatusOr<NpyHeader> header = parse_npy_header(start);
  if (!header.ok()) return about(path, header.status());

  const auto sizes_differ = [&](uint64_t there) {
    return invalid(absl::StrCat(path, ": has ", there, " bytes of data, and its shape ",
                                python_tuple(header->shape.extents), " of ",
                                ir::info(header->shape.dtype).name, " takes ", header->data_bytes));
  };
  // Before anything is allocated: a header can claim any size.
  const auto file_bytes = static_cast<uint64_t>(status.st_size);
  const uint64_t there = file_bytes - std::min<uint64_t>(file_bytes, header->data_offset);
  if (there != header->data_bytes) return sizes_differ(there);

  StatusOr<HostArray> array = HostArray::allocate(header->shape);
  if (!array.ok()) return about(path, array.status());
  const string_view head = string_view(start).substr(header->data_offset);
  const size_t from_head = std::min(head.size(), header->data_bytes);
  if (from_head > 0) std::memcpy(array->data.get(), head.data(), from_head);
  const ssize_t rest =
      read_fully(file, array->data.get() + from_head, header->data_bytes - from_head);
  if (rest < 0) return system_error(path, "cannot be read");
  // It shrank meanwhile.
  const size_t total = from_head + static_cast<size_t>(rest);
  if (total != header->data_bytes) return sizes_differ(total);

  if (header->shape.dtype == Scalar::kBool) {
    // Any other byte is true to NumPy; kernels read 0 and 1.
    for (std::byte& value : array->bytes()) value = std::byte{value != std::byte{0}};
  }
  if (header->fortran_order && header->shape.extents.size() > 1) {
    StatusOr<HostArray> turned = HostArray::allocate(header->shape);
    if (!turned.ok()) return about(path, turned.status());
    transpose_from_fortran(header->shape, array->data.get(), turned->data.get());
    return turned;
  }
  return array;
}

Status write_npy(const std::string& path, const HostArray& array) {
  const std::string header = header_text(array.shape);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return system_error(path, "cannot be written");
  const bool written =
      write_fully(file, absl::MakeConstSpan(reinterpret_cast<const std::byte*>(header.data()),
                                            header.size())) &&
      write_fully(file, array.bytes());
  const int write_error = errno;
  // Some file systems report a full disk only now.
  const bool closed = close(file) == 0;
  if (!written) errno = write_error;
  if (!written || !closed) return system_error(path, "cannot be written");
  return OkStatus();
}

}  // namespace heddle::tools
