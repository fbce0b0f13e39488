/// Stand-in for c10/cuda/CUDAException.h of PyTorch: CUDA errors as C++ exceptions.
#pragma once

#include <c10/cuda/CUDAMacros.h>
#include <c10/util/Exception.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

namespace c10 {

class CUDAError : public c10::Error {
  using Error::Error;
};

namespace cuda {

/// Throws c10::CUDAError ("CUDA error: ...") unless `error` is cudaSuccess; clears the thread's last error.
C10_CUDA_API void throwOnError(cudaError_t error, const char *function, const char *file, unsigned line);

} // namespace cuda
} // namespace c10

#define C10_CUDA_CHECK(EXPR) ::c10::cuda::throwOnError((EXPR), __func__, __FILE__, __LINE__)
#define C10_CUDA_CHECK_WARN(EXPR)                                                                            \
  do {                                                                                                       \
    const cudaError_t cudaCheckError = (EXPR);                                                               \
    if (cudaCheckError != cudaSuccess) {                                                                     \
      (void)cudaGetLastError();                                                                              \
      TORCH_WARN("CUDA warning: ", cudaGetErrorString(cudaCheckError));                                      \
    }                                                                                                        \
  } while (0)
#define C10_CUDA_ERROR_HANDLED(EXPR) EXPR
#define C10_CUDA_IGNORE_ERROR(EXPR)                                                                          \
  do {                                                                                                       \
    if ((EXPR) != cudaSuccess)                                                                               \
      (void)cudaGetLastError();                                                                              \
  } while (0)
#define C10_CUDA_CLEAR_ERROR() ((void)cudaGetLastError())
/// There are no kernel launches here, so there is nothing to check behind one.
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
