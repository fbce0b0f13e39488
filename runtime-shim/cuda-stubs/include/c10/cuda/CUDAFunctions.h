/// Stand-in for c10/cuda/CUDAFunctions.h of PyTorch. The current device is that of the virtual GPUs; it is
/// per thread, and the same one that c10::DeviceGuard and device-less CUDA options use.
#pragma once

#include <c10/core/Device.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAMacros.h>
#include <cuda_runtime_api.h>

namespace c10 {
namespace cuda {

/// 0 when the program runs without virtual GPUs.
C10_CUDA_API DeviceIndex device_count() noexcept;

/// Throws c10::Error when there are none.
C10_CUDA_API DeviceIndex device_count_ensure_non_zero();

C10_CUDA_API DeviceIndex current_device();

/// Throws c10::Error, "CUDA error: invalid device ordinal", when there is no such device.
C10_CUDA_API void set_device(DeviceIndex device);

/// The same with error codes. The index was an int before it was a DeviceIndex.
template <typename Index> cudaError_t GetDevice(Index *device) {
  int current = 0;
  cudaError_t error = cudaGetDevice(&current);
  if (error == cudaSuccess)
    *device = static_cast<Index>(current);
  return error;
}
inline cudaError_t SetDevice(DeviceIndex device) { return cudaSetDevice(device); }
inline cudaError_t MaybeSetDevice(DeviceIndex device) { return cudaSetDevice(device); }

/// Returns the device that was current.
C10_CUDA_API DeviceIndex ExchangeDevice(DeviceIndex device);
/// The same, except that a negative index changes nothing.
C10_CUDA_API DeviceIndex MaybeExchangeDevice(DeviceIndex device);

C10_CUDA_API void device_synchronize();

inline void stream_synchronize(cudaStream_t stream) { C10_CUDA_CHECK(cudaStreamSynchronize(stream)); }

inline void memcpy_and_sync(void *target, const void *source, int64_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  C10_CUDA_CHECK(cudaMemcpyAsync(target, source, static_cast<size_t>(bytes), kind, stream));
}

} // namespace cuda
} // namespace c10
