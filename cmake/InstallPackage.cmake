# The CMake package DeviceTidy: find_package(DeviceTidy) gives projects device_tidy_add_check(). It works installed, and
# from the build tree with -DDeviceTidy_DIR=BUILD/cmake.

include(CMakePackageConfigHelpers)

set(packageDir "${CMAKE_INSTALL_LIBDIR}/cmake/DeviceTidy")
set(DEVICE_TIDY_PACKAGE_BIN "${CMAKE_INSTALL_BINDIR}")
configure_package_config_file(cmake/DeviceTidyConfig.cmake.in
  "${PROJECT_BINARY_DIR}/cmake/install/DeviceTidyConfig.cmake"
  INSTALL_DESTINATION "${packageDir}" PATH_VARS DEVICE_TIDY_PACKAGE_BIN)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/cmake/DeviceTidyConfigVersion.cmake"
  COMPATIBILITY SameMajorVersion ARCH_INDEPENDENT)
install(FILES
  "${PROJECT_BINARY_DIR}/cmake/install/DeviceTidyConfig.cmake"
  "${PROJECT_BINARY_DIR}/cmake/DeviceTidyConfigVersion.cmake"
  cmake/DeviceTidy.cmake
  DESTINATION "${packageDir}" COMPONENT tools)

# The same for the build tree.
set(PACKAGE_INIT "")
set(PACKAGE_DEVICE_TIDY_PACKAGE_BIN "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
configure_file(cmake/DeviceTidyConfig.cmake.in "${PROJECT_BINARY_DIR}/cmake/DeviceTidyConfig.cmake" @ONLY)
configure_file(cmake/DeviceTidy.cmake "${PROJECT_BINARY_DIR}/cmake/DeviceTidy.cmake" COPYONLY)
