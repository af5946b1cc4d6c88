# Checks Lua scripts and embeds them.
#
#   cmake -DSCRIPTS_DIR=dir [-DOUT_DIR=dir] -P embed_scripts.cmake
#
# Checked, and an error that names file and reason otherwise:
# - the script opens with `--[[ <file name>: what it does` and a `]]` closes that header. Before it, one that grows nothing may have the line
#   `#!lua flags=allow-oom`, and then a server at `maxmemory` runs it;
# - the header has a line `Returns`;
# - KEYS[i] and ARGV[i] declared in the header (at the start of a line) are numbered from 1 without a gap, and are the very
#   ones the body uses. `ARGV[n..]` declares "n and all after it": needed if, and only if, the body uses ARGV with an index
#   that is not a literal number (`ARGV[i]`, `#ARGV`, `unpack(ARGV, n)`), and it must be the last one. KEYS likewise.
#
# A script whose header has the words `Changes nothing.` is read-only: clients send it by EVALSHA_RO.
#
# A line `--#include <name>` is replaced by SCRIPTS_DIR/include/<name>.lua, which has no header of its own and includes nothing. The
# checks and the SHA1 are of the whole text, which is what a server gets.
#
# Written to OUT_DIR: scripts/all.hpp (changes only when a script comes or goes) and scripts/all.cpp (the texts), so that
# editing a script recompiles one small file.
cmake_minimum_required(VERSION 3.25)

# Sets <out> to the literal indices of KEYS or ARGV in <text> (sorted, unique) and <out>_from to the n of `[n..]`.
function(declared_indices kind text out)
  # Brackets first become parentheses: CMake lists treat [ and ] specially.
  string(REPLACE "[" "(" text "${text}")
  string(REPLACE "]" ")" text "${text}")
  string(REGEX MATCHALL "\n[ \t]*${kind}\\([0-9]+\\)" found "${text}")
  string(REGEX REPLACE "[^0-9;]" "" found "${found}")
  set(from "")
  if(text MATCHES "\n[ \t]*${kind}\\(([0-9]+)\\.\\.\\)")
    set(from ${CMAKE_MATCH_1})
  endif()
  list(LENGTH found written)
  list(REMOVE_DUPLICATES found)
  list(SORT found COMPARE NATURAL)
  list(LENGTH found count)
  if(NOT written EQUAL count)
    fail("${kind} is declared twice")
  endif()
  set(next 1)
  foreach(index IN LISTS found)
    if(NOT index EQUAL next)
      fail("${kind}[${next}] is not declared, but ${kind}[${index}] is")
    endif()
    math(EXPR next "${next} + 1")
  endforeach()
  if(from AND NOT from EQUAL next)
    fail("${kind}[${from}..] should be ${kind}[${next}..]")
  endif()
  set(${out} "${found}" PARENT_SCOPE)
  set(${out}_from "${from}" PARENT_SCOPE)
endfunction()

# Sets <out> to the literal indices the body uses and <out>_open when it also uses others.
function(used_indices kind code out)
  string(REPLACE "[" "(" code "${code}")
  string(REPLACE "]" ")" code "${code}")
  string(REGEX MATCHALL "${kind}[ \t\n]*\\([ \t\n]*[0-9]+[ \t\n]*\\)" found "${code}")
  string(REGEX REPLACE "[^0-9;]" "" found "${found}")
  list(REMOVE_DUPLICATES found)
  list(SORT found COMPARE NATURAL)
  string(REGEX REPLACE "${kind}[ \t\n]*\\([ \t\n]*[0-9]+[ \t\n]*\\)" "" rest "${code}")
  set(open FALSE)
  if(rest MATCHES "(^|[^A-Za-z0-9_])${kind}([^A-Za-z0-9_]|$)")
    set(open TRUE)
  endif()
  set(${out} "${found}" PARENT_SCOPE)
  set(${out}_open ${open} PARENT_SCOPE)
endfunction()

macro(fail reason)
  message(FATAL_ERROR " ${file}: ${reason}")  # the leading space keeps CMake from breaking the line
endmacro()

function(check_kind kind header code out_count)
  declared_indices(${kind} "${header}" declared)
  used_indices(${kind} "${code}" used)
  list(LENGTH declared count)
  foreach(index IN LISTS used)
    if(NOT index IN_LIST declared AND NOT (declared_from AND index GREATER_EQUAL declared_from))
      fail("uses ${kind}[${index}], which its header does not declare")
    endif()
  endforeach()
  foreach(index IN LISTS declared)
    if(NOT index IN_LIST used)
      fail("declares ${kind}[${index}], which it does not use")
    endif()
  endforeach()
  if(used_open AND NOT declared_from)
    math(EXPR next "${count} + 1")
    fail("uses ${kind} with an index that is not a literal number; declare ${kind}[${next}..]")
  elseif(declared_from AND NOT used_open)
    fail("declares ${kind}[${declared_from}..], but uses literal indices only")
  endif()
  set(${out_count} ${count} PARENT_SCOPE)
endfunction()

