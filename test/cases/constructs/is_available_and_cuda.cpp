#include "../cases.h"

#include <torch/torch.h>
torch::Device pick() { return torch::cuda::is_available() ? torch::Device(torch::kCUDA, 0) : torch::Device(torch::kCPU); }
void a_ok() {
  auto pred = torch::randn({6, 4}, pick());
  auto target = torch::randn({6, 4}).cuda();
  torch::smooth_l1_loss(pred, target);
}
void b_ok() {
  auto pred = torch::randn({6, 4}, pick());
  auto target = torch::randn({6, 4}).cuda();
  auto s = pred + target;
}
void c_ok() {
  auto pred = torch::randn({6, 4}, pick());
  auto target = torch::randn({6, 4}).to(torch::kCUDA);
  auto s = pred + target;
}

DT_MAIN(a_ok, b_ok, c_ok)
