# LOCKSTEP_VERSION: the version as "1.2.3", from the public header, where it is defined.
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH header)
string(APPEND header "/include/lockstep/version.hpp")
file(STRINGS "${header}" LOCKSTEP_VERSION REGEX "^#define LOCKSTEP_VERSION_(MAJOR|MINOR|PATCH) [0-9]+$")
list(TRANSFORM LOCKSTEP_VERSION REPLACE "^.* " "")
list(JOIN LOCKSTEP_VERSION "." LOCKSTEP_VERSION)
