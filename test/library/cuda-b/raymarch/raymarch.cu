#include "raymarch.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#define CHECK_CUDA(x) TORCH_CHECK(x.device().is_cuda(), #x " must be a CUDA tensor")
#define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be a contiguous tensor")
#define RAYMARCH_GUARD(tensor)                                                                               \
  CHECK_CUDA(tensor);                                                                                        \
  const c10::cuda::CUDAGuard raymarch_guard { tensor.device() }

namespace raymarch {
namespace {

constexpr uint32_t kThreads = 128;

template <typename T> inline T div_round_up(T value, T divisor) { return (value + divisor - 1) / divisor; }

__global__ void near_far_kernel(const float *__restrict__ rays_o, const float *__restrict__ rays_d,
                                const float *__restrict__ aabb, uint32_t n, float min_near, float *nears, float *fars) {
  const uint32_t i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n)
    return;
  const float t = (aabb[0] - rays_o[i * 3]) / rays_d[i * 3];
  nears[i] = fmaxf(t, min_near);
  fars[i] = (aabb[3] - rays_o[i * 3]) / rays_d[i * 3];
}

__global__ void packbits_kernel(const float *__restrict__ grid, uint32_t n, float threshold, uint8_t *bitfield) {
  const uint32_t i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n)
    return;
  uint8_t bits = 0;
  for (uint8_t k = 0; k < 8; ++k)
    bits |= grid[i * 8 + k] > threshold ? 1 << k : 0;
  bitfield[i] = bits;
}

__global__ void march_kernel(const float *rays_o, const float *rays_d, const uint8_t *bitfield, uint32_t n,
                             uint32_t max_steps, float *samples, int *counter) {
  const uint32_t i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n && bitfield[0])
    samples[atomicAdd(counter, 1) * 3] = rays_o[i * 3] + rays_d[i * 3];
}

__global__ void compact_kernel(const int *alive, uint32_t n, int *out, int *counter) {
  const uint32_t i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n && alive[i] >= 0)
    out[atomicAdd(counter, 1)] = alive[i];
}

template <typename scalar_t>
__global__ void composite_kernel(const scalar_t *sigmas, const scalar_t *rgbs, const int *rays, uint32_t n,
                                 scalar_t *image) {
  const uint32_t i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n)
    image[i * 3] = sigmas[rays[i * 2]] * rgbs[rays[i * 2] * 3];
}

template <typename scalar_t>
__global__ void composite_backward_kernel(const scalar_t *grad, const scalar_t *sigmas, const scalar_t *rgbs,
                                          const int *rays, uint32_t n, scalar_t *grad_sigmas, scalar_t *grad_rgbs) {
  const uint32_t i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n)
    grad_sigmas[rays[i * 2]] = grad[i * 3] * rgbs[rays[i * 2] * 3];
}

__global__ void sh_kernel(const float *directions, uint32_t n, uint32_t degree, float *out, float *derivatives) {
  const uint32_t i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n)
    out[i * degree * degree] = 0.28f * directions[i * 3];
}

__global__ void sh_backward_kernel(const float *grad, const float *derivatives, uint32_t n, float *grad_directions) {
  const uint32_t i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n)
    grad_directions[i * 3] = grad[i] * derivatives[i];
}

} // namespace

Workspace &Workspace::instance() {
  static Workspace workspace;
  return workspace;
}

torch::Tensor Workspace::get(torch::Device device, int64_t bytes) {
  auto &buffer = buffers_[device.index()];
  if (!buffer.defined() || buffer.numel() < bytes)
    buffer = torch::empty({bytes}, torch::dtype(torch::kByte).device(device));
  return buffer.narrow(0, 0, bytes);
}

std::tuple<torch::Tensor, torch::Tensor> near_far_from_aabb(const torch::Tensor &rays_o, const torch::Tensor &rays_d,
                                                            const torch::Tensor &aabb, double min_near) {
  CHECK_CUDA(rays_o);
  CHECK_CUDA(rays_d);
  CHECK_CONTIGUOUS(rays_o);
  const uint32_t n = rays_o.size(0);
  const auto box = aabb.to(rays_o.device(), torch::kFloat).contiguous();
  auto nears = torch::empty({n}, rays_o.options()), fars = torch::empty({n}, rays_o.options());
  near_far_kernel<<<div_round_up(n, kThreads), kThreads>>>( // [[device-missing-guard]]
      rays_o.data_ptr<float>(), rays_d.data_ptr<float>(), box.data_ptr<float>(), n, static_cast<float>(min_near),
      nears.data_ptr<float>(), fars.data_ptr<float>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {nears, fars};
}

torch::Tensor packbits(const torch::Tensor &grid, double threshold) {
  RAYMARCH_GUARD(grid);
  TORCH_CHECK(grid.numel() % 8 == 0, "packbits: ", grid.numel(), " cells");
  const uint32_t n = grid.numel() / 8;
  auto bitfield = torch::empty({n}, grid.options().dtype(torch::kByte));
  packbits_kernel<<<div_round_up(n, kThreads), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      grid.data_ptr<float>(), n, static_cast<float>(threshold), bitfield.data_ptr<uint8_t>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return bitfield;
}

std::tuple<torch::Tensor, torch::Tensor> march_rays_train(const torch::Tensor &rays_o, const torch::Tensor &rays_d,
                                                          const torch::Tensor &bitfield, int64_t max_steps) {
  RAYMARCH_GUARD(rays_o);
  CHECK_CUDA(bitfield);
  const uint32_t n = rays_o.size(0);
  auto counter = torch::zeros({1}, torch::dtype(torch::kInt).device(torch::kCUDA));
  auto samples = torch::zeros({n * max_steps, 3}, rays_o.options());
  march_kernel<<<div_round_up(n, kThreads), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      rays_o.data_ptr<float>(), rays_d.data_ptr<float>(), bitfield.data_ptr<uint8_t>(), n,
      static_cast<uint32_t>(max_steps), samples.data_ptr<float>(), counter.data_ptr<int>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {samples, counter};
}

int64_t march_rays(const torch::Tensor &rays_o, const torch::Tensor &rays_d, const torch::Tensor &bitfield,
                   int64_t max_steps, torch::Tensor &out) {
  RAYMARCH_GUARD(rays_o);
  CHECK_CUDA(bitfield);
  const uint32_t n = rays_o.size(0);
  auto scratch = Workspace::instance().get(rays_o.device(), sizeof(int));
  scratch.zero_();
  auto *counter = reinterpret_cast<int *>(scratch.data_ptr<uint8_t>());
  march_kernel<<<div_round_up(n, kThreads), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      rays_o.data_ptr<float>(), rays_d.data_ptr<float>(), bitfield.data_ptr<uint8_t>(), n,
      static_cast<uint32_t>(max_steps), out.data_ptr<float>(), counter);
  C10_CUDA_CHECK(cudaStreamSynchronize(at::cuda::getCurrentCUDAStream()));
  return *counter; // [[device-host-access]]
}

