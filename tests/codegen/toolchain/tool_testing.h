// Stand-ins for external programs: scripts and cubins made by the test itself.
#pragma once

#include <elf.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "heddle/codegen/toolchain/tool_path.h"

// First line of a test that needs one of the tools: says so and skips where it is not installed.
#define HEDDLE_NEEDS_TOOL(tool)                                                        \
  if (const auto needed = ::heddle::codegen::find_tool(::heddle::codegen::Tool::tool); \
      !needed.ok())                                                                    \
  GTEST_SKIP() << "SKIPPED: " << needed.status().message()

namespace heddle::codegen {

// A private folder that goes away with the object.
class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "heddle_test_XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string file(absl::string_view name) const { return absl::StrCat(path_, "/", name); }

 private:
  std::string path_;
};

inline std::string write_file(const std::string& path, absl::string_view contents,
                              mode_t mode = 0600) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary).write(contents.data(), static_cast<long>(contents.size()));
  chmod(path.c_str(), mode);
  return path;
}

inline std::string write_script(const std::string& path, absl::string_view body) {
  return write_file(path, absl::StrCat("#!/bin/sh\n", body, "\n"), 0700);
}

// An assembler that answers --version as ptxas does and then does `body`; $out is the file that
// it has to write.
inline std::string write_fake_ptxas(const std::string& path, absl::string_view body,
                                    absl::string_view version = "13.0.88") {
  const absl::string_view release = version.substr(0, version.rfind('.'));
  return write_script(path, absl::StrCat(R"(if [ "$1" = --version ]; then
  echo 'ptxas: NVIDIA (R) Ptx optimizing assembler'
  echo 'Cuda compilation tools, release )",
                                         release, ", V", version, R"('
  echo 'Build cuda_13.0.r13.0/compiler.36424714_0'
  exit 0
fi
for argument in "$@"; do
  case "$argument" in --output-file=*) out="${argument#--output-file=}" ;; esac
done
)",
                                         body));
}

// A whole ELF file with a code section for each kernel, laid out as ptxas does: program headers
// last.
inline std::string make_cubin(int sm, const std::vector<std::string>& kernels,
                              Elf64_Half machine = 190) {
  std::string names(1, '\0');
  std::vector<Elf64_Shdr> sections(1);
  std::string contents(sizeof(Elf64_Ehdr), '\0');
  const auto add = [&](const std::string& name, Elf64_Word type, const std::string& bytes) {
    Elf64_Shdr section{};
    section.sh_name = static_cast<Elf64_Word>(names.size());
    section.sh_type = type;
    section.sh_offset = contents.size();
    section.sh_size = bytes.size();
    names += name + '\0';
    contents += bytes;
    sections.push_back(section);
  };
  for (const std::string& kernel : kernels)
    add(".text." + kernel, SHT_PROGBITS, "0123456789abcdef");
  add(".nv.shared", SHT_NOBITS, "");
  sections.back().sh_size = uint64_t{1} << 40;  // takes no room in the file
  add(".shstrtab", SHT_STRTAB, "");
  sections.back().sh_size = names.size();
  contents += names;

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_ABIVERSION] = 8;
  header.e_type = ET_EXEC;
  header.e_machine = machine;
  header.e_flags = static_cast<Elf64_Word>(sm) << 8;
  header.e_shoff = contents.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(sections.size());
  header.e_shstrndx = static_cast<Elf64_Half>(sections.size() - 1);
  header.e_phnum = 1;
  for (const Elf64_Shdr& section : sections) {
    contents.append(reinterpret_cast<const char*>(&section), sizeof(section));
  }
  header.e_phoff = contents.size();
  contents.append(sizeof(Elf64_Phdr), '\0');
  std::memcpy(contents.data(), &header, sizeof(header));
  return contents;
}

}  // namespace heddle::codegen
