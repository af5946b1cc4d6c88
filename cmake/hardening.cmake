# lockstep_harden(<target>): what a compiler can do against errors in memory, for a library or a program that is shipped. Each property is used
# where compiler, C library and architecture have it, and LOCKSTEP_HARDENED lists those that are; tests/hardening reads the built files for them.
#
# Left out in debug builds and under sanitizers, which find more and replace the same functions; and, like all our flags, in a project that embeds
# Lockstep. Flags of a distribution may be there as well: ours come behind them and say the same or more.

set(LOCKSTEP_HARDENED "")
function(lockstep_harden target)
endfunction()
if(NOT LOCKSTEP_HARDENING OR LOCKSTEP_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  return()
endif()

include(CheckCXXCompilerFlag)
include(CheckCXXSourceCompiles)
include(CheckLinkerFlag)
include(CheckPIESupported)
set(LOCKSTEP_HARDENING_OPTIONS "")
set(LOCKSTEP_HARDENING_LINK_OPTIONS "")

# Level 3 also checks objects whose size is known only at run time. The C library says what it supports: it needs optimisation as well, so it is
# asked with the flags of this build.
set(CMAKE_TRY_COMPILE_CONFIGURATION "${CMAKE_BUILD_TYPE}")
foreach(level IN ITEMS 3 2)
  set(CMAKE_REQUIRED_FLAGS "-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level}")
  check_cxx_source_compiles("#include <cstdlib>\n#if __USE_FORTIFY_LEVEL < ${level}\n#error\n#endif\nint main() {}" LOCKSTEP_HAS_FORTIFY_${level})
  if(LOCKSTEP_HAS_FORTIFY_${level})
    list(APPEND LOCKSTEP_HARDENING_OPTIONS -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level})
    list(APPEND LOCKSTEP_HARDENED fortify)
    break()
  endif()
endforeach()
unset(CMAKE_REQUIRED_FLAGS)
unset(CMAKE_TRY_COMPILE_CONFIGURATION)

foreach(flag IN ITEMS stack-protector-strong stack-clash-protection cf-protection)
  string(MAKE_C_IDENTIFIER "LOCKSTEP_HAS_${flag}" known)
  check_cxx_compiler_flag(-f${flag} ${known})
  if(${known})
    list(APPEND LOCKSTEP_HARDENING_OPTIONS -f${flag})
    list(APPEND LOCKSTEP_HARDENED ${flag})
  endif()
endforeach()

check_linker_flag(CXX -Wl,-z,relro,-z,now LOCKSTEP_HAS_relro)
if(LOCKSTEP_HAS_relro)
  list(APPEND LOCKSTEP_HARDENING_LINK_OPTIONS -Wl,-z,relro,-z,now)
  list(APPEND LOCKSTEP_HARDENED relro)
endif()

check_pie_supported(LANGUAGES CXX)
if(CMAKE_CXX_LINK_PIE_SUPPORTED)
  list(APPEND LOCKSTEP_HARDENED pie)
endif()

function(lockstep_harden target)
  target_compile_options(${target} PRIVATE ${LOCKSTEP_HARDENING_OPTIONS})
  target_link_options(${target} PRIVATE ${LOCKSTEP_HARDENING_LINK_OPTIONS})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()
