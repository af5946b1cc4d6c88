# cmake -DNODE=node -DNPM=npm -DFROM=folder -DINTO=folder -P npm_ci.cmake: installs what FROM/package-lock.json names in INTO/node_modules,
# unless it is there already. Scripts of packages are not run.
#
# Without Node.js, npm or a registry it succeeds as well, for a build must not depend on them: then INTO/missing.txt has the reason in one
# line, INTO/npm.log has npm's own words, and there is no INTO/node_modules/.installed. Build steps name that file as an output, so each
# build tries again. A registry that does not answer costs 18 s, and 5 s in the builds after that.

cmake_minimum_required(VERSION 3.25)
set(missing_file "${INTO}/missing.txt")
set(installed_file "${INTO}/node_modules/.installed")
set(reason "")
file(REMOVE "${INTO}/npm.log")
foreach(file IN ITEMS package.json package-lock.json .npmrc)
  if(EXISTS "${FROM}/${file}")
    configure_file("${FROM}/${file}" "${INTO}/${file}" COPYONLY)
  endif()
endforeach()

if(NOT NODE OR NOT NPM)
  set(reason "Node.js 18 and npm are not installed")
else()
  execute_process(COMMAND "${NODE}" --version OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  string(REGEX MATCH "[0-9]+(\\.[0-9]+)*" version "${version}")
  if(version VERSION_LESS 18)
    set(reason "Node.js 18 or newer is needed, and this is ${version}")
  endif()
endif()

set(installed "")
file(SHA256 "${INTO}/package-lock.json" wanted)
if(EXISTS "${installed_file}")
  file(READ "${installed_file}" installed)
endif()
if(NOT reason AND NOT installed STREQUAL wanted)
  # npm's own limits are 5 minutes for an answer, and two more attempts.
  set(limits --fetch-timeout=8000 --fetch-retries=1 --fetch-retry-mintimeout=1000)
  if(EXISTS "${missing_file}")
    set(limits --fetch-timeout=4000 --fetch-retries=0)
  endif()
  execute_process(COMMAND "${NPM}" ci --ignore-scripts --no-audit --no-fund --prefer-offline --loglevel=error ${limits}
    WORKING_DIRECTORY "${INTO}" TIMEOUT 300 RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(result STREQUAL "0")
    file(WRITE "${installed_file}" "${wanted}")
  else()
    file(REMOVE "${installed_file}")
    file(WRITE "${INTO}/npm.log" "${output}\nnpm ci: ${result}\n")
    set(reason "npm could not install the packages")
    if(output MATCHES "network timeout")
      string(APPEND reason " (its registry does not answer)")
    elseif(output MATCHES "npm (ERR!|error) code ([A-Za-z0-9_]+)")
      string(APPEND reason " (${CMAKE_MATCH_2})")
    endif()
  endif()
endif()

if(reason)
  file(WRITE "${missing_file}" "${reason}\n")
else()
  file(REMOVE "${missing_file}")
endif()
