#include "heddle/runtime/recall/code_identity.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace heddle::runtime {
namespace {

// The build ID in the notes of a segment; empty: none.
absl::string_view build_id_in(const char* notes, size_t bytes) {
  constexpr char kOwner[] = "GNU";
  const auto padded = [](size_t size) { return (size + 3) / 4 * 4; };
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof(note));
    const size_t name_at = sizeof(note), id_at = name_at + padded(note.n_namesz);
    const size_t size = id_at + padded(note.n_descsz);
    if (size > bytes) return {};
    const bool is_build_id = note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(kOwner) &&
                             std::memcmp(notes + name_at, kOwner, sizeof(kOwner)) == 0;
    if (is_build_id) return {notes + id_at, note.n_descsz};
    notes += size;
    bytes -= size;
  }
  return {};
}

struct Search {
  uintptr_t address;
  std::optional<std::string> found;
};

int look_into(dl_phdr_info* image, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  const auto first = image->dlpi_phdr, last = image->dlpi_phdr + image->dlpi_phnum;
  const auto address_of = [&](const ElfW(Phdr) & part) {
    return static_cast<uintptr_t>(image->dlpi_addr + part.p_vaddr);
  };
  const bool is_here = std::any_of(first, last, [&](const ElfW(Phdr) & part) {
    return part.p_type == PT_LOAD && search.address - address_of(part) < part.p_memsz;
  });
  if (!is_here) return 0;
  for (auto part = first; part != last; ++part) {
    if (part->p_type != PT_NOTE) continue;
    const absl::string_view id =
        build_id_in(reinterpret_cast<const char*>(address_of(*part)), part->p_memsz);
    if (id.empty()) continue;
    search.found =
        absl::StrCat(absl::BytesToHexString(id), "+", absl::Hex(search.address - image->dlpi_addr));
    break;
  }
  return 1;
}

}  // namespace

std::optional<std::string> code_identity(const void* address) {
  Search search{reinterpret_cast<uintptr_t>(address), std::nullopt};
  dl_iterate_phdr(&look_into, &search);
  return search.found;
}

}  // namespace heddle::runtime
