#include "moe.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime.h>

namespace moe {
namespace {

struct ExpertTable {
  const int *offsets;
  const float *scales;
  int64_t experts;
};

__global__ void order_kernel(const int *indices, int *order, int64_t n) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    order[i] = static_cast<int>(i);
}
template <typename T> __global__ void copy_rows_kernel(const T *in, const int *order, T *out, int64_t rows, int64_t width) {
  const int64_t i = blockIdx.x;
  for (int64_t c = threadIdx.x; c < width; c += blockDim.x)
    out[i * width + c] = in[order[i] * width + c];
}
template <typename T>
__global__ void weighted_rows_kernel(const T *in, const int *order, const float *weights, T *out, int64_t rows, int64_t width) {
  const int64_t i = blockIdx.x;
  for (int64_t c = threadIdx.x; c < width; c += blockDim.x)
    out[i * width + c] = in[order[i] * width + c] * weights[i];
}
__global__ void scatter_kernel(const float *in, const int *indices, const int *offsets, float *out, int64_t rows, int64_t width) {
  const int64_t i = blockIdx.x;
  for (int64_t c = threadIdx.x; c < width; c += blockDim.x)
    out[(offsets[indices[i]] + i) * width + c] = in[i * width + c];
}
__global__ void combine_kernel(const float *in, const float *weights, const float *residual, float *out, int64_t n) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = in[i] * weights[0] + (residual ? residual[i] : 0.f);
}
__global__ void dequantize_kernel(const int8_t *in, ExpertTable table, float *out, int64_t n) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = in[i] * table.scales[i % table.experts];
}

} // namespace

