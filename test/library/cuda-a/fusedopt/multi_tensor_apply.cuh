#pragma once

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#include <vector>

constexpr int kMaxTensors = 24;
constexpr int kDepthMax = 4;
constexpr int kChunk = 2048 * 32;

template <int Depth> struct TensorListMetadata {
  void *addresses[Depth][kMaxTensors];
  int64_t sizes[kMaxTensors];
  int count;
};

template <typename Metadata, typename Functor, typename... Args>
__global__ void multi_tensor_apply_kernel(int64_t chunk_size, volatile int *noop, Metadata metadata, Functor functor,
                                          Args... args) {
  functor(chunk_size, noop, metadata, args...);
}

/// Runs the functor over lists of tensors, `Depth` of them, in as many launches as are needed. The caller makes the
/// device of the tensors current.
template <int Depth, typename Functor, typename... Args>
void multi_tensor_apply(int64_t chunk_size, const at::Tensor &noop, const std::vector<std::vector<at::Tensor>> &lists,
                        Functor functor, Args... args) {
  TORCH_CHECK(lists.size() == Depth, "expected ", Depth, " lists, got ", lists.size());
  const size_t tensors = lists[0].size();
  const auto stream = at::cuda::getCurrentCUDAStream();
  for (size_t first = 0; first < tensors; first += kMaxTensors) {
    TensorListMetadata<Depth> metadata{};
    for (size_t t = first; t < std::min(tensors, first + kMaxTensors); ++t) {
      for (int d = 0; d < Depth; ++d)
        metadata.addresses[d][metadata.count] = lists[d][t].data_ptr();
      metadata.sizes[metadata.count++] = lists[0][t].numel();
    }
    multi_tensor_apply_kernel<<<metadata.count, 512, 0, stream>>>(chunk_size, noop.data_ptr<int>(), metadata, functor,
                                                                  args...);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }
}
