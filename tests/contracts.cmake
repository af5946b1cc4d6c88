# Read by ctest: one test for each suite of `program` whose name begins with sentinel/ or cluster/. See tests/CMakeLists.txt.
if(NOT EXISTS "${program}")
  return()  # not built; the other tests say so
endif()
execute_process(COMMAND "${program}" --gtest_list_tests "--gtest_filter=sentinel/*:cluster/*"
  OUTPUT_VARIABLE listed RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${program} does not list its tests: ${failed}")
endif()
string(REGEX MATCHALL "(sentinel|cluster)/[a-z_]+" suites "${listed}")
foreach(suite IN LISTS suites)
  add_test("${suite}" "${program}" "--gtest_filter=${suite}.*")
  set_tests_properties("${suite}" PROPERTIES LABELS slow TIMEOUT ${timeout} COST 200)
endforeach()
