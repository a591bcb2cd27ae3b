#include "heddle/codegen/toolchain/cubin.h"

#include <elf.h>

#include <cstring>
#include <string>

#include "codegen/toolchain/tool_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {
namespace {

std::string problem(absl::string_view bytes) {
  const Status status = read_cubin(bytes).status();
  EXPECT_TRUE(status.ok() || IsDataLoss(status)) << status;
  return std::string(status.message());
}

// The header's field at `offset`, overwritten.
template <typename T>
std::string with_field(std::string bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
  return bytes;
}

TEST(Cubin, ReadsArchitectureAndSections) {
  const std::string bytes = make_cubin(90, {"first", "second$1"});
  const StatusOr<Cubin> cubin = read_cubin(bytes);
  ASSERT_TRUE(cubin.ok()) << cubin.status();
  EXPECT_EQ(cubin->sm, 90);
  EXPECT_TRUE(cubin->has_entry("first"));
  EXPECT_TRUE(cubin->has_entry("second$1"));
  EXPECT_FALSE(cubin->has_entry("second"));
  ASSERT_NE(cubin->find(".text.first"), nullptr);
  EXPECT_EQ(cubin->find(".text.first")->size, 16);
  EXPECT_EQ(cubin->find(".data"), nullptr);
}

TEST(Cubin, KnowsTheOlderPlaceOfTheArchitecture) {
  // As ptxas 12.4 writes sm_80: the lowest byte of the flags, ABI version 7.
  std::string bytes = with_field<unsigned char>(make_cubin(0, {"k"}), EI_ABIVERSION, 7);
  bytes = with_field<Elf64_Word>(bytes, offsetof(Elf64_Ehdr, e_flags), 0x004b0550);
  EXPECT_EQ(read_cubin(bytes)->sm, 80);
  // And as ptxas 12.8 writes sm_100a.
  bytes = with_field<unsigned char>(bytes, EI_ABIVERSION, 8);
  bytes = with_field<Elf64_Word>(bytes, offsetof(Elf64_Ehdr, e_flags), 0x0600640a);
  EXPECT_EQ(read_cubin(bytes)->sm, 100);
}

TEST(Cubin, EveryTruncationIsFound) {
  const std::string bytes = make_cubin(90, {"kernel"});
  ASSERT_EQ(problem(bytes), "");
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(problem(bytes.substr(0, size)), "") << size << " of " << bytes.size();
  }
  EXPECT_EQ(problem(""), "it is empty");
  EXPECT_EQ(problem(bytes.substr(0, 63)), "it has only 63 bytes");
}

TEST(Cubin, DamageIsSaidByName) {
  const std::string bytes = make_cubin(90, {"kernel"});
  EXPECT_EQ(problem(with_field<char>(bytes, 0, 'x')), "it is not an ELF file");
  EXPECT_EQ(problem(with_field<char>(bytes, EI_CLASS, ELFCLASS32)),
            "it is not a 64-bit little-endian ELF file");
  EXPECT_EQ(problem(make_cubin(90, {"kernel"}, EM_X86_64)),
            "it is an ELF file for machine 62, not for CUDA (190)");
  EXPECT_EQ(problem(with_field<Elf64_Off>(bytes, offsetof(Elf64_Ehdr, e_shoff), 0)),
            "it has no section table");
  EXPECT_EQ(problem(with_field<Elf64_Off>(bytes, offsetof(Elf64_Ehdr, e_shoff), ~Elf64_Off{0})),
            "its section table lies outside the file");
  EXPECT_EQ(problem(with_field<Elf64_Half>(bytes, offsetof(Elf64_Ehdr, e_shnum), 0xffff)),
            "its section table lies outside the file");
  EXPECT_EQ(problem(with_field<Elf64_Half>(bytes, offsetof(Elf64_Ehdr, e_shstrndx), 100)),
            "its section table lies outside the file");
  EXPECT_EQ(problem(with_field<Elf64_Off>(bytes, offsetof(Elf64_Ehdr, e_phoff), bytes.size())),
            "its program headers lie outside the file");
}

TEST(Cubin, DamagedSectionsAreSaidByName) {
  const std::string bytes = make_cubin(90, {"kernel"});
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const auto in_section = [&](size_t index, size_t field) {
    return header.e_shoff + index * sizeof(Elf64_Shdr) + field;
  };
  EXPECT_EQ(problem(with_field<Elf64_Xword>(bytes, in_section(1, offsetof(Elf64_Shdr, sh_size)),
                                            ~Elf64_Xword{0})),
            "its section .text.kernel lies outside the file");
  EXPECT_EQ(problem(with_field<Elf64_Off>(bytes, in_section(1, offsetof(Elf64_Shdr, sh_offset)),
                                          bytes.size() + 1)),
            "its section .text.kernel lies outside the file");
  EXPECT_EQ(
      problem(with_field<Elf64_Word>(bytes, in_section(1, offsetof(Elf64_Shdr, sh_name)), 10'000)),
      "the name of its section 1 lies outside the file");
  EXPECT_EQ(
      problem(with_field<Elf64_Off>(
          bytes, in_section(header.e_shstrndx, offsetof(Elf64_Shdr, sh_offset)), ~Elf64_Off{0})),
      "its section names lie outside the file");
}

TEST(Cubin, SectionCountsBeyondTheHeaderAreRead) {
  // ELF keeps both numbers in section 0 once they do not fit 16 bits.
  std::string bytes = make_cubin(90, {"kernel"});
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  bytes = with_field<Elf64_Xword>(bytes, header.e_shoff + offsetof(Elf64_Shdr, sh_size),
                                  header.e_shnum);
  bytes = with_field<Elf64_Word>(bytes, header.e_shoff + offsetof(Elf64_Shdr, sh_link),
                                 header.e_shstrndx);
  bytes = with_field<Elf64_Half>(bytes, offsetof(Elf64_Ehdr, e_shnum), 0);
  bytes = with_field<Elf64_Half>(bytes, offsetof(Elf64_Ehdr, e_shstrndx), SHN_XINDEX);
  ASSERT_EQ(problem(bytes), "");
  EXPECT_TRUE(read_cubin(bytes)->has_entry("kernel"));
  EXPECT_EQ(problem(with_field<Elf64_Xword>(bytes, header.e_shoff + offsetof(Elf64_Shdr, sh_size),
                                            Elf64_Xword{1} << 60)),
            "its section table lies outside the file");
}

TEST(Cubin, NoFlippedBitDoesHarm) {
  const std::string bytes = make_cubin(90, {"kernel"});
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const StatusOr<Cubin> cubin = read_cubin(flipped);  // sanitizers watch
    if (!cubin.ok()) continue;
    for (const CubinSection& section : cubin->sections) {
      EXPECT_GE(section.name.data(), flipped.data());
      EXPECT_LE(section.name.data() + section.name.size(), flipped.data() + flipped.size());
    }
  }
}

TEST(Cubin, AnEntryWithoutCodeIsNone) {
  std::string bytes = make_cubin(90, {"kernel"});
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  bytes = with_field<Elf64_Xword>(
      bytes, header.e_shoff + sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size), 0);
  EXPECT_FALSE(read_cubin(bytes)->has_entry("kernel"));
}

}  // namespace
}  // namespace heddle::codegen
