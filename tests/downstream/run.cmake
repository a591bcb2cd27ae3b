# Installs a build tree into a fresh prefix, looks at what is there, builds the host program and its
# plug-in against it, and runs both.
#
#   cmake -DBUILD=<build tree> -DWORK=<scratch folder> -DCOMPILER=<c++> -DFLAGS=<flags>
#         -DBUILD_TYPE=<type> -DGENERATOR=<generator> -DTOOLS=<ON if the heddle command is there>
#         -P run.cmake

set(prefix "${WORK}/prefix")

# run(<what it is> <command>...): its output, in `output`; a failure ends the test.
function(run step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${step} failed (${status}):\n${output}")
  endif()
  message("${output}")
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK}")
run("install" "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}")

# Nothing leads back into the build tree, but for debug information.
set(text_only "")
if(NOT BUILD_TYPE STREQUAL "Release")
  set(text_only -I)
endif()
execute_process(COMMAND grep -rlF ${text_only} -e "${BUILD}" "${prefix}" OUTPUT_VARIABLE found)
if(NOT found STREQUAL "")
  message(FATAL_ERROR "these installed files speak of ${BUILD}:\n${found}")
endif()

# Documents, with all that they link to.
set(docs "${prefix}/share/doc/heddle")
foreach(document IN ITEMS README.md CHANGELOG.md LICENSE ir/EXTENDING.md dsl/LANGUAGE.md dsl/FROM_CUDA.md dsl/REFERENCE.md)
  if(NOT EXISTS "${docs}/${document}")
    message(FATAL_ERROR "${docs}/${document} is not installed")
  endif()
endforeach()
run("links of the installed documents" "${CMAKE_CURRENT_LIST_DIR}/../house/links.sh" "${docs}")

run("configure" "${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${WORK}/build" -G "${GENERATOR}"
  "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_FLAGS=${FLAGS}"
  "-DCMAKE_BUILD_TYPE=${BUILD_TYPE}")
run("build" "${CMAKE_COMMAND}" --build "${WORK}/build" --parallel 2)
foreach(program IN ITEMS host library)
  run("${program}" "${WORK}/build/${program}" interp)
  if(NOT output MATCHES "6 15")
    message(FATAL_ERROR "${program} printed no sums:\n${output}")
  endif()
endforeach()
run("filetests" "${WORK}/build/filetests")
if(NOT output MATCHES "Doubled.doubled")
  message(FATAL_ERROR "the program ran no test of its filetest:\n${output}")
endif()

# The installed command, in an environment that names no CUDA: nvdisasm is looked for beside ptxas.
if(TOOLS)
  run("plug-in" "${prefix}/bin/heddle" dump halved --plugin "${WORK}/build/libhalved.so" --arch sm_90a --stage ptx)
  if(NOT output MATCHES "cp.async.bulk")
    message(FATAL_ERROR "no bulk copy in the plug-in's PTX:\n${output}")
  endif()
  run("passes" "${prefix}/bin/heddle" dump row_sum --plugin "${WORK}/build/libpasses.so" --arch sm_90a --stage ir)
  if(NOT output MATCHES "traffic: [^\n]*row_sum[^\n]*loads in a loop [0-9]+ bytes")
    message(FATAL_ERROR "the plug-in's pass did not run:\n${output}")
  endif()
  # Operations from outside, and what their passes make of kernels.
  set(operations --plugin "${WORK}/build/liboperations.so")
  run("sad" "${prefix}/bin/heddle" dump distances ${operations} --arch sm_90a --stage ptx)
  if(NOT output MATCHES "sad.u32")
    message(FATAL_ERROR "no sad in the PTX of the op from outside:\n${output}")
  endif()
  run("all-reduce" "${prefix}/bin/heddle" dump norms ${operations} --set cluster=2 --arch sm_90a --stage ptx)
  if(NOT output MATCHES "shfl.sync" OR NOT output MATCHES "ld.shared::cluster")
    message(FATAL_ERROR "no all-reduce in the PTX:\n${output}")
  endif()
  run("fusion" "${prefix}/bin/heddle" dump activated ${operations} --arch sm_90a --stage ptx)
  string(REGEX MATCHALL "st.global" stores "${output}")
  list(LENGTH stores count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "the epilogue is not fused: ${count} stores:\n${output}")
  endif()
  file(MAKE_DIRECTORY "${WORK}/tools")
  foreach(tool IN ITEMS ptxas nvdisasm)
    file(WRITE "${WORK}/tools/${tool}" "#!/bin/sh\necho '${tool}: NVIDIA (R)'\necho 'release 13.0, V13.0.88'\n")
    file(CHMOD "${WORK}/tools/${tool}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  endforeach()
  run("env" "${CMAKE_COMMAND}" -E env --unset=HEDDLE_NVDISASM "HEDDLE_PTXAS=${WORK}/tools/ptxas"
    "${prefix}/bin/heddle" env)
  if(NOT output MATCHES "nvdisasm[^\n]*${WORK}/tools/nvdisasm")
    message(FATAL_ERROR "nvdisasm is not looked for beside ptxas:\n${output}")
  endif()
endif()
