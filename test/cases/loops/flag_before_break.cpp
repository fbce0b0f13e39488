// A flag that is set just before the loop is left.
#include "../cases.h"

#include <torch/torch.h>
#include <vector>

namespace {

torch::Tensor firstOnGpu(const std::vector<torch::Tensor> &all) {
  bool found = false;
  torch::Tensor best = torch::zeros({3});
  for (const auto &each : all) {
    if (each.is_cuda()) {
      best = torch::ones({3}, torch::kCUDA);
      found = true;
      break;
    }
  }
  if (found)
    return best + torch::ones({3}, torch::kCUDA);
  return best + torch::ones({3});
}

torch::Tensor bySquare(int n, int wanted) {
  bool found = false;
  torch::Tensor best;
  for (int i = 0; i < n; ++i)
    if (i * i == wanted) {
      best = torch::ones({3}, torch::kCUDA);
      found = true;
      break;
    }
  if (!found)
    best = torch::zeros({3});
  auto other = found ? torch::ones({3}, torch::kCUDA) : torch::ones({3});
  return best + other;
}

torch::Tensor forgotten(int n, int wanted) {
  bool found = false;
  torch::Tensor best = torch::zeros({3});
  for (int i = 0; i < n; ++i)
    if (i * i == wanted) {
      best = torch::ones({3}, torch::kCUDA);
      found = true;
      break;
    }
  if (found)
    return best + torch::ones({3}); // [[device-mixed-op]]
  return best + torch::ones({3});
}

void first_on_gpu_ok() { firstOnGpu({torch::ones({3}), torch::ones({3}, torch::kCUDA)}); }
void by_square_ok() { bySquare(4, 4); }
void forgotten_bad() { forgotten(4, 4); }

} // namespace

DT_MAIN(first_on_gpu_ok, by_square_ok, forgotten_bad)
