# Finds LibTorch by its parts: Debian's TorchConfig.cmake wants Caffe2's dependencies and pins C++14, and that of
# a CUDA build wants a whole CUDA toolkit. TORCH_ROOT or CMAKE_PREFIX_PATH name another LibTorch, such as the
# folder torch/ of a Python wheel.
#
# device_shim_find_torch() defines
#   DeviceShim::libtorch     headers and libraries of LibTorch
#   DeviceShim::collectives  what compiling against c10d's Gloo and NCCL process groups takes besides
# and the global properties DEVICE_SHIM_GLOO, DEVICE_SHIM_NCCL: which of them can be compiled.

function(device_shim_find_torch)
  if(TARGET DeviceShim::libtorch)
    return()
  endif()
  find_package(Threads REQUIRED)
  set(hints ${TORCH_ROOT} $ENV{TORCH_ROOT})
  find_path(DEVICE_SHIM_TORCH_INCLUDE torch/csrc/api/include/torch/torch.h HINTS ${hints} PATH_SUFFIXES include)
  set(libraries "")
  foreach(part torch torch_cpu c10)
    find_library(DEVICE_SHIM_LIB_${part} ${part} HINTS ${hints} PATH_SUFFIXES lib)
    if(NOT DEVICE_SHIM_LIB_${part} OR NOT DEVICE_SHIM_TORCH_INCLUDE)
      message(FATAL_ERROR "LibTorch is missing (lib${part}.so or torch/torch.h): install libtorch-dev, or pass "
                          "-DTORCH_ROOT=PREFIX, the folder that has include/ and lib/ of LibTorch.")
    endif()
  endforeach()
  # A CUDA build of LibTorch has these beside the others; only there, lest two LibTorchs are mixed.
  get_filename_component(torch_lib_dir "${DEVICE_SHIM_LIB_torch_cpu}" DIRECTORY)
  foreach(part torch_cuda c10_cuda)
    find_library(DEVICE_SHIM_LIB_${part} ${part} PATHS "${torch_lib_dir}" NO_DEFAULT_PATH)
  endforeach()

  add_library(DeviceShim::libtorch INTERFACE IMPORTED)
  target_include_directories(DeviceShim::libtorch SYSTEM INTERFACE
    "${DEVICE_SHIM_TORCH_INCLUDE}" "${DEVICE_SHIM_TORCH_INCLUDE}/torch/csrc/api/include")
  # libtorch.so has no symbols of its own; a CUDA build registers its kernels through it, so it must stay.
  set(libraries -Wl,--push-state,--no-as-needed "${DEVICE_SHIM_LIB_torch}")
  if(DEVICE_SHIM_LIB_torch_cuda)
    list(APPEND libraries "${DEVICE_SHIM_LIB_torch_cuda}" "${DEVICE_SHIM_LIB_c10_cuda}")
  endif()
  list(APPEND libraries -Wl,--pop-state "${DEVICE_SHIM_LIB_torch_cpu}" "${DEVICE_SHIM_LIB_c10}" Threads::Threads)
  target_link_libraries(DeviceShim::libtorch INTERFACE ${libraries})
  # Wheels before 2.7 were built with the old ABI of libstdc++ and say so in their package file.
  set(package "${torch_lib_dir}/../share/cmake/Torch/TorchConfig.cmake")
  if(EXISTS "${package}")
    file(STRINGS "${package}" old_abi REGEX "_GLIBCXX_USE_CXX11_ABI=0")
    if(old_abi)
      target_compile_definitions(DeviceShim::libtorch INTERFACE _GLIBCXX_USE_CXX11_ABI=0)
    endif()
  endif()
  device_shim_find_collectives("${torch_lib_dir}")
endfunction()

function(device_shim_find_collectives torch_lib_dir)
  add_library(DeviceShim::collectives INTERFACE IMPORTED)
  # c10d's Gloo header includes Gloo's, which no LibTorch package brings.
  find_path(DEVICE_SHIM_GLOO_INCLUDE gloo/config.h)
  set(gloo OFF)
  if(DEVICE_SHIM_GLOO_INCLUDE)
    set(gloo ON)
    target_include_directories(DeviceShim::collectives SYSTEM INTERFACE "${DEVICE_SHIM_GLOO_INCLUDE}")
    target_compile_definitions(DeviceShim::collectives INTERFACE USE_C10D_GLOO)
  endif()
  # In a wheel the headers of CUDA and NCCL are in nvidia/ beside torch/.
  set(nccl OFF)
  if(DEVICE_SHIM_LIB_torch_cuda)
    file(GLOB nvidia "${torch_lib_dir}/../../nvidia/*/include")
    find_path(DEVICE_SHIM_CUDA_INCLUDE cuda_runtime_api.h HINTS ${nvidia} $ENV{CUDA_HOME}/include
      PATHS /usr/local/cuda/include)
    find_path(DEVICE_SHIM_NCCL_INCLUDE nccl.h HINTS ${nvidia} $ENV{NCCL_HOME}/include)
    if(DEVICE_SHIM_CUDA_INCLUDE AND DEVICE_SHIM_NCCL_INCLUDE)
      set(nccl ON)
      target_include_directories(DeviceShim::collectives SYSTEM INTERFACE
        "${DEVICE_SHIM_CUDA_INCLUDE}" "${DEVICE_SHIM_NCCL_INCLUDE}" ${nvidia})
      target_compile_definitions(DeviceShim::collectives INTERFACE USE_C10D_NCCL)
    else()
      message(WARNING "This LibTorch has CUDA, but cuda_runtime_api.h or nccl.h was not found: device_shim is "
                      "built without NCCL. Name their folders with -DDEVICE_SHIM_CUDA_INCLUDE=DIR and "
                      "-DDEVICE_SHIM_NCCL_INCLUDE=DIR.")
    endif()
  endif()
  if(NOT gloo AND NOT nccl)
    message(FATAL_ERROR "Neither Gloo nor NCCL can be compiled in: install libgloo-dev (gloo/config.h).")
  endif()
  set_property(GLOBAL PROPERTY DEVICE_SHIM_GLOO ${gloo})
  set_property(GLOBAL PROPERTY DEVICE_SHIM_NCCL ${nccl})
endfunction()
