/// Stand-in for ATen/cuda/CUDAGeneratorImpl.h of PyTorch: the generators of the virtual GPUs.
#pragma once

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <c10/cuda/CUDAFunctions.h>

namespace at {
namespace cuda {
namespace detail {

/// A negative device means the current one.
inline const Generator &getDefaultCUDAGenerator(c10::DeviceIndex device = -1) {
  c10::DeviceIndex index = device < 0 ? c10::cuda::current_device() : device;
  return globalContext().defaultGenerator(c10::Device(c10::kCUDA, index));
}

} // namespace detail
} // namespace cuda
} // namespace at
