#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <tuple>
#include <vector>

namespace moe {

struct MoeConfig {
  int64_t num_experts = 4;
  int64_t top_k = 2;
  int64_t capacity = 8;
  float jitter = 0.01f;
  bool renormalize = true;
};

struct GatingResult {
  torch::Tensor weights, indices, counts;
};

#define CHECK_CUDA(x) TORCH_CHECK((x).is_cuda(), #x " must be a CUDA tensor")
#define CHECK_CONTIGUOUS(x) TORCH_CHECK((x).is_contiguous(), #x " must be contiguous")
#define CHECK_INPUT(x)                                                                                       \
  CHECK_CUDA(x);                                                                                             \
  CHECK_CONTIGUOUS(x)
#define MOE_DEVICE_GUARD(x) const c10::cuda::OptionalCUDAGuard moe_guard(at::device_of(x))

constexpr int kThreads = 128;
inline int blocksFor(int64_t n) { return static_cast<int>((n + kThreads - 1) / kThreads); }

// gating.cu
GatingResult topk_gating(const torch::Tensor &logits, const MoeConfig &config);
GatingResult grouped_topk(const torch::Tensor &logits, const MoeConfig &config, int64_t groups);
torch::Tensor expert_histogram(const torch::Tensor &indices, const MoeConfig &config);
torch::Tensor router_jitter(const torch::Tensor &logits, const MoeConfig &config);
torch::Tensor capacity_mask(const torch::Tensor &counts, const MoeConfig &config);
std::vector<int64_t> load_per_expert(const torch::Tensor &indices, const MoeConfig &config);
double balance(const torch::Tensor &indices, const MoeConfig &config);

// dispatch.cu
torch::Tensor permute_tokens(const torch::Tensor &tokens, const torch::Tensor &indices, const MoeConfig &config);
torch::Tensor unpermute_tokens(const torch::Tensor &permuted, const torch::Tensor &order, const torch::Tensor &weights);
torch::Tensor scatter_by_offset(const torch::Tensor &tokens, const torch::Tensor &indices, const MoeConfig &config);
torch::Tensor gather_by_offset(const torch::Tensor &tokens, const torch::Tensor &counts);
torch::Tensor combine(const torch::Tensor &expert_out, const torch::Tensor &weights, c10::optional<torch::Tensor> residual);
torch::Tensor combine_into(torch::Tensor &out, const torch::Tensor &expert_out, const torch::Tensor &weights);
torch::Tensor dequantize_experts(const torch::Tensor &weights, const std::vector<float> &scales);
torch::Tensor quantize_tokens(const torch::Tensor &tokens, const std::vector<float> &scales);

} // namespace moe
