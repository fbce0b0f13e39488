/// Stand-in for CUDA's cuda_runtime.h: the C API and its typed forms.
#pragma once

#include "cuda_kernel_api.h"
#include "cuda_runtime_api.h"
#include "library_types.h"
#include "vector_functions.h"

#ifdef __CUDA__
// What nvcc reads before every source.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device_functions.h"
#include "device_launch_parameters.h"
#endif

#ifdef __cplusplus
template <typename T> inline cudaError_t cudaMalloc(T **pointer, size_t bytes) {
  return ::cudaMalloc(reinterpret_cast<void **>(pointer), bytes);
}
template <typename T> inline cudaError_t cudaMallocHost(T **pointer, size_t bytes) {
  return ::cudaMallocHost(reinterpret_cast<void **>(pointer), bytes);
}
template <typename T>
inline cudaError_t cudaMallocManaged(T **pointer, size_t bytes, unsigned int flags = cudaMemAttachGlobal) {
  return ::cudaMallocManaged(reinterpret_cast<void **>(pointer), bytes, flags);
}
template <typename T> inline cudaError_t cudaHostAlloc(T **pointer, size_t bytes, unsigned int flags) {
  return ::cudaHostAlloc(reinterpret_cast<void **>(pointer), bytes, flags);
}
#endif
