# src/scripts/*.lua -> "scripts/all.hpp" and its source, checked on the way (embed_scripts.cmake).

set(LOCKSTEP_GENERATED_DIR "${CMAKE_CURRENT_BINARY_DIR}/generated")
set(LOCKSTEP_SCRIPT_SOURCES "${LOCKSTEP_GENERATED_DIR}/scripts/all.cpp")

file(GLOB lua CONFIGURE_DEPENDS
  "${CMAKE_CURRENT_SOURCE_DIR}/src/scripts/*.lua" "${CMAKE_CURRENT_SOURCE_DIR}/src/scripts/include/*.lua")
# The header is a by-product: it keeps its time stamp while only texts change, and then nobody who includes it is recompiled.
add_custom_command(
  OUTPUT ${LOCKSTEP_SCRIPT_SOURCES}
  BYPRODUCTS "${LOCKSTEP_GENERATED_DIR}/scripts/all.hpp"
  COMMAND "${CMAKE_COMMAND}"
    "-DSCRIPTS_DIR=${CMAKE_CURRENT_SOURCE_DIR}/src/scripts"
    "-DOUT_DIR=${LOCKSTEP_GENERATED_DIR}"
    -P "${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed_scripts.cmake"
  DEPENDS ${lua} "${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed_scripts.cmake"
  COMMENT "Checking and embedding the Lua scripts"
  VERBATIM
)
add_custom_target(lockstep_scripts DEPENDS ${LOCKSTEP_SCRIPT_SOURCES})
