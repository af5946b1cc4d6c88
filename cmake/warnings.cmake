# lockstep_warnings: link it (privately) to what is ours.

add_library(lockstep_warnings INTERFACE)
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  target_compile_options(lockstep_warnings INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Woverloaded-virtual -Wcast-qual
    -Wformat=2 -Wunused
    # Options are aggregates with designated initialisers: leaving members out is the point.
    -Wno-missing-field-initializers
  )
  if(LOCKSTEP_WERROR)
    target_compile_options(lockstep_warnings INTERFACE -Werror)
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # std::stable_sort of g++ 12's standard library uses what that library deprecates.
  target_compile_options(lockstep_warnings INTERFACE -Wno-error=deprecated-declarations)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(lockstep_warnings INTERFACE -Wduplicated-cond -Wlogical-op)
  # These come from the optimiser, and g++ has them wrong in coroutines and in its own std::string: never fatal, and not shown to those who
  # only build, nor where a sanitizer has rearranged the code and watches for the real thing.
  set(not "error=")
  if(LOCKSTEP_SANITIZE OR NOT LOCKSTEP_WERROR)
    set(not "")
  endif()
  foreach(guess IN ITEMS maybe-uninitialized uninitialized restrict array-bounds stringop-overflow stringop-overread
      dangling-pointer use-after-free free-nonheap-object mismatched-new-delete nonnull)
    target_compile_options(lockstep_warnings INTERFACE -Wno-${not}${guess})
  endforeach()
  # False on sight in g++ 12, for std::string's operator+ (GCC bug 105651).
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(lockstep_warnings INTERFACE -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow)
  endif()
  if(LOCKSTEP_SANITIZE MATCHES "thread")
    # Asio's fences: TSan does not follow them, and says so for each file.
    target_compile_options(lockstep_warnings INTERFACE -Wno-tsan)
  endif()
endif()
