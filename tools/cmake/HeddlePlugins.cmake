# heddle_loads_plugins(<program>)
#
# Lets a program that offers the heddle command (heddle/tools/command_line.h) load plug-ins: it holds
# all of Heddle, the parts too that its own kernels leave out, and exports them. Plug-ins then share
# the program's Heddle, and need to hold nothing of it (heddle::plugin).
function(heddle_loads_plugins program)
  set(libraries heddle::ir heddle::codegen heddle::dsl heddle::runtime)
  if(TARGET heddle_ir)  # Heddle's own build tree
    list(TRANSFORM libraries REPLACE "::" "_")
  endif()
  list(JOIN libraries "," libraries)
  set_target_properties(${program} PROPERTIES
    ENABLE_EXPORTS ON LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,${libraries}")
endfunction()
