# Finds what compiling device_shim takes besides LibTorch: the headers of Gloo, CUDA and NCCL. Programs that use
# the built library do not need them.
#
# device_shim_find_torch() defines DeviceShim::libtorch, and
#   DeviceShim::collectives  what compiling against c10d's Gloo and NCCL process groups takes besides
# and the global properties DEVICE_SHIM_GLOO, DEVICE_SHIM_NCCL: which of them can be compiled.

include("${CMAKE_CURRENT_LIST_DIR}/DeviceShimTorch.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/CudaHeaders.cmake")

function(device_shim_find_torch)
  if(TARGET DeviceShim::collectives)
    return()
  endif()
  device_shim_require_libtorch()
  add_library(DeviceShim::collectives INTERFACE IMPORTED)
  # c10d's Gloo header includes Gloo's, which no LibTorch package brings.
  find_path(DEVICE_SHIM_GLOO_INCLUDE gloo/config.h)
  set(gloo OFF)
  if(DEVICE_SHIM_GLOO_INCLUDE)
    set(gloo ON)
    target_include_directories(DeviceShim::collectives SYSTEM INTERFACE "${DEVICE_SHIM_GLOO_INCLUDE}")
    target_compile_definitions(DeviceShim::collectives INTERFACE USE_C10D_GLOO)
  endif()
  set(nccl OFF)
  set(without_nccl "this LibTorch is for the CPU, without NCCL.")
  if(DEVICE_SHIM_LIB_torch_cuda)
    get_filename_component(torch_lib_dir "${DEVICE_SHIM_LIB_torch_cpu}" DIRECTORY)
    device_shim_find_nccl_headers("${torch_lib_dir}" folders without_nccl)
    if(NOT without_nccl)
      set(nccl ON)
      target_include_directories(DeviceShim::collectives SYSTEM INTERFACE ${folders})
      target_compile_definitions(DeviceShim::collectives INTERFACE USE_C10D_NCCL)
    elseif(gloo)
      message(WARNING "device_shim is built without NCCL: ${without_nccl}")
    endif()
  endif()
  if(NOT gloo AND NOT nccl)
    message(FATAL_ERROR "Neither Gloo nor NCCL can be compiled in. Gloo: install libgloo-dev (gloo/config.h). "
                        "NCCL: ${without_nccl}")
  endif()
  set(DEVICE_SHIM_WITHOUT_NCCL "${without_nccl}" CACHE INTERNAL "Why NCCL is not compiled in")
  set_property(GLOBAL PROPERTY DEVICE_SHIM_GLOO ${gloo})
  set_property(GLOBAL PROPERTY DEVICE_SHIM_NCCL ${nccl})
endfunction()
