# One static library a folder.

set(HEDDLE_FOLDERS dsl ir codegen runtime kernels)

# Lets sources say #include "heddle/ir/type.h" while files stay in their folders.
function(heddle_link_headers)
  set(root "${PROJECT_BINARY_DIR}/include/heddle")
  file(MAKE_DIRECTORY "${root}")
  foreach(folder IN LISTS HEDDLE_FOLDERS)
    file(CREATE_LINK "${PROJECT_SOURCE_DIR}/${folder}" "${root}/${folder}" SYMBOLIC)
  endforeach()
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/runtime/heddle.h" "${root}/heddle.h" SYMBOLIC)
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/runtime/testing/testing.h" "${root}/testing.h" SYMBOLIC)
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/runtime/c/heddle_c.h" "${root}/heddle_c.h" SYMBOLIC)
endfunction()

# heddle_library(<folder> [CUDA] [WITHOUT <folder>...] [DEPENDS <library>...])
#
# Makes heddle_<folder>, known as heddle::<folder> here and when installed, of every .cc below the
# current folder, but for those below one that is a library of its own. A folder that holds headers
# alone becomes an INTERFACE library. CUDA gives it cuda.h.
function(heddle_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "CUDA" "" "WITHOUT;DEPENDS")
  set(target heddle_${folder})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cc")
  foreach(other IN LISTS arg_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/${other}/")
  endforeach()
  if(sources)
    set(scope PUBLIC)
    add_library(${target} STATIC ${sources})
    if(arg_CUDA)
      heddle_use_cuda(${target})
    endif()
    # JSON is read and written inside .cc files only; it is header-only, so nobody who links us needs it.
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)
    heddle_precompile(${target} LIBRARY)
  else()
    set(scope INTERFACE)
    add_library(${target} INTERFACE)
  endif()
  add_library(heddle::${folder} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${folder})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(${target} ${scope}
    "$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_link_libraries(${target} ${scope}
    ${arg_DEPENDS} ${HEDDLE_ABSL_LIBRARIES} Threads::Threads ${CMAKE_DL_LIBS})
endfunction()
