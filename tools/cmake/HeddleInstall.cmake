# heddle_install(<target>...): libraries, headers, documents and the package files of
# find_package(heddle).
include(CMakePackageConfigHelpers)

function(heddle_install)
  set(package "${CMAKE_INSTALL_LIBDIR}/cmake/heddle")
  install(TARGETS ${ARGN} EXPORT heddleTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(EXPORT heddleTargets NAMESPACE heddle:: DESTINATION "${package}")

  foreach(folder IN LISTS HEDDLE_FOLDERS)
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}/"
      DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/heddle/${folder}"
      FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "*_internal.h" EXCLUDE)
  endforeach()
  # What users include stands one level up; runtime/ keeps it for the source tree alone.
  install(FILES "${PROJECT_SOURCE_DIR}/runtime/heddle.h" "${PROJECT_SOURCE_DIR}/runtime/testing/testing.h"
    "${PROJECT_SOURCE_DIR}/runtime/c/heddle_c.h"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/heddle" OPTIONAL)

  configure_package_config_file(
    "${PROJECT_SOURCE_DIR}/tools/cmake/heddleConfig.cmake.in"
    "${PROJECT_BINARY_DIR}/heddleConfig.cmake" INSTALL_DESTINATION "${package}")
  write_basic_package_version_file(
    "${PROJECT_BINARY_DIR}/heddleConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
  install(FILES
    "${PROJECT_BINARY_DIR}/heddleConfig.cmake" "${PROJECT_BINARY_DIR}/heddleConfigVersion.cmake"
    "${PROJECT_SOURCE_DIR}/tools/cmake/HeddlePlugins.cmake"
    DESTINATION "${package}")

  # Documents lie as they do here, so that their links and pictures hold.
  set(documents README.md CHANGELOG.md ARCHITECTURE.md CONTRIBUTING.md LICENSE tools/bench/FIGURES.md
    tools/bench/results/gemm.svg tools/bench/results/bench.svg)
  foreach(folder IN LISTS HEDDLE_FOLDERS)
    file(GLOB_RECURSE found RELATIVE "${PROJECT_SOURCE_DIR}"
      "${PROJECT_SOURCE_DIR}/${folder}/*.md" "${PROJECT_SOURCE_DIR}/${folder}/*.svg")
    list(APPEND documents ${found})
  endforeach()
  foreach(document IN LISTS documents)
    cmake_path(GET document PARENT_PATH folder)
    install(FILES "${PROJECT_SOURCE_DIR}/${document}" DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/doc/heddle/${folder}")
  endforeach()
endfunction()
