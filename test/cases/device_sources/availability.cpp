// The device is chosen at run time: is_available() ternary, if-reassign, command line, environment.
#include "../cases.h"
#include <torch/torch.h>

#include <cstdlib>
#include <cstring>
#include <iostream>

static void ternary_labels_forgotten_bad() {
  torch::Device device = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;
  torch::nn::Linear net(6, 3);
  net->to(device);
  for (int epoch = 0; epoch < 2; ++epoch) {
    auto data = torch::rand({4, 6}).to(device);
    auto labels = torch::randint(3, {4}, torch::kLong);
    auto output = torch::log_softmax(net->forward(data), 1);
    auto loss = torch::nll_loss(output, labels); // [[device-loss-input]]
    loss.backward();
  }
}

static void ternary_labels_moved_ok() {
  torch::Device device = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;
  torch::nn::Linear net(6, 3);
  net->to(device);
  for (int epoch = 0; epoch < 2; ++epoch) {
    auto data = torch::rand({4, 6}).to(device);
    auto labels = torch::randint(3, {4}, torch::kLong).to(device);
    auto output = torch::log_softmax(net->forward(data), 1);
    auto loss = torch::nll_loss(output, labels);
    loss.backward();
  }
}

static void if_reassign_bad() {
  torch::DeviceType device_type = torch::kCPU;
  if (torch::cuda::is_available()) {
    std::cerr << "CUDA available! Training on GPU.\n";
    device_type = torch::kCUDA;
  }
  torch::Device device(device_type);
  auto table = torch::rand({10, 4}).to(device);
  auto rows = torch::tensor({1, 5, 7}, torch::kLong);
  auto picked = table.index_select(0, rows); // [[device-mixed-op]]
  TORCH_CHECK(picked.size(0) == 3);
}

static void if_reassign_ok() {
  torch::DeviceType device_type = torch::kCPU;
  if (torch::cuda::is_available()) {
    std::cerr << "CUDA available! Training on GPU.\n";
    device_type = torch::kCUDA;
  }
  torch::Device device(device_type);
  auto table = torch::rand({10, 4}).to(device);
  auto rows = torch::tensor({1, 5, 7}, torch::kLong).to(device);
  auto picked = table.index_select(0, rows);
  TORCH_CHECK(picked.size(0) == 3);
}

// A Device declared inside the branch shadows the one outside, which stays the CPU.
static void device_shadowed_in_branch_bad() {
  torch::Device device(torch::kCPU);
  auto centre = torch::zeros({3});
  if (torch::cuda::is_available()) {
    torch::Device device(torch::kCUDA);
    centre = centre.to(device);
  }
  auto points = torch::rand({10, 3}).to(device);
  auto offset = points - centre; // [[device-mixed-op]]
  TORCH_CHECK(offset.defined());
}

static void device_assigned_in_branch_ok() {
  torch::Device device(torch::kCPU);
  auto centre = torch::zeros({3});
  if (torch::cuda::is_available()) {
    device = torch::Device(torch::kCUDA);
    centre = centre.to(device);
  }
  auto points = torch::rand({10, 3}).to(device);
  auto offset = points - centre;
  TORCH_CHECK(offset.defined());
}

// Two blocks guarded by one flag agree with each other.
static void two_correlated_branches_ok() {
  const bool cuda = torch::cuda::is_available();
  torch::nn::Linear net(2, 2);
  if (cuda)
    net->to(torch::kCUDA);
  auto x = torch::rand({1, 2});
  if (cuda)
    x = x.to(torch::kCUDA);
  auto y = net->forward(x);
  TORCH_CHECK(y.defined());
}

static void only_the_model_in_the_branch_bad() {
  const bool cuda = torch::cuda::is_available();
  torch::nn::Linear net(2, 2);
  if (cuda)
    net->to(torch::kCUDA);
  auto x = torch::rand({1, 2});
  auto y = net->forward(x); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

static torch::Device pickDevice() {
  const char *forced = std::getenv("CASES_FORCE_CPU");
  if (forced && std::strcmp(forced, "1") == 0)
    return torch::kCPU;
  return torch::cuda::is_available() ? torch::Device(torch::kCUDA, 0) : torch::Device(torch::kCPU);
}

static void device_from_function_bad() {
  const auto device = pickDevice();
  auto w = torch::rand({3, 3}, device);
  auto x = torch::rand({3, 3});
  auto y = torch::mm(w, x); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

static void device_from_function_ok() {
  const auto device = pickDevice();
  auto w = torch::rand({3, 3}, device);
  auto x = torch::rand({3, 3}, device);
  auto y = torch::mm(w, x);
  TORCH_CHECK(y.defined());
}

DT_MAIN(ternary_labels_forgotten_bad, ternary_labels_moved_ok, if_reassign_bad, if_reassign_ok,
        device_shadowed_in_branch_bad, device_assigned_in_branch_ok, two_correlated_branches_ok,
        only_the_model_in_the_branch_bad, device_from_function_bad, device_from_function_ok)
