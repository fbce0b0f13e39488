// Optimizers and gradient clipping. Building an optimizer before Module::to is fine in C++.
#include "../cases.h"
#include <torch/torch.h>

#include <vector>

namespace optim = torch::optim;

static void optimizer_before_the_move_ok() {
  torch::nn::Linear net(3, 1);
  optim::Adam adam(net->parameters(), optim::AdamOptions(1e-3));
  net->to(torch::kCUDA);
  net(torch::rand({4, 3}, torch::kCUDA)).sum().backward();
  adam.step();
}

static void optimizer_after_the_move_ok() {
  torch::nn::Linear net(3, 1);
  net->to(torch::kCUDA);
  optim::SGD sgd(net->parameters(), optim::SGDOptions(0.1).momentum(0.9));
  net(torch::rand({4, 3}, torch::kCUDA)).sum().backward();
  sgd.step();
}

// The step itself: momentum made by hand on the host.
static void hand_written_momentum_bad() {
  torch::nn::Linear net(3, 1);
  net->to(torch::kCUDA);
  std::vector<torch::Tensor> velocity;
  for (auto &p : net->parameters())
    velocity.push_back(torch::zeros(p.sizes()));
  net(torch::rand({4, 3}, torch::kCUDA)).sum().backward();
  torch::NoGradGuard off;
  size_t i = 0;
  for (auto &p : net->parameters()) {
    velocity[i] = 0.9 * velocity[i] + p.grad(); // [[device-mixed-op]]
    p.sub_(velocity[i++], 0.1);
  }
}

static void hand_written_momentum_ok() {
  torch::nn::Linear net(3, 1);
  net->to(torch::kCUDA);
  std::vector<torch::Tensor> velocity;
  for (auto &p : net->parameters())
    velocity.push_back(torch::zeros_like(p));
  net(torch::rand({4, 3}, torch::kCUDA)).sum().backward();
  torch::NoGradGuard off;
  size_t i = 0;
  for (auto &p : net->parameters()) {
    velocity[i] = 0.9 * velocity[i] + p.grad();
    p.sub_(velocity[i++], 0.1);
  }
}

static void clip_over_two_devices_bad() {
  torch::nn::Linear front(3, 3), back(3, 1);
  front->to(torch::Device(torch::kCUDA, 0));
  back->to(torch::Device(torch::kCUDA, 1));
  auto h = front(torch::rand({4, 3}, torch::Device(torch::kCUDA, 0)));
  back(h.to(torch::Device(torch::kCUDA, 1))).sum().backward();
  std::vector<torch::Tensor> all = front->parameters();
  for (auto &p : back->parameters())
    all.push_back(p);
  torch::nn::utils::clip_grad_norm_(all, 1.0); // [[device-mixed-op]]
}

static void clip_per_device_ok() {
  torch::nn::Linear front(3, 3), back(3, 1);
  front->to(torch::Device(torch::kCUDA, 0));
  back->to(torch::Device(torch::kCUDA, 1));
  auto h = front(torch::rand({4, 3}, torch::Device(torch::kCUDA, 0)));
  back(h.to(torch::Device(torch::kCUDA, 1))).sum().backward();
  torch::nn::utils::clip_grad_norm_(front->parameters(), 1.0);
  torch::nn::utils::clip_grad_norm_(back->parameters(), 1.0);
}

static void clip_one_model_ok() {
  torch::nn::Linear net(3, 1);
  net->to(torch::kCUDA);
  net(torch::rand({4, 3}, torch::kCUDA)).sum().backward();
  const double norm = torch::nn::utils::clip_grad_norm_(net->parameters(), 0.5);
  TORCH_CHECK(norm >= 0);
}

// Gradients partly offloaded: one scale for all of them.
static void scale_applied_to_offloaded_partition_bad() {
  auto onGpu = torch::rand({6}, torch::kCUDA);
  auto offloaded = torch::rand({6});
  auto total = onGpu.norm().pow(2) + offloaded.norm().pow(2).to(onGpu.device());
  auto scale = 1.0 / (total.sqrt() + 1e-6);
  onGpu.mul_(scale);
  offloaded.mul_(scale); // [[device-mixed-op]]
}

static void scale_applied_on_each_partition_ok() {
  auto onGpu = torch::rand({6}, torch::kCUDA);
  auto offloaded = torch::rand({6});
  auto total = onGpu.norm().pow(2) + offloaded.norm().pow(2).to(onGpu.device());
  auto scale = 1.0 / (total.sqrt() + 1e-6);
  onGpu.mul_(scale);
  offloaded.mul_(scale.to(offloaded.device()));
}

// Weight decay of parameters on the GPU summed with a CPU start value: in a binary op that is legal at 0 dim.
static void weight_decay_sum_ok() {
  torch::nn::Linear net(3, 1);
  net->to(torch::kCUDA);
  torch::Tensor decay = torch::tensor(0.0);
  for (const auto &p : net->parameters())
    decay = decay + p.pow(2).sum();
  decay.backward();
}

static void weight_decay_vector_bad() {
  torch::nn::Linear net(3, 1);
  net->to(torch::kCUDA);
  torch::Tensor decay = torch::zeros({1});
  for (const auto &p : net->parameters())
    decay = decay + p.pow(2).sum(); // 0-dim CUDA against a CPU vector [[device-mixed-op]]
  decay.backward();
}

DT_MAIN(optimizer_before_the_move_ok, optimizer_after_the_move_ok, hand_written_momentum_bad,
        hand_written_momentum_ok, clip_over_two_devices_bad, clip_per_device_ok, clip_one_model_ok,
        scale_applied_to_offloaded_partition_bad, scale_applied_on_each_partition_ok, weight_decay_sum_ok,
        weight_decay_vector_bad)
