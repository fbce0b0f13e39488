#include "potential.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime.h>
#include <cufft.h>

namespace mdplug {

namespace {

__global__ void buildKernel(const float *positions, int atoms, float cutoff, int *pairs, int *count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < atoms && positions[3 * i] < cutoff)
    pairs[atomicAdd(count, 1)] = i;
}

__global__ void distanceKernel(const float *positions, const int *pairs, int count, float *distances) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    distances[i] = positions[3 * pairs[2 * i]] - positions[3 * pairs[2 * i + 1]];
}

__global__ void distanceGradKernel(const int *pairs, int count, const float *gradient, float *result) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    atomicAdd(result + 3 * pairs[2 * i], gradient[i]);
}

__global__ void spreadKernel(const float *positions, const float *charges, int atoms, int size, float *grid) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < atoms)
    atomicAdd(grid + static_cast<int>(positions[3 * i]) % size, charges[i]);
}

class PairDistances : public torch::autograd::Function<PairDistances> {
public:
  static torch::Tensor forward(torch::autograd::AutogradContext *context, const torch::Tensor &positions,
                               const torch::Tensor &pairs) {
    const auto stream = c10::cuda::getCurrentCUDAStream(positions.get_device());
    const c10::cuda::CUDAStreamGuard guard(stream);
    const int count = pairs.size(0);
    auto distances = torch::empty({count}, positions.options());
    distanceKernel<<<(count + 127) / 128, 128, 0, stream>>>(positions.data_ptr<float>(), pairs.data_ptr<int>(), count,
                                                            distances.data_ptr<float>());
    context->save_for_backward({pairs});
    context->saved_data["atoms"] = positions.size(0);
    return distances;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext *context,
                                               torch::autograd::tensor_list gradients) {
    const auto pairs = context->get_saved_variables()[0];
    const auto gradient = gradients[0].contiguous();
    const int count = pairs.size(0);
    auto result = torch::zeros({context->saved_data["atoms"].toInt(), 3}, gradient.options());
    distanceGradKernel<<<(count + 127) / 128, 128>>>(pairs.data_ptr<int>(), count, gradient.data_ptr<float>(),
                                                     result.data_ptr<float>());
    return {result, torch::Tensor()};
  }
};

} // namespace

NeighborList::NeighborList(double cutoff, int64_t capacity) : cutoff_(cutoff), capacity_(capacity) {
  cudaEventCreate(&built_); // [[device-lost-index]]
}

NeighborList::~NeighborList() { cudaEventDestroy(built_); }

void NeighborList::build(const torch::Tensor &positions) {
  TORCH_CHECK(positions.is_cuda() && positions.dim() == 2 && positions.size(1) == 3);
  const c10::cuda::CUDAGuard guard(positions.device());
  const auto options = positions.options().dtype(torch::kInt).requires_grad(false);
  if (!pairs_.defined() || pairs_.device() != positions.device()) {
    pairs_ = torch::zeros({capacity_, 2}, options);
    count_ = torch::zeros({1}, options);
  }
  count_.zero_();
  const auto stream = at::cuda::getCurrentCUDAStream();
  const int atoms = positions.size(0);
  buildKernel<<<(atoms + 127) / 128, 128, 0, stream>>>(positions.data_ptr<float>(), atoms, cutoff_,
                                                       pairs_.data_ptr<int>(), count_.data_ptr<int>());
  cudaEventRecord(built_, stream);
}

int64_t NeighborList::found() const { return count_.defined() ? count_.item<int>() : 0; }

torch::Tensor pairDistances(const torch::Tensor &positions, const torch::Tensor &pairs) {
  TORCH_CHECK(positions.is_cuda() && pairs.is_cuda());
  return PairDistances::apply(positions, pairs);
}

torch::Tensor spreadCharges(const torch::Tensor &positions, const torch::Tensor &charges, int64_t grid) {
  TORCH_CHECK(positions.is_cuda() && charges.is_cuda());
  const c10::cuda::OptionalCUDAGuard guard;
  auto result = torch::zeros({grid, grid, grid}, charges.options());
  const int atoms = positions.size(0);
  spreadKernel<<<(atoms + 127) / 128, 128>>>(positions.data_ptr<float>(), charges.data_ptr<float>(), atoms, grid, result.data_ptr<float>()); // [[device-missing-guard]]
  return result;
}

torch::Tensor gridSpectrum(const torch::Tensor &grid) {
  TORCH_CHECK(grid.is_cuda() && grid.is_contiguous());
  c10::cuda::OptionalCUDAGuard guard;
  guard.set_index(grid.get_device());
  auto spectrum = torch::empty({grid.size(0), grid.size(1), 2}, grid.options());
  cufftHandle plan;
  cufftPlan1d(&plan, grid.numel(), CUFFT_R2C, 1);
  cufftExecR2C(plan, grid.data_ptr<float>(), reinterpret_cast<cufftComplex *>(spectrum.data_ptr<float>()));
  cufftDestroy(plan);
  return spectrum;
}

} // namespace mdplug
