# The reference of the C++ interface, where there are Doxygen and Python: the target heddle_reference writes it
# to doc/html in the build tree, and installing brings it along once it was built. Tests ask
# HEDDLE_HAS_REFERENCE whether it can be made.
find_package(Doxygen QUIET)
find_package(Python3 QUIET COMPONENTS Interpreter)
if(DOXYGEN_FOUND AND Python3_FOUND)
  set(HEDDLE_HAS_REFERENCE ON)
  add_custom_target(heddle_reference
    COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tools/doc/reference.py"
      "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/doc"
      --version "${PROJECT_VERSION}" --doxygen "${DOXYGEN_EXECUTABLE}"
    VERBATIM)
  install(DIRECTORY "${PROJECT_BINARY_DIR}/doc/html" DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/doc/heddle" OPTIONAL)
endif()