torch::Tensor permute_tokens(const torch::Tensor &tokens, const torch::Tensor &indices, const MoeConfig &config) {
  CHECK_INPUT(tokens);
  CHECK_INPUT(indices);
  const int64_t rows = indices.numel(), width = tokens.size(1);
  auto order = torch::empty({rows}, indices.options());
  auto out = torch::empty({rows, width}, tokens.options());
  {
    const c10::cuda::CUDAGuard device_guard(tokens.device());
    order_kernel<<<blocksFor(rows), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(indices.data_ptr<int>(),
                                                                                    order.data_ptr<int>(), rows);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }
  if (rows == 0)
    return out;
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(tokens.scalar_type(), "permute_tokens", ([&] {
    copy_rows_kernel<scalar_t><<<rows, kThreads, 0, at::cuda::getCurrentCUDAStream()>>>( // [[device-missing-guard]]
        tokens.data_ptr<scalar_t>(), order.data_ptr<int>(), out.data_ptr<scalar_t>(), rows, width);
  }));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

torch::Tensor unpermute_tokens(const torch::Tensor &permuted, const torch::Tensor &order, const torch::Tensor &weights) {
  CHECK_INPUT(permuted);
  CHECK_INPUT(order);
  CHECK_INPUT(weights);
  TORCH_CHECK(permuted.get_device() == order.get_device(), "permuted and order must be on one device");
  const int64_t rows = order.numel(), width = permuted.size(1);
  MOE_DEVICE_GUARD(permuted);
  auto out = torch::empty({rows, width}, permuted.options());
  auto scale = weights.to(permuted.device(), torch::kFloat).reshape({-1}).contiguous();
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(permuted.scalar_type(), "unpermute_tokens", ([&] {
    weighted_rows_kernel<scalar_t><<<rows, kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
        permuted.data_ptr<scalar_t>(), order.data_ptr<int>(), scale.data_ptr<float>(), out.data_ptr<scalar_t>(), rows, width);
  }));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

torch::Tensor scatter_by_offset(const torch::Tensor &tokens, const torch::Tensor &indices, const MoeConfig &config) {
  CHECK_INPUT(tokens);
  CHECK_INPUT(indices);
  const c10::cuda::CUDAGuard device_guard(tokens.device());
  // The counts are needed on the host as well, for the sizes of the messages.
  auto counts = torch::bincount(indices.reshape({-1}).to(torch::kCPU), {}, config.num_experts);
  auto offsets = (torch::cumsum(counts, 0) - counts).to(torch::kInt);
  auto out = torch::zeros({tokens.size(0) + config.num_experts * config.capacity, tokens.size(1)}, tokens.options());
  scatter_kernel<<<tokens.size(0), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>( // [[device-kernel-launch]]
      tokens.data_ptr<float>(), indices.data_ptr<int>(), offsets.data_ptr<int>(), out.data_ptr<float>(), tokens.size(0),
      tokens.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

torch::Tensor gather_by_offset(const torch::Tensor &tokens, const torch::Tensor &counts) {
  CHECK_INPUT(tokens);
  const c10::cuda::CUDAGuard device_guard(tokens.device());
  auto host = counts.to(torch::kCPU, torch::kLong);
  std::vector<int32_t> order;
  const auto count = host.accessor<int64_t, 1>();
  for (int64_t e = 0; e < host.numel(); ++e)
    order.insert(order.end(), static_cast<size_t>(count[e]), static_cast<int32_t>(e));
  if (order.empty())
    return torch::empty({0, tokens.size(1)}, tokens.options());
  auto rows = torch::tensor(order, torch::kInt).to(tokens.device());
  auto out = torch::empty({rows.numel(), tokens.size(1)}, tokens.options());
  copy_rows_kernel<float><<<rows.numel(), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      tokens.data_ptr<float>(), rows.data_ptr<int>(), out.data_ptr<float>(), rows.numel(), tokens.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

torch::Tensor combine(const torch::Tensor &expert_out, const torch::Tensor &weights, c10::optional<torch::Tensor> residual) {
  CHECK_INPUT(expert_out);
  CHECK_INPUT(weights);
  c10::cuda::OptionalCUDAGuard device_guard;
  const float *residual_data = nullptr;
  if (residual.has_value()) {
    CHECK_INPUT(*residual);
    TORCH_CHECK(residual->sizes() == expert_out.sizes(), "the residual has another shape");
    device_guard.set_device(residual->device());
    residual_data = residual->data_ptr<float>();
  }
  auto out = torch::empty_like(expert_out);
  combine_kernel<<<blocksFor(out.numel()), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>( // [[device-missing-guard]]
      expert_out.data_ptr<float>(), weights.data_ptr<float>(), residual_data, out.data_ptr<float>(), out.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

torch::Tensor combine_into(torch::Tensor &out, const torch::Tensor &expert_out, const torch::Tensor &weights) {
  CHECK_INPUT(out);
  CHECK_INPUT(expert_out);
  c10::cuda::OptionalCUDAGuard device_guard;
  device_guard.set_index(static_cast<c10::DeviceIndex>(out.get_device()));
  combine_kernel<<<blocksFor(out.numel()), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      expert_out.data_ptr<float>(), weights.data_ptr<float>(), nullptr, out.data_ptr<float>(), out.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

torch::Tensor dequantize_experts(const torch::Tensor &weights, const std::vector<float> &scales) {
  CHECK_INPUT(weights);
  TORCH_CHECK(weights.scalar_type() == torch::kChar, "weights must be int8");
  const at::cuda::OptionalCUDAGuard device_guard(device_of(weights));
  auto scale = torch::tensor(scales);
  auto out = torch::empty(weights.sizes(), weights.options().dtype(torch::kFloat));
  ExpertTable table{nullptr, scale.data_ptr<float>(), static_cast<int64_t>(scales.size())};
  dequantize_kernel<<<blocksFor(out.numel()), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>( // [[device-kernel-launch]]
      weights.data_ptr<int8_t>(), table, out.data_ptr<float>(), out.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

torch::Tensor quantize_tokens(const torch::Tensor &tokens, const std::vector<float> &scales) {
  CHECK_INPUT(tokens);
  const at::cuda::OptionalCUDAGuard device_guard(device_of(tokens));
  auto scale = torch::tensor(scales, torch::dtype(torch::kFloat).device(tokens.device()));
  auto q = torch::round(tokens / scale.mean()).clamp(-127, 127).to(torch::kChar);
  auto out = torch::empty(tokens.sizes(), tokens.options());
  ExpertTable table{nullptr, scale.data_ptr<float>(), static_cast<int64_t>(scales.size())};
  dequantize_kernel<<<blocksFor(out.numel()), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(q.data_ptr<int8_t>(), table,
                                                                                              out.data_ptr<float>(), out.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

} // namespace moe

#ifdef DT_RUN
#include "../../shim/driver.h"
using namespace moe;
static MoeConfig config;
static auto logits() { return dtl::gpu({6, 4}); }
static auto indices() { return dtl::ints({6, 2}); }
void topk_bad() { topk_gating(logits(), config); }
void grouped_ok() { grouped_topk(logits(), config, 2); }
void histogram_ok() { expert_histogram(indices(), config); }
void jitter_bad() { router_jitter(logits(), config); }
void capacity_ok() { capacity_mask(dtl::ints({4}), config); }
void load_bad() { load_per_expert(indices(), config); }
void balance_ok() { balance(indices(), config); }
void permute_bad() { permute_tokens(dtl::gpu({6, 8}), indices(), config); }
void unpermute_ok() { unpermute_tokens(dtl::gpu({6, 8}), dtl::ints({6}), dtl::gpu({6})); }
void scatter_bad() { scatter_by_offset(dtl::gpu({6, 8}), dtl::ints({6}), config); }
void gather_ok() { gather_by_offset(dtl::gpu({6, 8}), torch::ones({4}, torch::kInt)); }
void combine_bad() { combine(dtl::gpu({6, 8}), dtl::gpu({6}), {}); }
void combine_into_ok() { auto out = dtl::gpu({6, 8}); combine_into(out, dtl::gpu({6, 8}), dtl::gpu({6})); }
void dequantize_bad() { dequantize_experts(dtl::ints({4, 4}).to(torch::kChar), {1, 2, 3, 4}); }
void quantize_ok() { quantize_tokens(dtl::gpu({6, 8}), {1, 2}); }
DT_MAIN(topk_bad, grouped_ok, histogram_ok, jitter_bad, capacity_ok, load_bad, balance_ok, permute_bad, unpermute_ok, scatter_bad,
        gather_ok, combine_bad, combine_into_ok, dequantize_bad, quantize_ok)
#endif
