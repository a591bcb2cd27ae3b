#include "heddle/codegen/toolchain/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "heddle/ir/status.h"

#ifndef EM_CUDA
#define EM_CUDA 190
#endif

namespace heddle::codegen {
namespace {

// Until ABI version 7 the architecture is the lowest byte of the flags, then the one above.
constexpr unsigned char kLastAbiWithLowByte = 7;

template <typename... Parts>
Status damaged(const Parts&... parts) {
  return DataLossError(absl::StrCat(parts...));
}

// Whether [offset, offset + count * size) lies inside `bytes`; `size` is small, so nothing wraps.
bool is_inside(absl::string_view bytes, uint64_t offset, uint64_t count, uint64_t size) {
  return offset <= bytes.size() && (size == 0 || count <= (bytes.size() - offset) / size);
}

// Copied out: nothing says that the file is aligned in memory.
template <typename T>
std::optional<T> read_at(absl::string_view bytes, uint64_t offset) {
  if (!is_inside(bytes, offset, 1, sizeof(T))) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

Status check_header(const Elf64_Ehdr& header) {
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return damaged("it is not an ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return damaged("it is not a 64-bit little-endian ELF file");
  }
  if (header.e_machine != EM_CUDA) {
    return damaged("it is an ELF file for machine ", header.e_machine, ", not for CUDA (", EM_CUDA,
                   ")");
  }
  if (header.e_shoff == 0 || header.e_shentsize != sizeof(Elf64_Shdr)) {
    return damaged("it has no section table");
  }
  return OkStatus();
}

// The table's size and the section of names, which stand in section 0 once they outgrow the header.
struct SectionTable {
  uint64_t offset, count, names;
};

StatusOr<SectionTable> find_sections(absl::string_view bytes, const Elf64_Ehdr& header) {
  const std::optional<Elf64_Shdr> first = read_at<Elf64_Shdr>(bytes, header.e_shoff);
  if (!first.has_value()) return damaged("its section table lies outside the file");
  const SectionTable table = {header.e_shoff, header.e_shnum != 0 ? header.e_shnum : first->sh_size,
                              header.e_shstrndx != SHN_XINDEX ? header.e_shstrndx : first->sh_link};
  if (!is_inside(bytes, table.offset, table.count, sizeof(Elf64_Shdr)) ||
      table.names >= table.count) {
    return damaged("its section table lies outside the file");
  }
  return table;
}

}  // namespace

const CubinSection* Cubin::find(absl::string_view name) const {
  const auto found =
      std::find_if(sections.begin(), sections.end(),
                   [&](const CubinSection& section) { return section.name == name; });
  return found != sections.end() ? &*found : nullptr;
}

bool Cubin::has_entry(absl::string_view kernel) const {
  const CubinSection* code = find(absl::StrCat(".text.", kernel));
  return code != nullptr && code->size > 0;
}

StatusOr<Cubin> read_cubin(absl::string_view bytes) {
  if (bytes.empty()) return damaged("it is empty");
  const std::optional<Elf64_Ehdr> header = read_at<Elf64_Ehdr>(bytes, 0);
  if (!header.has_value()) return damaged("it has only ", bytes.size(), " bytes");
  if (Status status = check_header(*header); !status.ok()) return status;
  // ptxas writes the program headers last, so only they tell that a file was cut at its very end.
  if (!is_inside(bytes, header->e_phoff, header->e_phnum, sizeof(Elf64_Phdr))) {
    return damaged("its program headers lie outside the file");
  }
  const StatusOr<SectionTable> table = find_sections(bytes, *header);
  if (!table.ok()) return table.status();

  const auto section_at = [&](uint64_t index) {
    return *read_at<Elf64_Shdr>(bytes, table->offset + index * sizeof(Elf64_Shdr));
  };
  const Elf64_Shdr names = section_at(table->names);
  if (!is_inside(bytes, names.sh_offset, names.sh_size, 1)) {
    return damaged("its section names lie outside the file");
  }
  const absl::string_view name_table = bytes.substr(names.sh_offset, names.sh_size);

  Cubin cubin;
  const bool low_byte = header->e_ident[EI_ABIVERSION] <= kLastAbiWithLowByte;
  cubin.sm = static_cast<int>((low_byte ? header->e_flags : header->e_flags >> 8) & 0xff);
  for (uint64_t index = 1; index < table->count; ++index) {
    const Elf64_Shdr section = section_at(index);
    const size_t end = name_table.find('\0', section.sh_name);
    if (section.sh_name >= name_table.size() || end == absl::string_view::npos) {
      return damaged("the name of its section ", index, " lies outside the file");
    }
    const absl::string_view name = name_table.substr(section.sh_name, end - section.sh_name);
    if (section.sh_type != SHT_NOBITS && !is_inside(bytes, section.sh_offset, section.sh_size, 1)) {
      return damaged("its section ", name, " lies outside the file");
    }
    cubin.sections.push_back({name, section.sh_size});
  }
  return cubin;
}

}  // namespace heddle::codegen
