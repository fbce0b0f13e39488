// Loss scaling, gradient accumulation, schedules, early stopping, moving averages.
#include <torch/torch.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "../cases.h"

void loss_scale_tensor_on_host_is_zero_dim_ok() {
  torch::nn::Linear net(3, 1);
  net->to(torch::kCUDA);
  auto scale = torch::tensor(1024.0f);
  auto loss = net(torch::rand({2, 3}, torch::kCUDA)).pow(2).mean() * scale;
  loss.backward();
  for (auto &p : net->parameters())
    p.mutable_grad().div_(scale);
}

void loss_scale_with_one_element_bad() {
  torch::nn::Linear net(3, 1);
  net->to(torch::kCUDA);
  auto scale = torch::full({1}, 1024.0f);
  auto loss = net(torch::rand({2, 3}, torch::kCUDA)).pow(2).mean() * scale; // [[device-mixed-op]]
  loss.backward();
}

void accumulated_losses_in_a_host_vector_ok() {
  torch::nn::Linear net(3, 1);
  net->to(torch::kCUDA);
  std::vector<double> losses;
  auto best = std::numeric_limits<double>::max();
  for (int i = 0; i < 3; ++i) {
    auto loss = net(torch::rand({2, 3}, torch::kCUDA)).pow(2).mean();
    losses.push_back(loss.item<double>());
    best = std::min(best, losses.back());
  }
  auto history = torch::tensor(losses) - torch::full({3}, best);
  TORCH_CHECK(history.min().item<double>() >= 0);
}

void per_sample_weights_on_host_bad() {
  torch::nn::Linear net(3, 1);
  net->to(torch::kCUDA);
  auto importance = torch::tensor({1.0f, 0.5f});
  auto each = torch::mse_loss(net(torch::rand({2, 3}, torch::kCUDA)).squeeze(1),
                              torch::zeros({2}, torch::kCUDA), torch::Reduction::None);
  auto loss = (each * importance).mean(); // [[device-mixed-op]]
  loss.backward();
}

void per_sample_weights_moved_ok() {
  torch::nn::Linear net(3, 1);
  net->to(torch::kCUDA);
  auto importance = torch::tensor({1.0f, 0.5f});
  auto each = torch::mse_loss(net(torch::rand({2, 3}, torch::kCUDA)).squeeze(1),
                              torch::zeros({2}, torch::kCUDA), torch::Reduction::None);
  auto loss = (each * importance.to(each.device())).mean();
  loss.backward();
}

// Mix-up: the permutation may stay on the host, the mixing coefficient must not.
void mixup_permutation_on_host_ok() {
  auto images = torch::rand({4, 3}, torch::kCUDA);
  auto order = torch::randperm(4);
  auto lambda = torch::rand({4, 1}, torch::kCUDA);
  auto mixed = lambda * images + (1 - lambda) * images.index({order});
  TORCH_CHECK(mixed.is_cuda());
}

void mixup_coefficient_on_host_bad() {
  auto images = torch::rand({4, 3}, torch::kCUDA);
  auto order = torch::randperm(4);
  auto lambda = torch::rand({4, 1});
  auto mixed = lambda * images + (1 - lambda) * images.index({order}); // [[device-mixed-op]]
  TORCH_CHECK(mixed.defined());
}

void mixup_permutation_by_index_select_bad() {
  auto images = torch::rand({4, 3}, torch::kCUDA);
  auto order = torch::randperm(4);
  auto other = images.index_select(0, order); // [[device-mixed-op]]
  TORCH_CHECK(other.defined());
}

// Inference falls back to the CPU when there is no GPU: both sides follow one variable.
void follow_one_variable_ok() {
  auto device = torch::Device(torch::cuda::device_count() > 1 ? "cuda:1" : "cpu");
  torch::nn::Linear net(3, 1);
  net->to(device);
  auto y = net(torch::rand({2, 3}).to(device)) + torch::zeros({2, 1}, device);
  TORCH_CHECK(y.device() == device);
}

void follow_one_variable_but_one_bad() {
  auto device = torch::Device(torch::cuda::device_count() > 1 ? "cuda:1" : "cpu");
  torch::nn::Linear net(3, 1);
  net->to(device);
  auto y = net(torch::rand({2, 3}).to(device)) + torch::zeros({2, 1}); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

DT_MAIN(loss_scale_tensor_on_host_is_zero_dim_ok, loss_scale_with_one_element_bad,
        accumulated_losses_in_a_host_vector_ok, per_sample_weights_on_host_bad, per_sample_weights_moved_ok,
        mixup_permutation_on_host_ok, mixup_coefficient_on_host_bad, mixup_permutation_by_index_select_bad,
        follow_one_variable_ok, follow_one_variable_but_one_bad)
