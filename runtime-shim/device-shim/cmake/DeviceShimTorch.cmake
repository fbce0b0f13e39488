# Finds LibTorch by its parts: Debian's TorchConfig.cmake wants Caffe2's dependencies and pins C++14, and that of
# a CUDA build wants a whole CUDA toolkit. TORCH_ROOT or CMAKE_PREFIX_PATH name another LibTorch, such as the
# folder torch/ of a Python wheel.
#
# device_shim_find_libtorch(problem) defines
#   DeviceShim::libtorch     headers and libraries of LibTorch
# or sets `problem` to why it cannot; device_shim_require_libtorch() then ends with that.

function(device_shim_require_libtorch)
  device_shim_find_libtorch(problem)
  if(problem)
    message(FATAL_ERROR "${problem}")
  endif()
endfunction()

function(device_shim_find_libtorch problem)
  set(${problem} "" PARENT_SCOPE)
  if(TARGET DeviceShim::libtorch)
    return()
  endif()
  find_package(Threads QUIET)
  if(NOT Threads_FOUND)
    set(${problem} "The library of POSIX threads is missing: install the C library's headers (libc6-dev)." PARENT_SCOPE)
    return()
  endif()
  device_shim_torch_root(root)
  # Looked for anew each time, lest a build folder keeps the LibTorch of another TORCH_ROOT.
  set(names torch torch_cpu c10)
  unset(DEVICE_SHIM_TORCH_INCLUDE CACHE)
  find_path(DEVICE_SHIM_TORCH_INCLUDE torch/csrc/api/include/torch/torch.h HINTS ${root} PATH_SUFFIXES include)
  foreach(part ${names})
    unset(DEVICE_SHIM_LIB_${part} CACHE)
    find_library(DEVICE_SHIM_LIB_${part} ${part} HINTS ${root} PATH_SUFFIXES lib)
    if(NOT DEVICE_SHIM_LIB_${part} OR NOT DEVICE_SHIM_TORCH_INCLUDE)
      set(${problem} "LibTorch is missing (lib${part}.so or torch/torch.h): install libtorch-dev, or pass \
-DTORCH_ROOT=PREFIX, the folder that has include/ and lib/ of LibTorch." PARENT_SCOPE)
      return()
    endif()
  endforeach()
  # A CUDA build of LibTorch has these beside the others; only there, lest two LibTorchs are mixed.
  get_filename_component(torch_lib_dir "${DEVICE_SHIM_LIB_torch_cpu}" DIRECTORY)
  foreach(part torch_cuda c10_cuda)
    unset(DEVICE_SHIM_LIB_${part} CACHE)
    find_library(DEVICE_SHIM_LIB_${part} ${part} PATHS "${torch_lib_dir}" NO_DEFAULT_PATH)
  endforeach()
  device_shim_define_libtorch("${torch_lib_dir}")
endfunction()

# TORCH_ROOT, else that of the environment, which counts when a build folder is made: the build tool may run
# CMake again without it.
function(device_shim_torch_root root)
  if(NOT "$ENV{TORCH_ROOT}" STREQUAL "")
    set(DEVICE_SHIM_ENVIRONMENT_TORCH_ROOT "$ENV{TORCH_ROOT}" CACHE INTERNAL "TORCH_ROOT of the environment")
  endif()
  if(TORCH_ROOT)
    set(${root} "${TORCH_ROOT}" PARENT_SCOPE)
  else()
    set(${root} "${DEVICE_SHIM_ENVIRONMENT_TORCH_ROOT}" PARENT_SCOPE)
  endif()
endfunction()

function(device_shim_define_libtorch torch_lib_dir)
  # For what is loaded into a process that has LibTorch, by whatever of it the process is linked with.
  add_library(DeviceShim::libtorch_cpu INTERFACE IMPORTED)
  target_include_directories(DeviceShim::libtorch_cpu SYSTEM INTERFACE
    "${DEVICE_SHIM_TORCH_INCLUDE}" "${DEVICE_SHIM_TORCH_INCLUDE}/torch/csrc/api/include")
  target_link_libraries(DeviceShim::libtorch_cpu INTERFACE
    "${DEVICE_SHIM_LIB_torch_cpu}" "${DEVICE_SHIM_LIB_c10}" Threads::Threads)
  # libtorch.so has no symbols of its own; a CUDA build registers its kernels through it, so it must stay.
  set(libraries -Wl,--push-state,--no-as-needed "${DEVICE_SHIM_LIB_torch}")
  if(DEVICE_SHIM_LIB_torch_cuda)
    list(APPEND libraries "${DEVICE_SHIM_LIB_torch_cuda}" "${DEVICE_SHIM_LIB_c10_cuda}")
  endif()
  add_library(DeviceShim::libtorch INTERFACE IMPORTED)
  target_link_libraries(DeviceShim::libtorch INTERFACE ${libraries} -Wl,--pop-state DeviceShim::libtorch_cpu)
  # Wheels before 2.7 were built with the old ABI of libstdc++ and say so in their package file.
  set(package "${torch_lib_dir}/../share/cmake/Torch/TorchConfig.cmake")
  if(EXISTS "${package}")
    file(STRINGS "${package}" old_abi REGEX "_GLIBCXX_USE_CXX11_ABI=0")
    if(old_abi)
      target_compile_definitions(DeviceShim::libtorch_cpu INTERFACE _GLIBCXX_USE_CXX11_ABI=0)
    endif()
  endif()
endfunction()
