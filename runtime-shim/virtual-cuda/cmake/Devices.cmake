# The devices, one library for each release of LibTorch.
set(rules_inc ${CMAKE_CURRENT_BINARY_DIR}/OpRules.inc)
add_custom_command(
  OUTPUT ${rules_inc}
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/tools/make_rules.py
          ${CMAKE_CURRENT_SOURCE_DIR}/data/op_rules.csv ${rules_inc}
  DEPENDS tools/make_rules.py data/op_rules.csv
  VERBATIM)

add_library(virtual_cuda_torch SHARED
  Allocator.cpp
  AttentionKernel.cpp
  Blocks.cpp
  Determinism.cpp
  DeviceCheck.cpp
  DeviceOrigins.cpp
  Devices.cpp
  DistributedParts.cpp
  DropoutKernel.cpp
  Fallback.cpp
  Generator.cpp
  GpuOnlyKernels.cpp
  Guard.cpp
  Hooks.cpp
  HostAlias.cpp
  HostMemory.cpp
  Implementation.cpp
  Isolation.cpp
  KernelCall.cpp
  MemoryKernels.cpp
  OpTable.cpp
  OthersDevices.cpp
  PinnedMemory.cpp
  RecurrentKernels.cpp
  Registration.cpp
  SparseTensors.cpp
  SyncBatchNorm.cpp
  Trace.cpp
  ${rules_inc})
# The header of c10d's Gloo process group includes Gloo's, which no LibTorch package brings.
find_path(VIRTUAL_CUDA_GLOO gloo/config.h)
add_library(virtual_cuda_gloo INTERFACE)
if(VIRTUAL_CUDA_GLOO)
  target_include_directories(virtual_cuda_gloo SYSTEM INTERFACE ${VIRTUAL_CUDA_GLOO})
  target_compile_definitions(virtual_cuda_gloo INTERFACE USE_C10D_GLOO)
else()
  message(WARNING "Virtual GPUs are built without gloo/config.h (libgloo-dev): programs that add tensors of several "
                  "ranks over Gloo crash with a newer LibTorch.")
endif()
target_link_libraries(virtual_cuda_torch PRIVATE virtual_cuda_records virtual_cuda_gloo)
target_precompile_headers(virtual_cuda_torch PRIVATE <ATen/ATen.h> <ATen/core/dispatch/Dispatcher.h>)
