# Installs this build into a scratch prefix and builds main.cpp against that copy twice: as a CMake project, and with
# nothing but the compiler and pkg-config. Variables: BUILD_DIR, SOURCE_DIR, LIBDIR, CXX, GENERATOR.

set(scratch "${BUILD_DIR}/consumer")
set(prefix "${scratch}/prefix")
file(REMOVE_RECURSE "${scratch}")

function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${scratch}" RESULT_VARIABLE result OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}\n-> ${result}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect_ok program)
  run("${program}")
  if(NOT output STREQUAL "ok\n")
    message(FATAL_ERROR "${program} printed: ${output}")
  endif()
endfunction()

file(MAKE_DIRECTORY "${scratch}")
run("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${prefix}")

run("${CMAKE_COMMAND}" -S "${SOURCE_DIR}" -B "${scratch}/build" -G "${GENERATOR}"
  "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_BUILD_TYPE=Debug")
run("${CMAKE_COMMAND}" --build "${scratch}/build")
expect_ok("${scratch}/build/consumer")
if(EXISTS "${prefix}/${LIBDIR}/cmake/lockstep/lockstep-metrics-targets.cmake")
  expect_ok("${scratch}/build/scraper")
endif()

set(ENV{PKG_CONFIG_PATH} "${prefix}/${LIBDIR}/pkgconfig")
set(ENV{LD_LIBRARY_PATH} "${prefix}/${LIBDIR}")
run(pkg-config --cflags --libs --static lockstep)
string(STRIP "${output}" flags)
separate_arguments(flags UNIX_COMMAND "${flags}")
run("${CXX}" -std=c++20 "${SOURCE_DIR}/main.cpp" -o "${scratch}/by_pkg_config" ${flags})
expect_ok("${scratch}/by_pkg_config")
