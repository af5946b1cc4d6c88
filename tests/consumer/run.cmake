# Installs this build into a scratch prefix and uses that copy as a user would: as a CMake project without Boost, as one with it, and
# with nothing but the compiler and pkg-config. Variables: BUILD_DIR, SOURCE_DIR, LIBDIR, CXX, GENERATOR, SHARED, MAX_TEXT (bytes, or
# empty: not checked).

set(scratch "${BUILD_DIR}/consumer")
set(prefix "${scratch}/prefix")
file(REMOVE_RECURSE "${scratch}")

# Sets `output`.
function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${scratch}" RESULT_VARIABLE result OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}\n-> ${result}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect_ok)
  run(${ARGN})
  if(NOT output STREQUAL "ok\n")
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command} printed: ${output}")
  endif()
endfunction()

function(expect_small program)
  if(MAX_TEXT)
    run(size "${program}")
    string(REGEX MATCH "\n *([0-9]+)" line "${output}")
    if(NOT CMAKE_MATCH_1 LESS_EQUAL MAX_TEXT)
      message(FATAL_ERROR "${program} has ${CMAKE_MATCH_1} bytes of text, more than ${MAX_TEXT}: see \"Binary size\" in docs/building.md")
    endif()
    message(STATUS "${program}: ${CMAKE_MATCH_1} bytes of text")
  endif()
endfunction()

# What Debian's packages are compiled with.
set(flags -O2 -g -fstack-protector-strong -Wformat -Werror=format-security -D_FORTIFY_SOURCE=2)
list(JOIN flags " " flags_text)
set(configure "${CMAKE_COMMAND}" -S "${SOURCE_DIR}" -G "${GENERATOR}" "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${CXX}"
  -DCMAKE_BUILD_TYPE=None "-DCMAKE_CXX_FLAGS=${flags_text}" -DCMAKE_EXE_LINKER_FLAGS=-Wl,-z,relro)
set(without_boost -DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON)

file(MAKE_DIRECTORY "${scratch}")
run("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${prefix}")
foreach(file IN ITEMS LICENSE THIRD_PARTY_NOTICES)
  file(GLOB found "${prefix}/share/doc/*/${file}")
  if(NOT found)
    message(FATAL_ERROR "${file} is not installed")
  endif()
endforeach()

run(${configure} -B "${scratch}/plain" ${without_boost})
run("${CMAKE_COMMAND}" --build "${scratch}/plain")
expect_small("${scratch}/plain/one_mutex")

execute_process(COMMAND ${configure} -B "${scratch}/refused" ${without_boost} -DWITH_BOOST=ON
  RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE output)
if(result EQUAL 0 OR NOT output MATCHES "the[ \n]+headers[ \n]+of[ \n]+Boost")
  message(FATAL_ERROR "the components asio and json were found without Boost, or what is missing was not named:\n${output}")
endif()

run(${configure} -B "${scratch}/asio" -DWITH_BOOST=ON)
run("${CMAKE_COMMAND}" --build "${scratch}/asio")
expect_ok("${scratch}/asio/consumer")
expect_ok("${scratch}/asio/consumer" "${scratch}/plain/one_mutex")
if(EXISTS "${prefix}/${LIBDIR}/cmake/lockstep/lockstep-metrics-targets.cmake")
  expect_ok("${scratch}/asio/scraper")
endif()

set(ENV{PKG_CONFIG_PATH} "${prefix}/${LIBDIR}/pkgconfig")
set(ENV{LD_LIBRARY_PATH} "${prefix}/${LIBDIR}:${scratch}")
run(pkg-config --cflags --libs lockstep)
string(STRIP "${output}" libraries)
separate_arguments(libraries UNIX_COMMAND "${libraries}")
run("${CXX}" -std=c++20 ${flags} "${SOURCE_DIR}/one_mutex.cpp" -o "${scratch}/by_pkg_config" -Wl,-z,relro ${libraries})
expect_ok("${scratch}/asio/consumer" "${scratch}/by_pkg_config")
expect_small("${scratch}/by_pkg_config")

run(pkg-config --modversion lockstep)
string(STRIP "${output}" version)
run("${CXX}" -std=c++20 -fsyntax-only -MD -MF "${scratch}/everything.d" "-DEXPECTED_VERSION=\"${version}\"" "${SOURCE_DIR}/everything.cpp"
  ${libraries})
file(READ "${scratch}/everything.d" headers)
string(REPLACE "${prefix}" "" headers "${headers}")
string(REGEX MATCH "[^ \n]*/boost/[^ \n]*" found "${headers}")
if(found)
  message(FATAL_ERROR "<lockstep/lockstep.hpp> includes ${found}")
endif()

run("${CXX}" -std=c++20 -fsyntax-only "${SOURCE_DIR}/walk.cpp" ${libraries})
execute_process(COMMAND "${CXX}" -std=c++20 -fsyntax-only -DBY_INDEX "${SOURCE_DIR}/walk.cpp" ${libraries}
  RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE output)
if(result EQUAL 0 OR NOT output MATCHES "fixed_index|constant expression")
  message(FATAL_ERROR "a loop over the elements of a reply by their index compiles, or is refused for another reason:\n${output}")
endif()

if(NOT SHARED)
  # All objects of the archive make a shared library, too: their code is position-independent, and no symbol is missing.
  run("${CXX}" -shared -o "${scratch}/libwhole.so" -Wl,-z,defs -Wl,--whole-archive "${prefix}/${LIBDIR}/liblockstep.a" -Wl,--no-whole-archive
    ${libraries})
  run("${CXX}" -std=c++20 -O1 "${SOURCE_DIR}/one_mutex.cpp" -o "${scratch}/by_shared" "-I${prefix}/include" "-L${scratch}" -lwhole)
  expect_ok("${scratch}/asio/consumer" "${scratch}/by_shared")
endif()
