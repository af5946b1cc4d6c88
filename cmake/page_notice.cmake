# cmake -DBUILD=folder -P page_notice.cmake: one line if the build in that folder has no page for the dashboard; nothing if it has.
cmake_minimum_required(VERSION 3.25)
set(missing_file "${BUILD}/apps/dashboard/page/missing.txt")
if(EXISTS "${missing_file}")
  file(STRINGS "${missing_file}" reason LIMIT_COUNT 1)
  message(NOTICE "lockstep: built without the dashboard's page: ${reason}. What to do: docs/building.md, \"The dashboard's page\".")
endif()
