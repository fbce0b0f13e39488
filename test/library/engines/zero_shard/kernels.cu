#include "zero.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

namespace zero {

namespace {

constexpr int kMaxTensors = 8;

struct TensorList {
  float* data[kMaxTensors];
  int64_t sizes[kMaxTensors];
  int count;
};

__global__ void adam_kernel(int64_t n, float* p, const float* g, float* m, float* v, AdamOptions o) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    m[i] = o.beta1 * m[i] + (1 - o.beta1) * g[i];
    v[i] = o.beta2 * v[i] + (1 - o.beta2) * g[i] * g[i];
    p[i] -= o.lr * m[i] / (sqrtf(v[i]) + o.eps);
  }
}

__global__ void scale_kernel(int64_t n, float* g, float factor) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    g[i] *= factor;
}

__global__ void pack_kernel(int64_t n, const float* from, float* to) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    to[i] = from[i];
}

inline int blocks(int64_t n) { return static_cast<int>((n + 511) / 512); }

} // namespace

void adam_step(torch::Tensor& param, const torch::Tensor& grad, torch::Tensor& m, torch::Tensor& v,
               const AdamOptions& options) {
  const c10::cuda::CUDAGuard guard(param.device());
  adam_kernel<<<blocks(param.numel()), 512, 0, at::cuda::getCurrentCUDAStream()>>>(param.numel(), param.data_ptr<float>(), grad.data_ptr<float>(), m.data_ptr<float>(), v.data_ptr<float>(), options); // [[device-kernel-launch]]
}

void unscale(const std::vector<torch::Tensor>& grads, float inverse) {
  for (const auto& g : grads) {
    if (!g.defined())
      continue;
    TORCH_CHECK(g.is_cuda(), "gradients are on the GPU of the rank");
    scale_kernel<<<blocks(g.numel()), 512, 0, at::cuda::getCurrentCUDAStream(g.get_device())>>>(g.numel(), g.data_ptr<float>(), inverse); // [[device-missing-guard]]
  }
}

void unscale_each(const std::vector<torch::Tensor>& grads, float inverse) {
  c10::cuda::OptionalCUDAGuard guard;
  for (const auto& g : grads) {
    if (!g.defined())
      continue;
    guard.set_index(g.device().index());
    scale_kernel<<<blocks(g.numel()), 512, 0, at::cuda::getCurrentCUDAStream()>>>(g.numel(), g.data_ptr<float>(), inverse);
  }
}

torch::Tensor pack_bucket(const std::vector<torch::Tensor>& tensors) {
  TORCH_CHECK(!tensors.empty());
  const auto device = tensors.front().device();
  const c10::cuda::CUDAGuard guard(device);
  int64_t total = 0;
  for (const auto& t : tensors)
    total += t.numel();
  auto bucket = torch::zeros({total}, torch::kCUDA);
  int64_t offset = 0;
  for (const auto& t : tensors) {
    const auto source = t.detach().to(device).contiguous();
    pack_kernel<<<blocks(t.numel()), 512, 0, at::cuda::getCurrentCUDAStream()>>>(t.numel(), source.data_ptr<float>(),
                                                                               bucket.data_ptr<float>() + offset);
    offset += t.numel();
  }
  return bucket;
}

} // namespace zero