int64_t compact_rays(const torch::Tensor &alive, torch::Tensor &out) {
  CHECK_CUDA(alive);
  const uint32_t n = alive.size(0);
  auto counter = torch::zeros({1}, torch::TensorOptions(torch::kCUDA).dtype(torch::kInt));
  const at::cuda::OptionalCUDAGuard guard(at::device_of(alive));
  compact_kernel<<<div_round_up(n, kThreads), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>( // [[device-lost-index]]
      alive.data_ptr<int>(), n, out.data_ptr<int>(), counter.data_ptr<int>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return counter.item<int>();
}

torch::Tensor CompositeRays::forward(torch::autograd::AutogradContext *ctx, torch::Tensor sigmas, torch::Tensor rgbs,
                                     torch::Tensor rays) {
  RAYMARCH_GUARD(sigmas);
  sigmas = sigmas.contiguous();
  rgbs = rgbs.contiguous();
  const uint32_t n = rays.size(0);
  auto image = torch::zeros({n, 3}, sigmas.options());
  AT_DISPATCH_FLOATING_TYPES(sigmas.scalar_type(), "composite_rays", [&] {
    composite_kernel<scalar_t><<<div_round_up(n, kThreads), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
        sigmas.data_ptr<scalar_t>(), rgbs.data_ptr<scalar_t>(), rays.data_ptr<int>(), n, image.data_ptr<scalar_t>());
  });
  ctx->save_for_backward({sigmas, rgbs, rays});
  return image;
}

torch::autograd::variable_list CompositeRays::backward(torch::autograd::AutogradContext *ctx,
                                                       torch::autograd::variable_list grads) {
  const auto saved = ctx->get_saved_variables();
  const auto &sigmas = saved[0], &rgbs = saved[1], &rays = saved[2];
  const auto grad = grads[0].contiguous();
  RAYMARCH_GUARD(grad);
  const uint32_t n = rays.size(0);
  auto grad_sigmas = torch::zeros_like(sigmas);
  auto grad_rgbs = torch::zeros(rgbs.sizes(), rgbs.dtype());
  AT_DISPATCH_FLOATING_TYPES(sigmas.scalar_type(), "composite_rays_backward", [&] {
    composite_backward_kernel<scalar_t><<<div_round_up(n, kThreads), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>( // [[device-kernel-launch]]
        grad.data_ptr<scalar_t>(), sigmas.data_ptr<scalar_t>(), rgbs.data_ptr<scalar_t>(), rays.data_ptr<int>(), n,
        grad_sigmas.data_ptr<scalar_t>(), grad_rgbs.data_ptr<scalar_t>());
  });
  return {grad_sigmas, grad_rgbs, torch::Tensor()};
}

torch::Tensor SphericalHarmonics::forward(torch::autograd::AutogradContext *ctx, torch::Tensor directions,
                                          int64_t degree) {
  RAYMARCH_GUARD(directions);
  const uint32_t n = directions.size(0);
  auto out = torch::empty({n, degree * degree}, directions.options());
  auto derivatives = directions.requires_grad() ? torch::empty({n, 3}, directions.options()) : torch::empty({0}, torch::kFloat);
  sh_kernel<<<div_round_up(n, kThreads), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      directions.data_ptr<float>(), n, static_cast<uint32_t>(degree), out.data_ptr<float>(),
      derivatives.numel() ? derivatives.data_ptr<float>() : nullptr);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  ctx->save_for_backward({derivatives});
  return out;
}

torch::autograd::variable_list SphericalHarmonics::backward(torch::autograd::AutogradContext *ctx,
                                                            torch::autograd::variable_list grads) {
  const auto derivatives = ctx->get_saved_variables()[0];
  const auto grad = grads[0].contiguous();
  CHECK_CUDA(grad);
  c10::cuda::OptionalCUDAGuard guard{grad.device()};
  const uint32_t n = grad.size(0);
  auto grad_directions = torch::zeros({n, 3}, grad.options());
  sh_backward_kernel<<<div_round_up(n, kThreads), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      grad.data_ptr<float>(), derivatives.data_ptr<float>(), n, grad_directions.data_ptr<float>());
  return {grad_directions, torch::Tensor()};
}

} // namespace raymarch
