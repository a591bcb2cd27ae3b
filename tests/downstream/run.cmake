# Installs a build tree into a fresh prefix, builds the host program against it, and runs that.
#
#   cmake -DBUILD=<build tree> -DWORK=<scratch folder> -DCOMPILER=<c++> -DFLAGS=<flags>
#         -DBUILD_TYPE=<type> -DGENERATOR=<generator> -P run.cmake

file(REMOVE_RECURSE "${WORK}")
foreach(step IN ITEMS install configure build run)
  if(step STREQUAL "install")
    set(command "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/prefix")
  elseif(step STREQUAL "configure")
    set(command "${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${WORK}/build" -G "${GENERATOR}"
      "-DCMAKE_PREFIX_PATH=${WORK}/prefix" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_FLAGS=${FLAGS}"
      "-DCMAKE_BUILD_TYPE=${BUILD_TYPE}")
  elseif(step STREQUAL "build")
    set(command "${CMAKE_COMMAND}" --build "${WORK}/build" --parallel 2)
  else()
    set(command "${WORK}/build/host")
  endif()
  execute_process(COMMAND ${command} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${step} failed (${status}):\n${output}")
  endif()
endforeach()
message("${output}")
