/// Stand-in for ATen/cuda/CUDAUtils.h of PyTorch.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContext.h>

#include <algorithm>

namespace at {
namespace cuda {

/// Whether all tensors are on the current device.
inline bool check_device(ArrayRef<Tensor> tensors) {
  const Device current(kCUDA, c10::cuda::current_device());
  return std::all_of(tensors.begin(), tensors.end(),
                     [&](const Tensor &tensor) { return tensor.device() == current; });
}

} // namespace cuda
} // namespace at