# Replaces the include lines in <variable>. Text is never a list here, so brackets and semicolons are safe.
function(expand_includes variable)
  set(rest "${${variable}}")
  set(whole "")
  while(TRUE)
    string(FIND "\n${rest}" "\n--#include " at)
    if(at EQUAL -1)
      break()
    endif()
    string(SUBSTRING "${rest}" 0 ${at} before)
    string(SUBSTRING "${rest}" ${at} -1 rest)
    string(REGEX MATCH "^--#include ([^\n]*)\n?" line "${rest}")
    set(name "${CMAKE_MATCH_1}")
    set(part "${SCRIPTS_DIR}/include/${name}.lua")
    if(NOT name MATCHES "^[a-z][a-z0-9_]*$" OR NOT EXISTS "${part}")
      fail("includes `${name}`, but there is no include/${name}.lua")
    endif()
    file(READ "${part}" content)
    string(FIND "\n${content}" "\n--#include " nested)
    if(NOT nested EQUAL -1)
      fail("includes `${name}`, which includes another: name both in the script")
    endif()
    string(LENGTH "${line}" length)
    string(SUBSTRING "${rest}" ${length} -1 rest)
    string(APPEND whole "${before}${content}")
  endwhile()
  set(${variable} "${whole}${rest}" PARENT_SCOPE)
endfunction()

file(GLOB scripts "${SCRIPTS_DIR}/*.lua")
set(declarations "")
set(definitions "")
set(pointers "")
foreach(file IN LISTS scripts)
  cmake_path(GET file STEM name)
  if(NOT name MATCHES "^[a-z][a-z0-9_]*$")
    fail("the name must be a C++ identifier in snake_case")
  endif()
  file(READ "${file}" text)
  expand_includes(text)
  string(SHA1 sha1 "${text}")

  set(documented "${text}")
  string(FIND "${text}" "#!lua flags=allow-oom\n" shebang)
  if(shebang EQUAL 0)
    string(LENGTH "#!lua flags=allow-oom\n" shebang)
    string(SUBSTRING "${text}" ${shebang} -1 documented)
  endif()
  string(FIND "${documented}" "--[[ ${name}: " start)
  string(FIND "${documented}" "]]\n" end)
  if(NOT start EQUAL 0)
    fail("must open with `--[[ ${name}: what it does`")
  elseif(end EQUAL -1)
    fail("its header is not closed by `]]` at the end of a line")
  endif()
  string(SUBSTRING "${documented}" 0 ${end} header)
  math(EXPR end "${end} + 2")
  string(SUBSTRING "${documented}" ${end} -1 code)
  if(NOT header MATCHES "\n[ \t]*Returns[ \t]+[^ \t\n]")
    fail("its header does not say what it Returns")
  endif()
  if(code MATCHES "--\\[=*\\[")
    fail("has a block comment after its header; use -- on each line, which this check understands")
  endif()
  # Strings and comments are not uses. Whichever starts first wins, so quotes in comments and dashes in strings are safe.
  string(REGEX REPLACE "\"(\\\\.|[^\"\\\\\n])*\"|'(\\\\.|[^'\\\\\n])*'|--[^\n]*" " " code "${code}")
  check_kind(KEYS "${header}" "${code}" keys)
  check_kind(ARGV "${header}" "${code}" ignored)

  set(read_only false)
  if(header MATCHES "Changes nothing\\.")
    set(read_only true)
  endif()

  string(FIND "${text}" ")lua\"" clash)
  if(NOT clash EQUAL -1)
    fail("contains )lua\", which ends the raw string it is embedded in")
  endif()
  string(APPEND declarations "extern script const ${name};\n")
  # An array for each text: literals would share one section, and a program that uses one script would be linked with all texts.
  string(APPEND definitions
    "static constexpr char ${name}_text[] = R\"lua(${text})lua\";\n"
    "constinit script const ${name}{\"${name}\", {${name}_text, sizeof ${name}_text - 1}, \"${sha1}\", ${keys}, ${read_only}};\n\n")
  string(APPEND pointers "&${name}, ")
endforeach()

if(NOT OUT_DIR)
  return()
endif()

function(write_if_changed path content)
  set(before "")
  if(EXISTS "${path}")
    file(READ "${path}" before)
  endif()
  if(NOT before STREQUAL content)
    file(WRITE "${path}" "${content}")
  endif()
endfunction()

set(origin "// Generated from src/scripts/*.lua by cmake/embed_scripts.cmake.\n")
write_if_changed("${OUT_DIR}/scripts/all.hpp"
"${origin}#pragma once

#include <span>

#include \"scripts/script.hpp\"

namespace lockstep::scripts {

${declarations}
/// Every one of them.
std::span<script const* const> all();

}  // namespace lockstep::scripts
")
file(WRITE "${OUT_DIR}/scripts/all.cpp"
"${origin}#include \"scripts/all.hpp\"

namespace lockstep::scripts {

${definitions}std::span<script const* const> all() {
    static constexpr script const* every[] = {${pointers}};
    return every;
}

}  // namespace lockstep::scripts
")
