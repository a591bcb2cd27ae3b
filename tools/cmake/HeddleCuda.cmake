# Where CUDA's header and programs are. Neither is needed to build: without cuda.h the driver is
# left out and says so, and ptxas is looked for again at run time. libcuda is loaded with dlopen and
# never linked.

# tools/setup.sh unpacks NVIDIA's wheels here when no toolkit is installed.
set(HEDDLE_CUDA_HINT_DIR "${PROJECT_SOURCE_DIR}/build/cuda" CACHE PATH
  "A CUDA tree that programs of this build tree look into before the usual places")

file(GLOB HEDDLE_CUDA_ROOTS LIST_DIRECTORIES true "/usr/local/cuda-*")
list(SORT HEDDLE_CUDA_ROOTS COMPARE NATURAL ORDER DESCENDING)
if(HEDDLE_CUDA_INCLUDE_DIR AND NOT EXISTS "${HEDDLE_CUDA_INCLUDE_DIR}/cuda.h")
  unset(HEDDLE_CUDA_INCLUDE_DIR CACHE)  # it was there when this build tree was made
endif()
find_path(HEDDLE_CUDA_INCLUDE_DIR cuda.h
  HINTS "$ENV{CUDA_HOME}" "$ENV{CUDA_PATH}" "${HEDDLE_CUDA_HINT_DIR}" /usr/local/cuda ${HEDDLE_CUDA_ROOTS}
  PATH_SUFFIXES include
  DOC "The folder that holds cuda.h")
# NVTX, headers alone: without them there are no ranges for profilers (runtime/observe/ranges.h).
if(HEDDLE_NVTX_INCLUDE_DIR AND NOT EXISTS "${HEDDLE_NVTX_INCLUDE_DIR}/nvtx3/nvToolsExt.h")
  unset(HEDDLE_NVTX_INCLUDE_DIR CACHE)
endif()
find_path(HEDDLE_NVTX_INCLUDE_DIR nvtx3/nvToolsExt.h
  HINTS "${HEDDLE_CUDA_INCLUDE_DIR}" "$ENV{CUDA_HOME}" "$ENV{CUDA_PATH}" "${HEDDLE_CUDA_HINT_DIR}" /usr/local/cuda ${HEDDLE_CUDA_ROOTS}
  PATH_SUFFIXES include
  DOC "The folder that holds nvtx3/nvToolsExt.h")
unset(HEDDLE_CUDA_ROOTS)
if(PROJECT_IS_TOP_LEVEL)
  if(HEDDLE_CUDA_INCLUDE_DIR)
    message(STATUS "cuda.h: ${HEDDLE_CUDA_INCLUDE_DIR}")
  else()
    message(STATUS "cuda.h: not found; cuda devices are left out (tools/setup.sh can fetch it)")
  endif()
endif()

# Lets the programs of the current folder find ptxas in HEDDLE_CUDA_HINT_DIR: they look into `cuda`
# beside themselves. A link, and no path in the programs, which are also installed elsewhere.
function(heddle_link_cuda)
  file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
  file(CREATE_LINK "${HEDDLE_CUDA_HINT_DIR}" "${CMAKE_CURRENT_BINARY_DIR}/cuda" SYMBOLIC)
endfunction()

# Gives a target cuda.h, with HEDDLE_HAVE_CUDA_H defined when there is one; and likewise NVTX, with HEDDLE_HAVE_NVTX.
function(heddle_use_cuda target)
  if(HEDDLE_CUDA_INCLUDE_DIR)
    target_include_directories(${target} SYSTEM PRIVATE "${HEDDLE_CUDA_INCLUDE_DIR}")
    target_compile_definitions(${target} PRIVATE HEDDLE_HAVE_CUDA_H=1)
  endif()
  if(HEDDLE_NVTX_INCLUDE_DIR)
    target_include_directories(${target} SYSTEM PRIVATE "${HEDDLE_NVTX_INCLUDE_DIR}")
    target_compile_definitions(${target} PRIVATE HEDDLE_HAVE_NVTX=1)
  endif()
endfunction()
