#include "sharded_table.h"

namespace embshards {
namespace {

__global__ void pooled_kernel(const float *__restrict__ weight, const int64_t *__restrict__ indices,
                              const int64_t *__restrict__ offsets, float *__restrict__ out, int64_t dim, int64_t total,
                              int64_t samples, bool mean) {
  const int64_t sample = blockIdx.x;
  const int64_t first = offsets[sample], last = sample + 1 < samples ? offsets[sample + 1] : total;
  for (int64_t d = threadIdx.x; d < dim; d += blockDim.x) {
    float sum = 0;
    for (int64_t i = first; i < last; ++i)
      sum += weight[indices[i] * dim + d];
    out[sample * dim + d] = mean && last > first ? sum / static_cast<float>(last - first) : sum;
  }
}

__global__ void sgd_rows_kernel(float *weight, const int64_t *indices, const float *grad, float lr, int64_t dim) {
  for (int64_t d = threadIdx.x; d < dim; d += blockDim.x)
    atomicAdd(weight + indices[blockIdx.x] * dim + d, -lr * grad[blockIdx.x * dim + d]);
}

__global__ void touch_kernel(const float *weight, float *out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n)
    out[0] += weight[i] * 0;
}

} // namespace

torch::Tensor pooled_lookup(const torch::Tensor &weight, const Bags &bags, Pooling pooling) {
  TORCH_CHECK(weight.is_cuda() && weight.is_contiguous(), "pooled_lookup: expected a contiguous table on a GPU");
  TORCH_CHECK(bags.indices.device() == weight.device(), "indices on ", bags.indices.device(), ", table on ",
              weight.device());
  const c10::cuda::CUDAGuard guard(weight.device());
  auto out = torch::empty({bags.samples(), weight.size(1)}, weight.options());
  pooled_kernel<<<bags.samples(), 128, 0, at::cuda::getCurrentCUDAStream()>>>(
      weight.data_ptr<float>(), bags.indices.data_ptr<int64_t>(), bags.offsets.data_ptr<int64_t>(), out.data_ptr<float>(),
      weight.size(1), bags.indices.numel(), bags.samples(), pooling == Pooling::kMean);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

void pooled_lookup_out(const torch::Tensor &weight, const Bags &bags, torch::Tensor &out,
                       const c10::cuda::CUDAStream &stream) {
  TORCH_CHECK(weight.is_cuda() && out.device() == weight.device());
  pooled_kernel<<<bags.samples(), 128, 0, stream>>>( // [[device-missing-guard]]
      weight.data_ptr<float>(), bags.indices.data_ptr<int64_t>(), bags.offsets.data_ptr<int64_t>(), out.data_ptr<float>(),
      weight.size(1), bags.indices.numel(), bags.samples(), false);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void sgd_rows(torch::Tensor weight, const torch::Tensor &indices, const torch::Tensor &grad, double lr) {
  if (indices.numel() == 0)
    return;
  const c10::DeviceGuard guard(weight.device());
  const auto rows = indices.to(weight.device()).contiguous();
  const auto values = grad.to(weight.options()).contiguous();
  sgd_rows_kernel<<<rows.numel(), 64, 0, at::cuda::getCurrentCUDAStream()>>>(
      weight.data_ptr<float>(), rows.data_ptr<int64_t>(), values.data_ptr<float>(), static_cast<float>(lr), weight.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

/// Loads the pages of a table and returns a number nobody needs.
torch::Tensor warm_up(const torch::Tensor &weight) {
  TORCH_CHECK(weight.is_cuda());
  auto sink = torch::zeros({1}, torch::kCUDA);
  c10::cuda::OptionalCUDAGuard guard;
  if (weight.get_device() != c10::cuda::current_device())
    guard.set_device(weight.device());
  touch_kernel<<<(weight.numel() + 255) / 256, 256>>>(weight.data_ptr<float>(), sink.data_ptr<float>(), weight.numel()); // [[device-lost-index]]
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return sink;
}

} // namespace embshards
