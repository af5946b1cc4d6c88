# cmake -DPROGRAM=bin/x_fuzz -DNAME=x -DINTO=folder -P run.cmake: fuzzes for LOCKSTEP_FUZZ_SECONDS (2). What is new goes to INTO/found, and what breaks
# a promise to INTO/broken; the seeds in corpus/x are only read.
cmake_minimum_required(VERSION 3.25)
set(seconds "$ENV{LOCKSTEP_FUZZ_SECONDS}")
if(NOT seconds MATCHES "^[0-9]+$")
  set(seconds 2)
endif()
# What targets print is hidden; of libFuzzer and the sanitizers nothing.
set(hidden 1)
if(NAME STREQUAL "arguments")
  set(hidden 3)
endif()
set(options "-max_total_time=${seconds}" -timeout=20 -rss_limit_mb=2048 -close_fd_mask=${hidden} -print_final_stats=1 "-artifact_prefix=${INTO}/broken/")
set(dictionary "${CMAKE_CURRENT_LIST_DIR}/dictionaries/${NAME}.dict")
if(EXISTS "${dictionary}")
  list(APPEND options "-dict=${dictionary}")
endif()
file(MAKE_DIRECTORY "${INTO}/found" "${INTO}/broken")
execute_process(COMMAND "${PROGRAM}" ${options} "${INTO}/found" "${CMAKE_CURRENT_LIST_DIR}/corpus/${NAME}" RESULT_VARIABLE result)
if(NOT result STREQUAL "0")
  message(FATAL_ERROR "fuzz_${NAME} ended with ${result}. Its input is the newest file in ${INTO}/broken. `${PROGRAM} FILE` runs it again; once it is "
    "repaired, keep it as a seed: cp FILE tests/fuzz/corpus/${NAME}/")
endif()
