# lockstep_unity(<target>): compiles the sources of a folder eight at a time, so that the headers which they share are parsed once, and
# what these define in every file (CLI11 some 50 validators, Boost.JSON and Beast their templates) is generated once. Never across folders.
#
# LOCKSTEP_UNITY is off in the presets for development: there one changed file compiles alone, and a file that lacks an #include is found.
option(LOCKSTEP_UNITY "Compile the programs' sources in batches: a quicker first build, a slower incremental one" OFF)

function(lockstep_unity target)
  if(NOT LOCKSTEP_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder)
    string(APPEND count_${folder} "+")
    string(LENGTH "${count_${folder}}" count)
    math(EXPR batch "(${count} - 1) / 8")
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${folder}_${batch}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # Sources are no headers: a class of one may have members of a type that only this one has.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()
