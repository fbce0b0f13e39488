#pragma once

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#define CHECK_CUDA(x) TORCH_CHECK((x).is_cuda(), #x " must be a CUDA tensor")
#define CHECK_CONTIGUOUS(x) TORCH_CHECK((x).is_contiguous(), #x " must be contiguous")
#define CHECK_IS_FLOAT(x) TORCH_CHECK((x).scalar_type() == at::ScalarType::Float, #x " must be a float tensor")
#define CHECK_INPUT(x)                                                                                       \
  CHECK_CUDA(x);                                                                                             \
  CHECK_CONTIGUOUS(x)
#define POINTOPS_DEVICE_SCOPE(x) const at::cuda::OptionalCUDAGuard pointops_scope_##x(at::device_of(x))

constexpr int kThreadsPerBlock = 256;
constexpr int kMaxThreads = 1024;

inline int opt_n_threads(int work_size) {
  const int pow_2 = static_cast<int>(std::log2(static_cast<double>(std::max(work_size, 1))));
  return std::max(std::min(1 << pow_2, kMaxThreads), 1);
}

inline dim3 grid_for(int64_t work, int64_t batch = 1) {
  return dim3(static_cast<unsigned>((work + kThreadsPerBlock - 1) / kThreadsPerBlock), static_cast<unsigned>(batch));
}
