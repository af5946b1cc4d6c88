# lockstep_programs(SOURCES ... LIBRARIES ... [DEFINITIONS ...]): one executable per source, named after it, in bin/.
# LOCKSTEP_PROGRAMS holds their names afterwards.
function(lockstep_programs)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "SOURCES;LIBRARIES;DEFINITIONS")
  set(names "")
  foreach(source IN LISTS arg_SOURCES)
    cmake_path(GET source STEM name)
    add_executable(${name} "${source}")
    target_link_libraries(${name} PRIVATE ${arg_LIBRARIES})
    target_compile_definitions(${name} PRIVATE ${arg_DEFINITIONS})
    list(APPEND names ${name})
  endforeach()
  set(LOCKSTEP_PROGRAMS "${names}" PARENT_SCOPE)
endfunction()
