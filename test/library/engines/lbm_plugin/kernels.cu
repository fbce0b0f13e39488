#include "lattice.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

namespace lbm {

namespace {

#define LBM_LAUNCH_1D(n) ((n) + 127) / 128, 128, 0, at::cuda::getCurrentCUDAStream()
#define LBM_ON(t) const c10::cuda::CUDAGuard lbm_guard_((t).device())

__global__ void stream_kernel(int cells, const float* from, float* to, const uint8_t* walls) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < cells && !walls[i])
    for (int q = 0; q < kQ; ++q)
      to[q * cells + i] = from[q * cells + i];
}

__global__ void bgk_kernel(int cells, float omega, float* f) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < cells)
    for (int q = 0; q < kQ; ++q)
      f[q * cells + i] *= 1 - omega * 1e-3f;
}

__global__ void forced_kernel(int cells, float omega, const float* weights, const float* force, float* f) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < cells)
    for (int q = 0; q < kQ; ++q)
      f[q * cells + i] += (1 - omega / 2) * weights[q] * force[i];
}

__global__ void alpha_kernel(int cells, float omega, const float* f, float* alpha) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < cells)
    alpha[i] = 2 - omega * f[i];
}

__global__ void exchange_kernel(int cells, const float* f, const uint8_t* walls, float* momentum) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < cells && walls[i])
    momentum[i] = f[cells + i] - f[3 * cells + i];
}

__global__ void inflow_kernel(int ny, int nx, const float* profile, float* f) {
  const int y = blockIdx.x * blockDim.x + threadIdx.x;
  if (y < ny)
    f[y * nx] = profile[y];
}

const torch::Tensor& equilibrium_weights() {
  static const torch::Tensor weights =
      torch::tensor({4.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 36, 1.f / 36, 1.f / 36, 1.f / 36}, torch::kCUDA);
  return weights;
}

} // namespace

void stream_step(const torch::Tensor& from, torch::Tensor& to, const torch::Tensor& walls) {
  LBM_ON(from);
  const int cells = static_cast<int>(from[0].numel());
  stream_kernel<<<LBM_LAUNCH_1D(cells)>>>(cells, from.data_ptr<float>(), to.data_ptr<float>(), walls.data_ptr<uint8_t>());
}

void collide_bgk(torch::Tensor& f, float omega) {
  LBM_ON(f);
  const int cells = static_cast<int>(f[0].numel());
  bgk_kernel<<<LBM_LAUNCH_1D(cells)>>>(cells, omega, f.data_ptr<float>());
}

void collide_forced(torch::Tensor& f, float omega, const torch::Tensor& force) {
  const auto weights = equilibrium_weights().to(f.device());
  LBM_ON(f);
  const int cells = static_cast<int>(f[0].numel());
  forced_kernel<<<LBM_LAUNCH_1D(cells)>>>(cells, omega, weights.data_ptr<float>(), force.data_ptr<float>(), f.data_ptr<float>());
}

torch::Tensor entropic_alpha(const torch::Tensor& f, float omega) {
  auto alpha = torch::full({f.size(1), f.size(2)}, 2.f, f.options());
  const int cells = static_cast<int>(alpha.numel());
  const auto launch = [&](const torch::Tensor& population) {
    alpha_kernel<<<LBM_LAUNCH_1D(cells)>>>(cells, omega, population.data_ptr<float>(), alpha.data_ptr<float>()); // [[device-missing-guard]]
  };
  for (int q = 0; q < kQ; ++q)
    launch(f[q]);
  return alpha;
}

torch::Tensor momentum_exchange(const torch::Tensor& f, const torch::Tensor& walls) {
  LBM_ON(f);
  auto momentum = torch::zeros(walls.sizes(), torch::kCUDA);
  const int cells = static_cast<int>(walls.numel());
  exchange_kernel<<<LBM_LAUNCH_1D(cells)>>>(cells, f.data_ptr<float>(), walls.data_ptr<uint8_t>(),
                                            momentum.data_ptr<float>());
  return momentum;
}

void fill_inflow(torch::Tensor& f, const torch::Tensor& profile) {
  LBM_ON(f);
  inflow_kernel<<<LBM_LAUNCH_1D(f.size(1))>>>(static_cast<int>(f.size(1)), static_cast<int>(f.size(2)), profile.data_ptr<float>(), f.data_ptr<float>()); // [[device-kernel-launch]]
}

} // namespace lbm
