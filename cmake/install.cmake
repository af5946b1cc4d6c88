# `cmake --install`: headers, library, find_package(lockstep) and pkg-config.

include(CMakePackageConfigHelpers)

install(DIRECTORY include/lockstep DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.hpp")
install(FILES LICENSE THIRD_PARTY_NOTICES DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(TARGETS lockstep lockstep_asio lockstep_json EXPORT lockstep-targets)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/lockstep")
install(EXPORT lockstep-targets NAMESPACE lockstep:: DESTINATION "${package_dir}")
if(TARGET lockstep_metrics)
  # In a file of its own: without prometheus-cpp the rest can still be found.
  install(TARGETS lockstep_metrics EXPORT lockstep-metrics-targets)
  install(EXPORT lockstep-metrics-targets NAMESPACE lockstep:: DESTINATION "${package_dir}")
endif()
configure_package_config_file(cmake/lockstep-config.cmake.in "${CMAKE_CURRENT_BINARY_DIR}/lockstep-config.cmake"
  INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/lockstep-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${CMAKE_CURRENT_BINARY_DIR}/lockstep-config.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/lockstep-config-version.cmake"
  DESTINATION "${package_dir}")

# The prefix follows from where the file lies, so that a tree can be moved (and installed with --prefix).
cmake_path(SET pc_dir "/${CMAKE_INSTALL_LIBDIR}/pkgconfig")
cmake_path(RELATIVE_PATH pc_dir BASE_DIRECTORY "/" OUTPUT_VARIABLE pc_dir)
string(REGEX REPLACE "[^/]+" ".." up "${pc_dir}")
set(pc_prefix "\${pcfiledir}/${up}")
# A shared library carries its own dependencies; with the static one a program links them.
set(pc_requires "openssl fmt absl_time")
set(pc_libs " -Wl,--gc-sections")
if(BUILD_SHARED_LIBS)
  set(pc_requires "")
  set(pc_libs "")
endif()
configure_file(cmake/lockstep.pc.in "${CMAKE_CURRENT_BINARY_DIR}/lockstep.pc" @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/lockstep.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
