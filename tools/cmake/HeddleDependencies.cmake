# Libraries that Heddle stands on. heddleConfig.cmake.in repeats those that a host program needs.

find_package(Threads REQUIRED)
find_package(absl REQUIRED)

# Abseil as the library targets use it; headers expose status, strings and containers.
set(HEDDLE_ABSL_LIBRARIES
  absl::algorithm_container absl::bits absl::btree absl::cleanup absl::core_headers
  absl::flat_hash_map absl::flat_hash_set absl::function_ref absl::hash absl::inlined_vector
  absl::int128 absl::span absl::stacktrace absl::status absl::statusor absl::str_format
  absl::strings absl::symbolize absl::time)

# Points every imported Abseil target at its static archive. Debian's package carries both forms but
# its CMake files name the shared one only.
function(heddle_use_static_abseil)
  get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)
  set(missing "")
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(NOT target MATCHES "^absl::" OR NOT type STREQUAL "SHARED_LIBRARY")
      continue()
    endif()
    get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
    foreach(configuration IN LISTS configurations)
      get_target_property(shared ${target} IMPORTED_LOCATION_${configuration})
      string(REGEX REPLACE "\\.so(\\.[0-9.]+)?$" ".a" archive "${shared}")
      if(EXISTS "${archive}")
        set_target_properties(${target} PROPERTIES IMPORTED_LOCATION_${configuration} "${archive}")
      else()
        list(APPEND missing "${archive}")
      endif()
    endforeach()
  endforeach()
  if(missing)
    message(FATAL_ERROR "HEDDLE_STATIC_ABSEIL=ON, but Abseil's static archives are missing: ${missing}")
  endif()
endfunction()

if(HEDDLE_STATIC_ABSEIL)
  heddle_use_static_abseil()
endif()

find_package(nlohmann_json 3.11 REQUIRED)
find_path(HEDDLE_XXHASH_INCLUDE_DIR xxhash.h REQUIRED)  # hashes; the header alone
if(HEDDLE_BUILD_TOOLS)
  find_package(CLI11 2.1 REQUIRED)
  find_package(benchmark 1.7 REQUIRED)
  find_path(HEDDLE_DTL_INCLUDE_DIR dtl/dtl.hpp REQUIRED)  # differences of texts
endif()
if(HEDDLE_BUILD_TESTS)
  find_package(GTest 1.12 REQUIRED)
  find_library(HEDDLE_MPFR_LIBRARY mpfr REQUIRED)  # exact floats, for the fuzzer's oracle
endif()
