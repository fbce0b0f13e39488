// Operators whose public name begins with an underscore.
#include "../cases.h"
#include <torch/torch.h>

void dirichlet_noise_bad() {
  auto prior = torch::ones({4}, torch::kCUDA);
  auto noise = at::_sample_dirichlet(torch::full({4}, 0.3));
  auto mixed = 0.75 * prior + 0.25 * noise; // [[device-mixed-op]]
}

void dirichlet_noise_ok() {
  auto prior = torch::ones({4}, torch::kCUDA);
  auto noise = at::_sample_dirichlet(torch::full({4}, 0.3, torch::kCUDA));
  auto mixed = 0.75 * prior + 0.25 * noise;
}

void pooled_voxels_bad() {
  auto keys = torch::tensor({3, 1, 3});
  auto [values, inverse, counts] = at::_unique2(keys, true, true, true);
  auto pooled = torch::zeros({2, 4}, torch::kCUDA);
  pooled.index_add_(0, inverse, torch::ones({3, 4}, torch::kCUDA)); // [[device-mixed-op]]
}

void pooled_voxels_ok() {
  auto keys = torch::tensor({3, 1, 3}, torch::kCUDA);
  auto [values, inverse, counts] = at::_unique2(keys, true, true, true);
  auto pooled = torch::zeros({2, 4}, torch::kCUDA);
  pooled.index_add_(0, inverse, torch::ones({3, 4}, torch::kCUDA));
}

DT_MAIN(dirichlet_noise_bad, dirichlet_noise_ok, pooled_voxels_bad, pooled_voxels_ok)
