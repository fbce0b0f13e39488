#pragma once

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/torch.h>

#include <vector>

namespace fused {

constexpr int kMaxTensors = 24;
constexpr int kMaxBlocks = 80;
constexpr int kBlockSize = 512;

using TensorLists = std::vector<std::vector<at::Tensor>>;

template <int depth>
struct TensorListMetadata {
  void* addresses[depth][kMaxTensors];
  int64_t sizes[kMaxTensors];
  unsigned char block_to_tensor[kMaxBlocks];
  int block_to_chunk[kMaxBlocks];
};

template <typename T, typename U, typename... Args>
__global__ void multi_tensor_apply_kernel(int64_t chunk_size, volatile int* noop, T lists, U callable, Args... args) {
  callable(chunk_size, noop, lists, args...);
}

template <int depth, typename U, typename... Args>
void multi_tensor_apply(int64_t chunk_size, const at::Tensor& noop_flag, const TensorLists& tensors, U callable,
                        Args... args) {
  TORCH_CHECK(tensors.size() == depth, "tensor_lists.size() != depth");
  const size_t count = tensors[0].size();
  TORCH_CHECK(count > 0 && tensors[0][0].is_cuda(), "expected lists of CUDA tensors");
  for (const auto& list : tensors)
    for (size_t t = 0; t < list.size(); ++t)
      TORCH_CHECK(list[t].device() == tensors[0][0].device(), "a tensor was not on the same device as the first one");

  TensorListMetadata<depth> lists{};
  const at::cuda::OptionalCUDAGuard device_guard(at::device_of(tensors[0][0]));
  const auto stream = at::cuda::getCurrentCUDAStream();
  int blocks = 0, used = 0;
  for (size_t t = 0; t < count; ++t) {
    lists.sizes[used] = tensors[0][t].numel();
    for (int d = 0; d < depth; ++d)
      lists.addresses[d][used] = tensors[d][t].data_ptr();
    ++used;
    const int64_t chunks = (tensors[0][t].numel() + chunk_size - 1) / chunk_size;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      lists.block_to_tensor[blocks] = static_cast<unsigned char>(used - 1);
      lists.block_to_chunk[blocks++] = static_cast<int>(chunk);
      const bool full = used == kMaxTensors && chunk == chunks - 1, last = t + 1 == count && chunk == chunks - 1;
      if (blocks < kMaxBlocks && !full && !last)
        continue;
      multi_tensor_apply_kernel<<<blocks, kBlockSize, 0, stream>>>(chunk_size, noop_flag.data_ptr<int>(), lists,
                                                                   callable, args...);
      blocks = 0;
      used = 0;
    }
  }
}

} // namespace fused
