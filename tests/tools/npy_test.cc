#include "heddle/tools/npy.h"

#include <sys/stat.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codegen/toolchain/tool_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heddle::tools {
namespace {

using codegen::TempDir;
using codegen::write_file;
using ir::Scalar;
using runtime::TensorShape;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A file of format 1.0 with this dict, padded as NumPy does.
std::string npy(const std::string& dict, const std::string& data) {
  std::string header = dict;
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10, ' ');
  header.back() = '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xFF);
  file += static_cast<char>(header.size() >> 8);
  return file + header + data;
}

std::string dict(const std::string& descr, const std::string& shape,
                 const std::string& fortran = "False") {
  return absl::StrCat("{'descr': '", descr, "', 'fortran_order': ", fortran, ", 'shape': ", shape,
                      ", }");
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

template <class T>
std::vector<T> values_of(const HostArray& array) {
  std::vector<T> values(array.byte_count / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), array.data.get(), array.byte_count);
  return values;
}

std::string slurp(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Reads `contents` from a file called x.npy, and gives the message without the folder.
class NpyTest : public ::testing::Test {
 protected:
  StatusOr<HostArray> read(const std::string& contents) {
    return read_npy(write_file(dir_.file("x.npy"), contents));
  }
  std::string error_of(const std::string& contents) {
    const StatusOr<HostArray> array = read(contents);
    if (array.ok()) return "read without an error";
    const std::string prefix = dir_.file("x.npy: ");
    EXPECT_TRUE(absl::StartsWith(array.status().message(), prefix)) << array.status();
    EXPECT_EQ(array.status().code(), StatusCode::kInvalidArgument);
    return std::string(array.status().message().substr(prefix.size()));
  }

  TempDir dir_;
};

TEST_F(NpyTest, ReadsWhatNumPyWrites) {
  const StatusOr<HostArray> array =
      read(npy(dict("<f4", "(2, 3)"), bytes_of<float>({1, 2, 3, 4, 5, 6})));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->shape.dtype, Scalar::kF32);
  EXPECT_THAT(array->shape.extents, ElementsAre(2, 3));
  EXPECT_THAT(values_of<float>(*array), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(NpyTest, ReadsEveryTypeAndWritesItBack) {
  const std::pair<const char*, Scalar> types[] = {
      {"|b1", Scalar::kBool}, {"<i4", Scalar::kI32}, {"<u4", Scalar::kU32},
      {"<i8", Scalar::kI64},  {"<u8", Scalar::kU64}, {"<f2", Scalar::kF16},
      {"<u2", Scalar::kBF16}, {"<f4", Scalar::kF32}, {"<f8", Scalar::kF64}};
  for (const auto& [descr, scalar] : types) {
    const std::string data = scalar == Scalar::kBool
                                 ? std::string("\1\0\1", 3)
                                 : std::string("0123456789abcdefghijklmn")
                                       .substr(0, static_cast<size_t>(3 * ir::bytes_of(scalar)));
    const std::string file = npy(dict(descr, "(3,)"), data);
    const StatusOr<HostArray> array = read(file);
    ASSERT_TRUE(array.ok()) << descr << ": " << array.status();
    EXPECT_EQ(array->shape.dtype, scalar) << descr;
    ASSERT_TRUE(write_npy(dir_.file("y.npy"), *array).ok());
    EXPECT_EQ(slurp(dir_.file("y.npy")), file) << descr;
  }
}

// ml_dtypes names its types by their bytes alone.
TEST_F(NpyTest, ReadsBytesWithoutAMeaningAsTheirTypes) {
  for (const char* descr : {"<V2", "|V2"}) {
    const StatusOr<HostArray> halves = read(npy(dict(descr, "(2,)"), "abcd"));
    ASSERT_TRUE(halves.ok()) << halves.status();
    EXPECT_EQ(halves->shape.dtype, Scalar::kBF16);
  }
  const StatusOr<HostArray> bytes = read(npy(dict("|V1", "(2,)"), "ab"));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_TRUE(same_in_numpy(bytes->shape.dtype, Scalar::kE4M3));
  EXPECT_FALSE(read(npy(dict("|V4", "(2,)"), "abcdefgh")).ok());
}

TEST_F(NpyTest, ReadsEveryRank) {
  const std::pair<const char*, std::vector<int64_t>> shapes[] = {
      {"()", {}}, {"(1,)", {1}}, {"(1, 1)", {1, 1}}, {"(1,1,1,1,)", {1, 1, 1, 1}}};
  for (const auto& [text, extents] : shapes) {
    const StatusOr<HostArray> array = read(npy(dict("<f8", text), bytes_of<double>({7})));
    ASSERT_TRUE(array.ok()) << text << ": " << array.status();
    EXPECT_EQ(array->shape.extents, extents);
    EXPECT_THAT(values_of<double>(*array), ElementsAre(7));
    ASSERT_TRUE(write_npy(dir_.file("y.npy"), *array).ok());
    EXPECT_EQ(read_npy(dir_.file("y.npy"))->shape.extents, extents);
  }
}

TEST_F(NpyTest, ReadsEmptyTensors) {
  for (const char* shape : {"(0,)", "(0, 5)", "(5, 0)", "(9223372036854775807, 9, 0)"}) {
    const StatusOr<HostArray> array = read(npy(dict("<f4", shape), ""));
    ASSERT_TRUE(array.ok()) << shape << ": " << array.status();
    EXPECT_EQ(array->byte_count, 0u);
  }
}

TEST_F(NpyTest, TurnsFortranOrderAround) {
  // The matrix [[1, 2, 3], [4, 5, 6]], stored column by column.
  StatusOr<HostArray> array =
      read(npy(dict("<i4", "(2, 3)", "True"), bytes_of<int32_t>({1, 4, 2, 5, 3, 6})));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_THAT(array->shape.extents, ElementsAre(2, 3));
  EXPECT_THAT(values_of<int32_t>(*array), ElementsAre(1, 2, 3, 4, 5, 6));

  // Element (i, j, k) of 2×3×4 holds 100 i + 10 j + k.
  std::vector<int32_t> stored, wanted;
  for (int k = 0; k < 4; ++k)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 2; ++i) stored.push_back(100 * i + 10 * j + k);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k) wanted.push_back(100 * i + 10 * j + k);
  array = read(npy(dict("<i4", "(2, 3, 4)", "True"), bytes_of(stored)));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(values_of<int32_t>(*array), wanted);

  EXPECT_TRUE(read(npy(dict("<i4", "(0, 3)", "True"), "")).ok());
}

