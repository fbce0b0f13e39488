/// Stand-in for ATen/cuda/CUDAContextLight.h of PyTorch (2.x; part of CUDAContext.h before).
#pragma once

#include <ATen/cuda/Exceptions.h>
#include <c10/core/Allocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <cublasLt.h>
#include <cusolverDn.h>
#include <cusparse.h>

namespace at {
namespace cuda {

inline int64_t getNumGPUs() { return c10::cuda::device_count(); }
inline bool is_available() { return c10::cuda::device_count() > 0; }

/// Of a made-up device that behaves like a common GPU; totalGlobalMem is the memory it was given.
C10_CUDA_API cudaDeviceProp *getDeviceProperties(c10::DeviceIndex device);
inline cudaDeviceProp *getCurrentDeviceProperties() {
  return getDeviceProperties(c10::cuda::current_device());
}
inline int warp_size() { return getCurrentDeviceProperties()->warpSize; }
C10_CUDA_API bool canDeviceAccessPeer(c10::DeviceIndex device, c10::DeviceIndex peer);
C10_CUDA_API c10::Allocator *getCUDADeviceAllocator();

// Nothing implements these: they are for reading sources that use CUDA's libraries.
cublasHandle_t getCurrentCUDABlasHandle();
cublasLtHandle_t getCurrentCUDABlasLtHandle();
cusparseHandle_t getCurrentCUDASparseHandle();
cusolverDnHandle_t getCurrentCUDASolverDnHandle();

} // namespace cuda
} // namespace at
