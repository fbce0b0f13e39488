#include "moe.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <numeric>

namespace moe {
namespace {

template <typename scalar_t, int kTopK>
__global__ void topk_kernel(const scalar_t *__restrict__ logits, float *weights, int *indices, int64_t tokens, int64_t experts,
                            bool renormalize) {
  const int64_t token = blockIdx.x * blockDim.x + threadIdx.x;
  if (token >= tokens)
    return;
  for (int k = 0; k < kTopK; ++k) {
    indices[token * kTopK + k] = k;
    weights[token * kTopK + k] = static_cast<float>(logits[token * experts + k]);
  }
}

__global__ void count_kernel(const int *indices, int *counts, int64_t n) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    counts[indices[i]] += 1;
}

__global__ void jitter_kernel(const float *logits, const float *noise, float *out, float scale, int64_t n) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = logits[i] + scale * noise[i];
}

__global__ void mask_kernel(const int *counts, bool *mask, int64_t capacity, int64_t n) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    mask[i] = counts[i] < capacity;
}

template <typename scalar_t>
void launchTopk(const scalar_t *logits, float *weights, int *indices, int64_t tokens, int64_t experts, int64_t top_k,
                bool renormalize, cudaStream_t stream) {
  const int blocks = blocksFor(tokens);
  switch (top_k) {
  case 1:
    topk_kernel<scalar_t, 1><<<blocks, kThreads, 0, stream>>>(logits, weights, indices, tokens, experts, renormalize);
    break;
  case 2:
    topk_kernel<scalar_t, 2><<<blocks, kThreads, 0, stream>>>(logits, weights, indices, tokens, experts, renormalize);
    break;
  default:
    TORCH_CHECK(false, "top_k of ", top_k, " is not supported");
  }
}

torch::Tensor countExperts(const torch::Tensor &indices, int64_t experts) {
  auto counts = torch::zeros({experts}, indices.options());
  count_kernel<<<blocksFor(indices.numel()), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      indices.data_ptr<int>(), counts.data_ptr<int>(), indices.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return counts;
}

} // namespace

GatingResult topk_gating(const torch::Tensor &logits, const MoeConfig &config) {
  CHECK_INPUT(logits);
  TORCH_CHECK(logits.dim() == 2 && logits.size(1) == config.num_experts, "logits must be [tokens, experts]");
  const int64_t tokens = logits.size(0);
  GatingResult result;
  result.weights = torch::empty({tokens, config.top_k}, logits.options().dtype(torch::kFloat));
  result.indices = torch::empty({tokens, config.top_k}, logits.options().dtype(torch::kInt));
  if (tokens == 0)
    return result;
  auto stream = at::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES(logits.scalar_type(), "topk_gating", [&] {
    launchTopk<scalar_t>(logits.data_ptr<scalar_t>(), result.weights.data_ptr<float>(), result.indices.data_ptr<int>(), tokens, // [[device-missing-guard]]
                         config.num_experts, config.top_k, config.renormalize, stream);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return result;
}

GatingResult grouped_topk(const torch::Tensor &logits, const MoeConfig &config, int64_t groups) {
  CHECK_INPUT(logits);
  TORCH_CHECK(groups > 0 && config.num_experts % groups == 0, "the experts do not divide into ", groups, " groups");
  MOE_DEVICE_GUARD(logits);
  const int64_t tokens = logits.size(0);
  auto best = std::get<0>(logits.view({tokens, groups, -1}).max(2));
  auto keep = (best >= best.mean(1, true)).repeat_interleave(config.num_experts / groups, 1);
  auto masked = logits.masked_fill(~keep, -1e9).contiguous();
  GatingResult result;
  result.weights = torch::empty({tokens, config.top_k}, masked.options().dtype(torch::kFloat));
  result.indices = torch::empty({tokens, config.top_k}, masked.options().dtype(torch::kInt));
  AT_DISPATCH_FLOATING_TYPES(masked.scalar_type(), "grouped_topk", [&] {
    launchTopk<scalar_t>(masked.data_ptr<scalar_t>(), result.weights.data_ptr<float>(), result.indices.data_ptr<int>(), tokens,
                         config.num_experts, config.top_k, config.renormalize, at::cuda::getCurrentCUDAStream());
  });
  result.indices.zero_();
  result.counts = countExperts(result.indices, config.num_experts);
  return result;
}

torch::Tensor expert_histogram(const torch::Tensor &indices, const MoeConfig &config) {
  CHECK_INPUT(indices);
  TORCH_CHECK(indices.scalar_type() == torch::kInt, "indices must be int32");
  int previous = 0;
  C10_CUDA_CHECK(cudaGetDevice(&previous));
  C10_CUDA_CHECK(cudaSetDevice(indices.get_device()));
  auto counts = countExperts(indices, config.num_experts);
  C10_CUDA_CHECK(cudaSetDevice(previous));
  return counts;
}

torch::Tensor router_jitter(const torch::Tensor &logits, const MoeConfig &config) {
  CHECK_INPUT(logits);
  auto noise = torch::rand(logits.sizes(), torch::TensorOptions().dtype(torch::kFloat).device(torch::kCUDA)) * 2 - 1;
  auto out = torch::empty_like(logits);
  const c10::cuda::CUDAGuard device_guard(logits.device());
  const int64_t n = logits.numel();
  jitter_kernel<<<blocksFor(n), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>( // [[device-lost-index]]
      logits.data_ptr<float>(), noise.data_ptr<float>(), out.data_ptr<float>(), config.jitter, n);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

torch::Tensor capacity_mask(const torch::Tensor &counts, const MoeConfig &config) {
  CHECK_INPUT(counts);
  const c10::cuda::CUDAGuard device_guard(counts.device());
  auto mask = torch::empty({counts.numel()}, torch::TensorOptions().dtype(torch::kBool).device(torch::kCUDA));
  mask_kernel<<<blocksFor(counts.numel()), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      counts.data_ptr<int>(), mask.data_ptr<bool>(), config.capacity, counts.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return mask;
}

std::vector<int64_t> load_per_expert(const torch::Tensor &indices, const MoeConfig &config) {
  CHECK_INPUT(indices);
  const c10::cuda::CUDAGuard device_guard(indices.device());
  auto counts = countExperts(indices, config.num_experts);
  const int *count = counts.data_ptr<int>();
  std::vector<int64_t> load(static_cast<size_t>(config.num_experts));
  for (int64_t e = 0; e < config.num_experts; ++e)
    load[static_cast<size_t>(e)] = count[e]; // [[device-host-access]]
  return load;
}

double balance(const torch::Tensor &indices, const MoeConfig &config) {
  CHECK_INPUT(indices);
  const c10::cuda::CUDAGuard device_guard(indices.device());
  const auto counts = countExperts(indices, config.num_experts).to(torch::kCPU);
  const int *first = counts.data_ptr<int>();
  const auto total = std::accumulate(first, first + counts.numel(), int64_t{0});
  return static_cast<double>(*std::max_element(first, first + counts.numel())) / static_cast<double>(std::max<int64_t>(total, 1));
}

} // namespace moe
