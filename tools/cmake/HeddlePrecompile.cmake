# Precompiled headers. They halve the time of a build, and hide an #include that a file lacks: presets
# of debug builds do without them for libraries.

if(PROJECT_IS_TOP_LEVEL AND NOT HEDDLE_PRECOMPILE STREQUAL "NONE")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC takes precompiled headers of the system for ours, and then warns of what is inlined from them.
    set(HEDDLE_PRECOMPILE_OPTIONS -Wno-array-bounds -Wno-stringop-overflow)
  else()
    # Templates are instantiated once, in the header.
    set(HEDDLE_PRECOMPILE_OPTIONS -fpch-instantiate-templates)
  endif()
  # The standard library's and Abseil's headers that most files include.
  set(HEDDLE_PRECOMPILED_HEADERS
    <algorithm> <array> <cstdint> <functional> <map> <memory> <optional> <string> <utility> <vector>
    <absl/algorithm/container.h> <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h>
    <absl/container/inlined_vector.h> <absl/strings/numbers.h> <absl/strings/str_cat.h>
    <absl/strings/str_format.h> <absl/strings/str_join.h> <absl/strings/str_split.h> <absl/types/span.h>)
endif()

# heddle_precompile(<target> PROGRAM|LIBRARY <header>...): builds the target with these headers and
# the usual ones precompiled, if HEDDLE_PRECOMPILE says so.
# heddle_precompile(<target> PROGRAM AS <other target>): with that one's, which is built with the same flags.
function(heddle_precompile target kind)
  if(NOT HEDDLE_PRECOMPILED_HEADERS OR (kind STREQUAL "LIBRARY" AND NOT HEDDLE_PRECOMPILE STREQUAL "ALL"))
    return()
  endif()
  target_compile_options(${target} PRIVATE ${HEDDLE_PRECOMPILE_OPTIONS})
  if(ARGV2 STREQUAL "AS")
    target_precompile_headers(${target} REUSE_FROM ${ARGV3})
  else()
    target_precompile_headers(${target} PRIVATE ${HEDDLE_PRECOMPILED_HEADERS} ${ARGN})
  endif()
endfunction()
