// heddle layout, as a user calls it.
#include "absl/strings/str_split.h"
#include "tools/command_testing.h"

namespace heddle::tools {
namespace {

using codegen::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(LayoutCommand, EvaluatesAnExpression) {
  const Outcome divided =
      heddle_command({"layout", "zipped_divide((9,(4,8)):(59,(13,1)), <3:3,(2,4):(1,8)>)"});
  EXPECT_EQ(divided.exit_code, 0) << divided.err;
  EXPECT_EQ(divided.out, "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))\n");
  expect_one_line(heddle_command({"layout", "complement((2,3):(1,1), 12)"}), 2,
                  HasSubstr("it is not injective"));
  expect_one_line(heddle_command({"layout"}), 2, HasSubstr("layout needs an expression"));
  expect_one_line(heddle_command({"layout", "4:1", "8:1"}), 2,
                  HasSubstr("unexpected argument '8:1'"));
}

TEST(LayoutCommand, AnswersLineByLine) {
  const Outcome batch =
      heddle_command({"layout", "--batch"}, {},
                     "coalesce((2,(1,6)):(1,(6,2)))\nfoo(3)\n\nis_compatible(24,(4,6))\n");
  EXPECT_EQ(batch.exit_code, 0) << batch.err;
  const std::vector<std::string> lines = absl::StrSplit(batch.out, '\n');
  ASSERT_EQ(lines.size(), 5u) << batch.out;
  EXPECT_EQ(lines[0], "12:1");
  EXPECT_THAT(lines[1], StartsWith("error: there is no function 'foo'"));
  EXPECT_THAT(lines[2], StartsWith("error: expected an expression"));
  EXPECT_EQ(lines[3], "1");
  expect_one_line(heddle_command({"layout", "--batch", "4:1"}), 2, HasSubstr("takes none"));
}

std::string text_in(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(LayoutCommand, Draws) {
  const TempDir folder;
  const std::string svg = folder.file("tile.svg"), html = folder.file("tile.html");
  const Outcome drawn = heddle_command({"layout", "--table", "--svg", svg, "--html", html,
                                        "--banks", "32", "S<1,0,1> o 0 o (2,2):(2,1)"});
  EXPECT_EQ(drawn.exit_code, 0) << drawn.err;
  EXPECT_THAT(drawn.out, HasSubstr("1  | 3 b3 | 2 b2 | 1×"));
  EXPECT_THAT(text_in(svg), StartsWith("<svg"));
  EXPECT_THAT(text_in(html), HasSubstr("coordinate (1,0), index 3, bank 3"));
  expect_one_line(heddle_command({"layout", "--table", "(?,4):(4,1)"}), 2,
                  HasSubstr("numbers that are not known yet"));
  expect_one_line(heddle_command({"layout", "--svg", svg, "--tv", "(2,2)", "(4,2):(1,4)"}), 2,
                  HasSubstr("outside the tile (2,2)"));
  expect_one_line(heddle_command({"layout", "--svg", svg, "--tv", "(0,0)", "(4,2):(1,4)"}), 2,
                  HasSubstr("the tile (0,0) has a mode of 0 elements; extents are at least 1"));
  const Outcome threads = heddle_command({"layout", "--table", "--tv", "(2,2)", "(2,2):(2,1)"});
  EXPECT_THAT(threads.out, HasSubstr("1  | T0 V1 | T1 V1 |"));
  expect_one_line(heddle_command({"layout", "--svg", "/no/folder/x.svg", "4:1"}), 2,
                  HasSubstr("/no/folder/x.svg"));
}

TEST(LayoutCommand, ShowsCopyAtoms) {
  const Outcome text = heddle_command({"layout", "--atom", "ldmatrix.x4.trans"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_EQ(text.out, "source: (32,8):(8,1)\ndestination: ((4,8),(1,2,4)):((16,1),(1,8,64))\n");
  EXPECT_EQ(heddle_command({"layout", "--atom", "cp.async.128", "--element", "32"}).out,
            "source: (1,4):(0,1)\ndestination: (1,4):(0,1)\n");
  const TempDir folder;
  const std::string svg = folder.file("atom.svg"), html = folder.file("atom.html");
  EXPECT_EQ(
      heddle_command({"layout", "--atom", "ldmatrix.x2", "--svg", svg, "--html", html}).exit_code,
      0);
  EXPECT_THAT(text_in(html), HasSubstr("</svg>"));
  EXPECT_THAT(text_in(svg), HasSubstr("source: "));
  EXPECT_THAT(text_in(svg), HasSubstr("destination: "));
  expect_one_line(heddle_command({"layout", "--atom", "ldmatrix.x3"}), 2,
                  HasSubstr("LdMatrix of 3 matrices"));
  expect_one_line(heddle_command({"layout", "--atom", "cp.async.128.trans"}), 2,
                  HasSubstr("no copy atom is named 'cp.async.128.trans'"));
  expect_one_line(heddle_command({"layout", "--atom", "ldmatrix"}), 2,
                  HasSubstr("no copy atom is named 'ldmatrix'"));
  expect_one_line(heddle_command({"layout", "--atom", "ldmatrix.x4", "4:1"}), 2,
                  HasSubstr("takes no expression"));
  expect_one_line(heddle_command({"layout", "--atom", "ldmatrix.x4", "--element", "12"}), 2,
                  HasSubstr("elements of 12 bits"));
}

TEST(LayoutCommand, ListsItsFunctions) {
  const Outcome list = heddle_command({"layout", "--functions"});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr("composition(inner, outer)\n"));
  EXPECT_THAT(list.out, HasSubstr("tile_to_shape(layout, shape[, tuple])\n"));
}

// Seed 003's tile of 64 x 128 x 64, multiplied by m64n128k16.
TEST(LayoutCommand, PrintsMatrixDescriptors) {
  const Outcome a = heddle_command(
      {"layout", "--descriptor", "--type", "f16", "S<3,3,3> o 0 o ((8,8),64):((64,512),1)"});
  EXPECT_EQ(a.out,
            "K-major, a swizzle of 128 bytes\nstart: 0\nLBO: 16 bytes, not used\n"
            "SBO: 1024 bytes\nk-steps of 16 elements: 0, 32, 64, 96\nparts of 64 rows: 0\n"
            "bits: 0x4000004000010000\n")
      << a.err;
  const Outcome b = heddle_command(
      {"layout", "--descriptor", "--rows", "128", "S<3,3,3> o 0 o ((64,4),64):((1,4096),64)"});
  EXPECT_THAT(b.out, StartsWith("MN-major, a swizzle of 128 bytes\nstart: 0\nLBO: 8192 bytes\n"
                                "SBO: 1024 bytes\nk-steps of 16 elements: 0, 2048, 4096, 6144\n"
                                "parts of 128 rows: 0, 16384\n"))
      << b.err;
  expect_one_line(heddle_command({"layout", "--descriptor", "(64,64):(64,1)"}), 2,
                  HasSubstr("the tile is not canonical: element (1, 0) is 64 elements behind"));
  expect_one_line(heddle_command({"layout", "--descriptor", "--type", "f64", "(64,64):(64,1)"}), 2,
                  HasSubstr("--type f64: elements of tiles have 8, 16 or 32 bits"));
  expect_one_line(heddle_command({"layout", "--descriptor"}), 2,
                  HasSubstr("layout needs an expression"));
}

// Boxes of the copy engine: by value, and drawn.
TEST(LayoutCommand, ShowsTheBoxesOfATile) {
  const std::string tile = "S<3,3,3> o 0 o (64,(64,2)):(64,(1,4096))";
  const Outcome text = heddle_command({"layout", "--boxes", tile});
  EXPECT_EQ(text.out,
            "boxes of (64,64), 8192 bytes, a swizzle of 128 bytes\n(0,0): byte 0\n(0,64): byte "
            "8192\n")
      << text.err;
  const Outcome words =
      heddle_command({"layout", "--boxes", "--type", "f32", "(2,3,8):(128,32,1)"});
  EXPECT_EQ(words.out,
            "boxes of (1,1,8), 32 bytes, no swizzle\n(0,0,0): byte 0\n(1,0,0): byte 512\n(0,1,0): "
            "byte 128\n(1,1,0): byte 640\n(0,2,0): byte 256\n(1,2,0): byte 768\n")
      << words.err;
  EXPECT_EQ(heddle_command({"layout", "--boxes", "64:1"}).out,
            "boxes of (64), 128 bytes, no swizzle\n0: byte 0\n");
  const TempDir folder;
  const std::string svg = folder.file("boxes.svg"), html = folder.file("boxes.html");
  ASSERT_EQ(heddle_command({"layout", "--boxes", "--svg", svg, "--html", html, "(8,16):(16,1)"})
                .exit_code,
            0);
  EXPECT_THAT(text_in(svg),
              AllOf(StartsWith("<svg"), HasSubstr("boxes of (8,16):(16,1)"),
                    HasSubstr("coordinate (1,2), index 17, box 0 value 18"), HasSubstr(">B0<")));
  EXPECT_THAT(text_in(html), HasSubstr("boxes of the copy engine"));
  expect_one_line(heddle_command({"layout", "--boxes", "(8,8):(8,2)"}), 2,
                  HasSubstr("(8,8):(8,2) is contiguous along no mode"));
}

TEST(LayoutCommand, ShowsAtomsOfProducts) {
  const Outcome warp = heddle_command({"layout", "--mma", "mma.m16n8k16.f32.f16.f16"});
  EXPECT_EQ(warp.out,
            "mma m16n8k16 f16 x f16 + f32, tile (16,8,16)\n"
            "a: ((4,8),(2,2,2)):((32,1),(16,8,128))\nb: ((4,8),(2,2)):((16,1),(8,64))\n"
            "c: ((4,8),(2,2)):((32,1),(16,8))\n")
      << warp.err;
  const TempDir folder;
  const std::string svg = folder.file("mma.svg"), html = folder.file("mma.html");
  const Outcome list = heddle_command({"layout", "--mmas"});
  const std::vector<std::string> names = absl::StrSplit(list.out, '\n', absl::SkipEmpty());
  EXPECT_GE(names.size(), 20u);
  for (const std::string& name : names) {
    const Outcome drawn = heddle_command(
        {"layout", "--mma", name, "--atoms", "(2,1,1)", "--svg", svg, "--html", html});
    EXPECT_EQ(drawn.exit_code, 0) << drawn.err;
    EXPECT_THAT(text_in(svg), StartsWith("<svg")) << name;
    EXPECT_THAT(text_in(html), HasSubstr("</svg>")) << name;
  }
  expect_one_line(heddle_command({"layout", "--mma", "mma.m16n8k16"}), 2,
                  HasSubstr("no atom of products is named 'mma.m16n8k16'"));
  expect_one_line(heddle_command({"layout", "--mma", "fma.f32", "--atoms", "(2,2)"}), 2,
                  HasSubstr("the layout of atoms is (m,n,k)"));
  expect_one_line(heddle_command({"layout", "--mma", "fma.f32", "4:1"}), 2,
                  HasSubstr("--mma takes no expression"));
}

}  // namespace
}  // namespace heddle::tools
