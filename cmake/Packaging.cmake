# What `cmake --install` copies besides the targets, and the Debian packages that `cpack` makes in the build folder:
#
#   device-tidy             the analyzer, its clang-tidy plugin, device-run, manuals
#   device-tidy-virtual-gpu virtual GPUs for a CPU build of LibTorch, and headers in place of CUDA's
#   libdevice-shim-dev      the training library

install(FILES LICENSE README.md docs/changelog.md DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT tools)
install(DIRECTORY docs/ DESTINATION "${CMAKE_INSTALL_DOCDIR}/docs" COMPONENT tools
  FILES_MATCHING PATTERN "*.md" PATTERN "*.png" PATTERN "*.yml" PATTERN "*.bzl")
# What these pages link to lies where the links lead.
foreach(linked IN ITEMS test/models/unmodelled.txt test/cases/README.md runtime-shim/device-run/CONTRACT.md)
  cmake_path(GET linked PARENT_PATH folder)
  install(FILES "${linked}" DESTINATION "${CMAKE_INSTALL_DOCDIR}/${folder}" COMPONENT tools)
endforeach()
install(DIRECTORY analyzer/tools/vscode DESTINATION "${CMAKE_INSTALL_DOCDIR}/analyzer/tools" COMPONENT tools
  PATTERN node_modules EXCLUDE PATTERN out EXCLUDE PATTERN "*.vsix" EXCLUDE)
# The analyzer reads them, too, where there is no CUDA.
install(DIRECTORY runtime-shim/cuda-stubs/include DESTINATION "${CMAKE_INSTALL_DATADIR}/device-tidy/cuda-stubs"
  COMPONENT tools)

# A build of some targets only is installed without the others.
function(device_tidy_tell_missing component)
  foreach(target IN LISTS ARGN)
    if(TARGET ${target})
      install(CODE "if(NOT EXISTS \"$<TARGET_FILE:${target}>\")
        message(STATUS \"Left out, because it is not built: ${target}\")
      endif()" COMPONENT ${component})
    endif()
  endforeach()
endfunction()
device_tidy_tell_missing(tools device-tidy device-tidy-plugin device-run)
device_tidy_tell_missing(virtual_gpu virtual_cuda virtual_cuda_torch device_records c10_cuda)
device_tidy_tell_missing(device_shim device_shim)

set(CPACK_PACKAGE_NAME device-tidy)
set(CPACK_PACKAGE_VENDOR "The device-tidy authors")
set(CPACK_PACKAGE_CONTACT "The device-tidy authors <device-tidy@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Finds tensors on the wrong device in C++ code that uses LibTorch")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL tools)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME device-tidy)
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "Follows every tensor through the program and reports operations whose tensors can be on
 different devices. Comes with a clang-tidy plugin and device-run, a launcher for distributed programs.")
# clang's own headers (stddef.h and friends) are not among the shared libraries that dpkg-shlibdeps sees.
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "libclang-common-${LLVM_VERSION_MAJOR}-dev")
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "libstdc++-dev")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "clang-tidy-${LLVM_VERSION_MAJOR}, device-tidy-virtual-gpu")

if(TARGET virtual_cuda)
  list(APPEND CPACK_COMPONENTS_ALL virtual_gpu)
  set(CPACK_DEBIAN_VIRTUAL_GPU_PACKAGE_NAME device-tidy-virtual-gpu)
  if(TARGET virtual_cuda_python)
    # The Python half is linked with a library of the same package.
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
    set(CPACK_DEBIAN_VIRTUAL_GPU_PACKAGE_SUGGESTS python3-torch)
    set(CPACK_DEBIAN_VIRTUAL_GPU_PACKAGE_CONTROL_EXTRA "${PROJECT_SOURCE_DIR}/cmake/debian/prerm")
  endif()
  set(CPACK_COMPONENT_VIRTUAL_GPU_DESCRIPTION "Virtual GPUs for programs that use a CPU build of LibTorch")
endif()
if(TARGET device_shim)
  list(APPEND CPACK_COMPONENTS_ALL device_shim)
  set(CPACK_DEBIAN_DEVICE_SHIM_PACKAGE_NAME libdevice-shim-dev)
  set(CPACK_DEBIAN_DEVICE_SHIM_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_DEVICE_SHIM_PACKAGE_DEPENDS "libtorch-dev, libgloo-dev")
  set(CPACK_COMPONENT_DEVICE_SHIM_DESCRIPTION "Distributed training for C++ programs that use LibTorch")
endif()
include(CPack)
