// Data parallelism by hand: replicas, scattered chunks, gathered outputs and gradients, guards in helpers.
#include "../cases.h"
#include <torch/torch.h>

#include <c10/core/DeviceGuard.h>

#include <memory>
#include <vector>

#define WITH_DEVICE(d) c10::OptionalDeviceGuard dtScopeGuard((d))

using torch::Tensor;

static torch::Device gpu(int index) { return {torch::kCUDA, static_cast<c10::DeviceIndex>(index)}; }

static std::vector<torch::nn::Linear> replicas(int n) {
  std::vector<torch::nn::Linear> out;
  for (int i = 0; i < n; ++i) {
    out.emplace_back(4, 2);
    out.back()->to(gpu(i));
  }
  return out;
}

static void outputs_gathered_on_one_gpu_ok() {
  auto nets = replicas(2);
  auto chunks = torch::rand({4, 4}).chunk(2);
  std::vector<Tensor> outputs;
  for (int i = 0; i < 2; ++i)
    outputs.push_back(nets[i]->forward(chunks[i].to(gpu(i))).to(gpu(0)));
  auto loss = torch::mse_loss(torch::cat(outputs), torch::zeros({4, 2}, gpu(0)));
  loss.backward();
}

static void outputs_of_two_replicas_concatenated_bad() {
  torch::nn::Linear first(4, 2), second(4, 2);
  first->to(gpu(0));
  second->to(gpu(1));
  auto chunks = torch::rand({4, 4}).chunk(2);
  auto a = first(chunks[0].to(gpu(0)));
  auto b = second(chunks[1].to(gpu(1)));
  auto all = torch::cat({a, b}); // [[device-mixed-op]]
  TORCH_CHECK(all.defined());
}

static void gradients_averaged_across_replicas_bad() {
  torch::nn::Linear first(4, 2), second(4, 2);
  first->to(gpu(0));
  second->to(gpu(1));
  first(torch::rand({2, 4}, gpu(0))).sum().backward();
  second(torch::rand({2, 4}, gpu(1))).sum().backward();
  auto mean = (first->weight.grad() + second->weight.grad()) / 2; // [[device-mixed-op]]
  TORCH_CHECK(mean.defined());
}

static void gradients_averaged_across_replicas_ok() {
  torch::nn::Linear first(4, 2), second(4, 2);
  first->to(gpu(0));
  second->to(gpu(1));
  first(torch::rand({2, 4}, gpu(0))).sum().backward();
  second(torch::rand({2, 4}, gpu(1))).sum().backward();
  auto mean = (first->weight.grad() + second->weight.grad().to(gpu(0))) / 2;
  first->weight.mutable_grad().copy_(mean);
  second->weight.mutable_grad().copy_(mean);
}

static void weights_broadcast_by_copy_ok() {
  torch::NoGradGuard off;
  torch::nn::Linear first(4, 2), second(4, 2);
  first->to(gpu(0));
  second->to(gpu(1));
  second->weight.copy_(first->weight);
  second->bias.copy_(first->bias);
}

static Tensor workspace(int64_t n) { return torch::zeros({n}, torch::kCUDA); }

static void workspace_under_a_guard_macro_ok() {
  auto x = torch::rand({3}, gpu(1));
  WITH_DEVICE(x.device());
  auto y = workspace(3) + x;
  TORCH_CHECK(y.get_device() == 1);
}

static void workspace_without_the_guard_bad() {
  auto x = torch::rand({3}, gpu(1));
  auto y = workspace(3) + x; // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

static void workspace_under_a_braced_guard_ok() {
  auto x = torch::rand({3}, gpu(2));
  const c10::DeviceGuard guard{x.device()};
  auto y = workspace(3) + x;
  TORCH_CHECK(y.get_device() == 2);
}

// A default-constructed optional guard guards nothing.
static void empty_optional_guard_bad() {
  auto x = torch::rand({3}, gpu(1));
  c10::OptionalDeviceGuard guard;
  auto y = torch::zeros({3}, torch::kCUDA) + x; // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

static void optional_guard_reset_ok() {
  auto x = torch::rand({3}, gpu(1));
  c10::OptionalDeviceGuard guard;
  guard.reset_device(x.device());
  auto y = torch::zeros({3}, torch::kCUDA) + x;
  TORCH_CHECK(y.get_device() == 1);
}

DT_MAIN(outputs_gathered_on_one_gpu_ok, outputs_of_two_replicas_concatenated_bad,
        gradients_averaged_across_replicas_bad, gradients_averaged_across_replicas_ok,
        weights_broadcast_by_copy_ok, workspace_under_a_guard_macro_ok, workspace_without_the_guard_bad,
        workspace_under_a_braced_guard_ok, empty_optional_guard_bad, optional_guard_reset_ok)