TEST_F(NpyTest, ReadsLaterFormatsAndOtherSpellings) {
  const std::string data = bytes_of<float>({1, 2});
  for (const char major : {'\2', '\3'}) {
    std::string file = npy(dict("<f4", "(2,)"), data);
    file[6] = major;
    file.insert(10, 2, '\0');
    EXPECT_TRUE(read(file).ok()) << int{major};
  }
  for (const char* spelling :
       {"{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"<f4\"}",
        "  {'fortran_order' : False , 'descr' : '=f4' , 'shape' : ( 2 , ) , }  "}) {
    EXPECT_TRUE(read(npy(spelling, data)).ok()) << spelling;
  }
}

TEST_F(NpyTest, MakesEveryTrueOne) {
  const StatusOr<HostArray> array = read(npy(dict("|b1", "(4,)"), std::string("\0\1\2\xFF", 4)));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_THAT(values_of<uint8_t>(*array), ElementsAre(0, 1, 1, 1));
}

TEST_F(NpyTest, ReadsMoreThanItsFirstChunk) {
  std::vector<int32_t> values(100'000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i * i);
  const StatusOr<HostArray> array = read(npy(dict("<i4", "(100000,)"), bytes_of(values)));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(values_of<int32_t>(*array), values);
}

TEST_F(NpyTest, SaysWhatIsWrong) {
  const std::string data = bytes_of<float>({1, 2});
  const std::string good = npy(dict("<f4", "(2,)"), data);
  EXPECT_EQ(error_of(""), "is cut off in its header");
  EXPECT_EQ(error_of("\x93NUM"), "is cut off in its header");
  EXPECT_EQ(error_of(good.substr(0, 40)), "is cut off in its header");
  EXPECT_EQ(error_of("PK\3\4 this is a zip archive"), "is no .npy file");
  EXPECT_EQ(error_of(good.substr(0, good.size() - 3)),
            "has 5 bytes of data, and its shape (2,) of f32 takes 8");
  EXPECT_EQ(error_of(good + "x"), "has 9 bytes of data, and its shape (2,) of f32 takes 8");

  std::string file = good;
  file[6] = '\4';
  EXPECT_EQ(error_of(file), "has format version 4.0; Heddle reads 1.0, 2.0 and 3.0");
  file = good;
  file[6] = '\2';
  file.insert(10, std::string("\xFF\x7F", 2));
  EXPECT_THAT(error_of(file), HasSubstr("has a header of 2147418230 bytes; Heddle reads up to"));

  EXPECT_EQ(error_of(npy(dict("<c8", "(1,)"), data)),
            "holds elements of type '<c8'; Heddle reads |b1 (bool), |i1 (i8), |u1 (u8), <i2 (i16), "
            "<i4 (i32), <u4 (u32), <i8 (i64), <u8 (u64), <f2 (f16), <u2 (bf16), <f4 (f32), <f8 "
            "(f64)");
  EXPECT_EQ(error_of(npy(dict(">f4", "(2,)"), data)),
            "holds big-endian elements ('>f4'); convert it with .astype('<f4')");
  EXPECT_EQ(error_of(npy(dict("|f4", "(2,)"), data)),
            "holds elements of the unknown byte order '|f4'");
  EXPECT_THAT(error_of(npy(dict("", "(2,)"), data)),
              HasSubstr("holds elements of type ''; Heddle reads |b1 (bool), "));
  EXPECT_EQ(error_of(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", data)),
            "holds records; Heddle reads plain elements");
  EXPECT_EQ(error_of(npy("{'descr': '<f4', 'shape': (2,)}", data)),
            "has a header without 'fortran_order'");
  EXPECT_EQ(error_of(npy("{'descr': '<f4', 'descr': '<f4'}", data)),
            "has a header that gives 'descr' twice");
  EXPECT_EQ(error_of(npy("{'descr': '<f4', 'order': False}", data)),
            "has a header with the unknown key 'order'");
  EXPECT_EQ(error_of(npy("{'descr': '<f4' 'shape': (2,)}", data)),
            "has a malformed header: expected ',' or '}' at its byte 16");
  EXPECT_EQ(error_of(npy(dict("<f4", "(2)"), data)),
            "has a malformed header: expected ',' at its byte 52");
  EXPECT_EQ(error_of(npy(dict("<f4", "(2 3)"), data)),
            "has a malformed header: expected ',' or ')' at its byte 53");
  EXPECT_EQ(error_of(npy(dict("<f4", "(,)"), data)),
            "has a malformed header: expected an extent at its byte 51");
  EXPECT_EQ(error_of(npy(dict("<f4", "[2]"), data)),
            "has a malformed header: expected a shape in parentheses at its byte 50");
  EXPECT_EQ(error_of(npy(dict("<f4", "(2,)", "1"), data)),
            "has a malformed header: expected True or False at its byte 34");
  EXPECT_EQ(error_of(npy(dict("<f4", "(2,)") + "garbage", data)),
            "has a malformed header: expected the header's end at its byte 57");
  EXPECT_EQ(error_of(npy(dict("<f4", "(-2,)"), data)), "has a negative extent (-2)");
  EXPECT_EQ(error_of(npy(dict("<f4", "(99999999999999999999,)"), data)),
            "has the extent '99999999999999999999', which is no 64-bit number");
  EXPECT_EQ(error_of(npy(dict("<f4", "(2,-)"), data)),
            "has the extent '-', which is no 64-bit number");
  EXPECT_EQ(error_of(npy(dict("<f4", "(9223372036854775807, 9223372036854775807)"), data)),
            "has the shape (9223372036854775807, 9223372036854775807), more than memory can hold");
  EXPECT_EQ(error_of(npy(dict("<f4", "(4611686018427387904,)"), data)),
            "has the shape (4611686018427387904,), more than memory can hold");
  // Ten terabytes that are not there must not be asked of the system.
  EXPECT_EQ(error_of(npy(dict("<f4", "(2500000000000,)"), data)),
            "has 8 bytes of data, and its shape (2500000000000,) of f32 takes 10000000000000");
  std::string modes = "(";
  for (int i = 0; i < 33; ++i) modes += "1,";
  EXPECT_EQ(error_of(npy(dict("<f4", modes + ")"), data)), "has more than 32 modes");
}

TEST_F(NpyTest, SaysWhyAFileCannotBeRead) {
  EXPECT_EQ(read_npy(dir_.file("nothing.npy")).status().message(),
            dir_.file("nothing.npy: cannot be opened: No such file or directory"));
  EXPECT_EQ(read_npy(dir_.path()).status().message(),
            absl::StrCat(dir_.path(), ": is a folder, not a .npy file"));
  EXPECT_EQ(read_npy("/dev/zero").status().message(), "/dev/zero: is a device, not a .npy file");
  ASSERT_EQ(mkfifo(dir_.file("pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_npy(dir_.file("pipe")).status().message(),
            dir_.file("pipe: is a device, not a .npy file"));
}

TEST_F(NpyTest, SaysWhyAFileCannotBeWritten) {
  const StatusOr<HostArray> array = HostArray::allocate({Scalar::kF32, {16}});
  ASSERT_TRUE(array.ok());
  std::memset(array->data.get(), 0, array->byte_count);
  EXPECT_EQ(write_npy(dir_.file("no/such/y.npy"), *array).message(),
            dir_.file("no/such/y.npy: cannot be written: No such file or directory"));
  EXPECT_EQ(write_npy("/dev/full", *array).message(),
            "/dev/full: cannot be written: No space left on device");
}

TEST(HostArrayTest, RefusesShapesThatNoMemoryHas) {
  EXPECT_EQ(HostArray::allocate({Scalar::kF32, {-1}}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(
      HostArray::allocate({Scalar::kF32, {int64_t{1} << 40, int64_t{1} << 40}}).status().code(),
      StatusCode::kInvalidArgument);
  EXPECT_EQ(HostArray::allocate({Scalar::kF32, {int64_t{1} << 60}}).status().code(),
            StatusCode::kResourceExhausted);
}

// Whatever stands in a file, the answer is an array of the file's own size or one line.
TEST(NpyFuzzTest, SurvivesDamage) {
  const std::string good =
      npy(dict("<f4", "(3, 5)"), bytes_of<float>(std::vector<float>(15, 1.0f)));
  constexpr char kLikely[] = "0123456789'\"(){}[],: -<>|=fFuibTrueFalse\\\n\t\0\xFF";
  std::mt19937 random(20260101);
  int accepted = 0;
  for (int trial = 0; trial < 200'000; ++trial) {
    std::string file = good;
    const int edits = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < edits; ++i) {
      const size_t at = random() % file.size();
      const char with = random() % 4 == 0 ? static_cast<char>(random())
                                          : kLikely[random() % (sizeof(kLikely) - 1)];
      switch (random() % 4) {
        case 0:
          file[at] = with;
          break;
        case 1:
          file.insert(at, 1, with);
          break;
        case 2:
          file.erase(at, 1 + random() % 3);
          break;
        default:
          if (random() % 8 == 0) file.resize(at);
          break;
      }
      if (file.empty()) file = good;
    }
    const StatusOr<NpyHeader> header = parse_npy_header(file);
    if (!header.ok()) {
      ASSERT_FALSE(header.status().message().empty());
      ASSERT_FALSE(absl::StrContains(header.status().message(), '\n')) << header.status();
      ASSERT_FALSE(absl::StrContains(header.status().message(), '\0')) << header.status();
      continue;
    }
    ++accepted;
    ASSERT_LE(header->data_offset, file.size());
    uint64_t count = 1;
    for (const int64_t extent : header->shape.extents) count *= static_cast<uint64_t>(extent);
    ASSERT_EQ(header->data_bytes, count * static_cast<uint64_t>(ir::bytes_of(header->shape.dtype)));
  }
  // Both outcomes were exercised.
  EXPECT_GT(accepted, 1'000);
  EXPECT_LT(accepted, 199'000);
}

TEST(NpyFuzzTest, EveryPrefixIsCutOff) {
  const TempDir dir;
  const std::string good =
      npy(dict("<f4", "(3, 5)"), bytes_of<float>(std::vector<float>(15, 1.0f)));
  for (size_t length = 0; length < good.size(); ++length) {
    const StatusOr<HostArray> array =
        read_npy(write_file(dir.file("x.npy"), good.substr(0, length)));
    ASSERT_FALSE(array.ok()) << length;
    ASSERT_THAT(std::string(array.status().message()),
                ::testing::AnyOf(HasSubstr("cut off"), HasSubstr("bytes of data, and its shape")));
  }
}

}  // namespace
}  // namespace heddle::tools
