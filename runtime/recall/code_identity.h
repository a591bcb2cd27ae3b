// Which code of which build lies at an address: the same in every process that runs that build, and in no other, as long as the linker
// makes the build ID of the contents (--build-id=sha1, as it does by itself) and nobody gives it one.
#pragma once

#include <optional>
#include <string>

namespace heddle::runtime {

// The build ID of the program or library that an address is part of (the note NT_GNU_BUILD_ID, which linkers make of its contents), and
// how far behind its beginning the address is. nullopt where the address is in no image, or in one that was linked without build ID.
std::optional<std::string> code_identity(const void* address);

}  // namespace heddle::runtime
