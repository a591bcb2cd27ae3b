# Compiler and linker settings of every target in this project, and of none that embeds it: they are
# directory-scoped, so they end where this project's folder ends.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# The static libraries also end up in plug-ins.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# CMake would scan every C++20 source for modules where it can; there are none.
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)

# -O2 rather than CMake's -O3 for Release: only the interpreter's lane loops gain from -O3, and they
# ask for it themselves (ir/CMakeLists.txt). HEDDLE_CHECK does not depend on NDEBUG.
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
  # Line numbers in reports, fast enough to run every test.
  set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1 -fno-omit-frame-pointer")
endif()

find_program(HEDDLE_CCACHE ccache)
if(HEDDLE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${HEDDLE_CCACHE}")
endif()

# The constant folder and the interpreter promise the same rounding as the GPU: nothing is fused
# unless the kernel says so.
add_compile_options(-ffp-contract=off)

# Table-shaped code relies on complete switches, so a missing enumerator is always an error.
add_compile_options(
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi
  -Wimplicit-fallthrough -Wvla -Werror=switch -Werror=return-type)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wduplicated-cond -Wlogical-op -Wredundant-move)
  # False alarms when an absl::InlinedVector is moved; clang and the sanitizers watch instead.
  add_compile_options(-Wno-maybe-uninitialized)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC bug 105651: false alarms inside std::string's operator+.
    add_compile_options(-Wno-restrict)
  endif()
else()
  add_compile_options(-Wloop-analysis -Wunreachable-code-aggressive -Wthread-safety)
endif()
if(HEDDLE_WERROR)
  add_compile_options(-Werror)
endif()

if(HEDDLE_SANITIZE)
  add_compile_options(-fsanitize=${HEDDLE_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${HEDDLE_SANITIZE})
  # UndefinedBehaviorSanitizer keeps data for each check, also for those of inline functions whose other copies the
  # linker drops: two thirds of a program. With sections the linker drops the data too, and without -pie nothing is
  # relocated at the start, which is most of the time of a short test: 0.07 s instead of 0.35.
  add_compile_options(-ffunction-sections -fdata-sections)
  add_link_options(-Wl,--gc-sections "$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>")
endif()
add_compile_options($<$<CONFIG:Debug>:-D_GLIBCXX_ASSERTIONS>)

# Headers are read through links in the build tree, which is nobody's business after installation.
add_compile_options("-fmacro-prefix-map=${PROJECT_BINARY_DIR}/include/=")

# A program loads only the shared libraries that it uses: Abseil has dozens.
add_link_options(-Wl,--as-needed)
if(HEDDLE_STATIC_ABSEIL)
  add_link_options(-static-libgcc -static-libstdc++)
endif()
