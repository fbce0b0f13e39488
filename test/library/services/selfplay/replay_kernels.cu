#include "replay.h"

#include <c10/cuda/CUDAGuard.h>

namespace zero {

__global__ void descend(const float* tree, const float* draws, int64_t leaves, int64_t* picked) {
  int64_t node = 1;
  float mass = draws[threadIdx.x] * tree[1];
  while (node < leaves) {
    node *= 2;
    if (mass > tree[node])
      mass -= tree[node++];
  }
  picked[threadIdx.x] = node - leaves;
}

__global__ void weigh(const float* tree, const int64_t* picked, int64_t leaves, float beta, float* weights) {
  weights[threadIdx.x] = tree[leaves + picked[threadIdx.x]] / tree[1] * beta;
}

__global__ void assign(float* tree, const int64_t* picked, const float* values, int64_t leaves) {
  tree[leaves + picked[threadIdx.x]] = values[threadIdx.x];
}

std::future<torch::Tensor> sample_async(const torch::Tensor& tree, const torch::Tensor& draws) {
  TORCH_CHECK(tree.is_cuda() && draws.is_cuda());
  const c10::cuda::CUDAGuard guard(tree.device());
  auto picked = torch::empty({draws.size(0)}, tree.options().dtype(torch::kLong));
  return std::async(std::launch::async, [tree, draws, picked] {
    descend<<<1, draws.size(0)>>>(tree.data_ptr<float>(), draws.data_ptr<float>(), tree.size(0) / 2, picked.data_ptr<int64_t>()); // [[device-missing-guard]]
    return picked;
  });
}

std::future<torch::Tensor> importance_async(const torch::Tensor& tree, const torch::Tensor& picked, double beta) {
  TORCH_CHECK(tree.is_cuda() && picked.is_cuda());
  return std::async(std::launch::async, [=] {
    const c10::cuda::CUDAGuard guard(tree.device());
    auto weights = torch::empty({picked.size(0)}, torch::kCUDA);
    weigh<<<1, picked.size(0)>>>(tree.data_ptr<float>(), picked.data_ptr<int64_t>(), tree.size(0) / 2,
                                 static_cast<float>(beta), weights.data_ptr<float>());
    return weights / weights.max();
  });
}

void update_tree(torch::Tensor& tree, const torch::Tensor& picked, const torch::Tensor& priorities) {
  c10::cuda::OptionalCUDAGuard guard;
  guard.set_device(tree.device());
  const auto values = priorities.to(tree.device(), torch::kFloat).contiguous();
  const auto where = picked.to(tree.device());
  assign<<<1, where.size(0)>>>(tree.data_ptr<float>(), where.data_ptr<int64_t>(), values.data_ptr<float>(),
                               tree.size(0) / 2);
  for (int64_t level = tree.size(0) / 2; level > 1; level /= 2)
    tree.slice(0, level / 2, level).copy_(tree.slice(0, level, 2 * level).view({-1, 2}).sum(1));
}

} // namespace zero
