# The C++ in README.md and docs/ is compiled, so that it stays true.
#
# Every block that is fenced with ```cpp goes into build/<preset>/snippets/<page>.cpp:
#   with an #include   as it is, at file scope
#   without            as the body of a function that has a `client`; a coroutine, if it says co_await
# A block that is not to be compiled is fenced with ```text. Errors are reported at their line of the page.
#
# The first block of README.md is a program of its own, bin/readme_example, and a test runs it.
#
# Included, this file makes the targets. As a script (-DPAGE= -DOUTPUT= [-DPROGRAM=]) it extracts one page.

if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
  file(READ "${PAGE}" rest)
  set(line 1)  # where `rest` begins
  set(blocks 0)
  set(code "// From ${PAGE}. Made by cmake/snippets.cmake; changes are lost.\n#include \"prelude.hpp\"\n")
  # Cuts `rest` behind the first `mark`; `head` is what stood before that, the mark included.
  macro(cut mark)
    string(FIND "${rest}" "${mark}" at)
    set(found FALSE)
    if(NOT at EQUAL -1)
      set(found TRUE)
      string(LENGTH "${mark}" length)
      math(EXPR at "${at} + ${length}")
      string(SUBSTRING "${rest}" 0 ${at} head)
      string(SUBSTRING "${rest}" ${at} -1 rest)
      string(REGEX MATCHALL "\n" newlines "${head}")
      list(LENGTH newlines newlines)
      math(EXPR line "${line} + ${newlines}")
    endif()
  endmacro()
  while(TRUE)
    cut("\n```cpp\n")
    if(NOT found)
      break()
    endif()
    set(first_line ${line})
    cut("\n```\n")
    if(NOT found)
      message(FATAL_ERROR "${PAGE}:${line}: this block has no end")
    endif()
    string(REGEX REPLACE "```\n$" "" block "${head}")
    set(block "#line ${first_line} \"${PAGE}\"\n${block}")
    math(EXPR blocks "${blocks} + 1")

    if(PROGRAM AND blocks EQUAL 1)
      file(WRITE "${PROGRAM}" "${block}")
    elseif(block MATCHES "\n#include ")
      string(APPEND code "${block}")
    elseif(block MATCHES "co_await")
      string(APPEND code "lockstep::task<void> snippet_${blocks}(lockstep::client& client) {\n{\n${block}}\nco_return;\n}\n")
    else()
      string(APPEND code "void snippet_${blocks}(lockstep::client& client) {\n{\n${block}}\n}\n")
    endif()
  endwhile()
  file(WRITE "${OUTPUT}" "${code}")
  return()
endif()

set(snippets_dir "${PROJECT_BINARY_DIR}/snippets")
set(readme_example "${snippets_dir}/readme_example.cpp")
file(GLOB pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/docs/*.md")
if(NOT TARGET lockstep_metrics)
  list(FILTER pages EXCLUDE REGEX "/docs/metrics\\.md$")
endif()
set(sources "")
foreach(page IN LISTS pages)
  cmake_path(GET page STEM name)
  cmake_path(GET page PARENT_PATH folder)
  set(program "")
  if(name STREQUAL "README")
    cmake_path(GET folder FILENAME name)
    if(folder STREQUAL PROJECT_SOURCE_DIR)
      set(name "readme")
      set(program "${readme_example}")
    endif()
  endif()
  set(source "${snippets_dir}/${name}.cpp")
  add_custom_command(OUTPUT "${source}" ${program}
    COMMAND "${CMAKE_COMMAND}" "-DPAGE=${page}" "-DOUTPUT=${source}" "-DPROGRAM=${program}" -P "${CMAKE_CURRENT_LIST_FILE}"
    DEPENDS "${page}" "${CMAKE_CURRENT_LIST_FILE}"
    COMMENT "Extracting the snippets of ${name}"
    VERBATIM)
  list(APPEND sources "${source}")
endforeach()

# Compiled, never run: no optimiser, and nothing for the sanitizers to look at.
set(prelude "${snippets_dir}/prelude.hpp")
file(CONFIGURE OUTPUT "${prelude}" CONTENT [[
#pragma once
#include <lockstep/lockstep.hpp>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>
using namespace std::chrono_literals;
]])
if(NOT LOCKSTEP_SANITIZE)
  add_library(snippets OBJECT ${sources})
  target_link_libraries(snippets PRIVATE lockstep::asio lockstep::json $<TARGET_NAME_IF_EXISTS:lockstep_metrics>)
  # g++ takes code under a #line for a header's, where a lambda in a coroutine's frame would be suspicious.
  target_compile_options(snippets PRIVATE -O0 -Wall -Wno-unused $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  if(LOCKSTEP_WERROR)
    target_compile_options(snippets PRIVATE -Werror)
  endif()
  if(LOCKSTEP_PCH)
    target_precompile_headers(snippets PRIVATE "${prelude}")
  endif()
endif()

# The README's example, as a user would build it, on a server of its own that goes when it ends.
set(stop "${snippets_dir}/stop_the_server.cpp")
file(CONFIGURE OUTPUT "${stop}" CONTENT [[
#include <lockstep/embedded_server.hpp>
namespace {
struct at_exit {
    ~at_exit() { lockstep::stop_shared_server(); }
} const last;
}
]])
add_executable(readme_example "${readme_example}" "${stop}")
target_link_libraries(readme_example PRIVATE lockstep::lockstep)
# In a short path of its own: that of a socket has 107 bytes at most, whatever the checkout's length.
add_test(NAME readme_example
  COMMAND sh -c "home=$(mktemp -d) && LOCKSTEP_EMBEDDED_DIR=$home/run \"$<TARGET_FILE:readme_example>\"; code=$?; rm -rf \"$home\"; exit $code")
set_tests_properties(readme_example PROPERTIES LABELS integration TIMEOUT ${test_timeout}
  ENVIRONMENT "LOCKSTEP_URL=;REDIS_URL=;LOCKSTEP_EMBEDDED_IDLE=10")
