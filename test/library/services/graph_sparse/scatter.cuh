#pragma once

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/torch.h>

#define THREADS 256
#define BLOCKS(N) static_cast<int>(((N) + THREADS - 1) / THREADS)
#define CHECK_CUDA(x) TORCH_CHECK((x).is_cuda(), #x " must be a CUDA tensor")
#define CHECK_INPUT(x)                                                                                       \
  CHECK_CUDA(x);                                                                                             \
  TORCH_CHECK((x).is_contiguous(), #x " must be contiguous")

namespace gs {

enum class Reduce { kSum, kMin, kMax };

template <typename T, Reduce R>
struct Reducer {
  static __device__ T init() { return T(0); }
  static __device__ void update(T* to, T value) {
    if (R == Reduce::kSum)
      *to += value;
    else if (R == Reduce::kMin ? value < *to : value > *to)
      *to = value;
  }
};

template <typename T, Reduce R>
__global__ void scatter_kernel(const T* src, const int64_t* index, T* out, int64_t count) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    Reducer<T, R>::update(out + index[i], src[i]);
}

template <typename T, Reduce R>
__global__ void segment_kernel(const T* src, const int64_t* indptr, T* out, int64_t rows) {
  const int64_t row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  T sum = Reducer<T, R>::init();
  for (int64_t i = indptr[row]; i < indptr[row + 1]; ++i)
    Reducer<T, R>::update(&sum, src[i]);
  out[row] = sum;
}

#define LAUNCH_REDUCE(KERNEL, COUNT, ...)                                                                    \
  switch (reduce) {                                                                                          \
    case Reduce::kSum:                                                                                       \
      KERNEL<scalar_t, Reduce::kSum><<<BLOCKS(COUNT), THREADS>>>(__VA_ARGS__, COUNT);                        \
      break;                                                                                                 \
    case Reduce::kMin:                                                                                       \
      KERNEL<scalar_t, Reduce::kMin><<<BLOCKS(COUNT), THREADS>>>(__VA_ARGS__, COUNT);                        \
      break;                                                                                                 \
    default:                                                                                                 \
      KERNEL<scalar_t, Reduce::kMax><<<BLOCKS(COUNT), THREADS>>>(__VA_ARGS__, COUNT);                        \
  }

} // namespace gs
