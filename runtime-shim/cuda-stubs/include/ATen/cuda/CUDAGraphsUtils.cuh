/// Stand-in for ATen/cuda/CUDAGraphsUtils.cuh of PyTorch.
#pragma once

#include <ATen/cuda/CUDAGeneratorImpl.h>

#include <host_defines.h>

#include <tuple>

namespace at {
namespace cuda {
namespace philox {

__device__ std::tuple<uint64_t, uint64_t> unpack(PhiloxCudaState state);

} // namespace philox
} // namespace cuda
} // namespace at
