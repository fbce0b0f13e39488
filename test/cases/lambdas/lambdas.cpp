// Lambdas, std::function, closures, callbacks and algorithms.
#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <vector>

#include "../cases.h"

void captured_device_ignored_bad() {
  torch::Device device(torch::kCUDA);
  auto makeInput = [device](int64_t n) { return torch::rand({n, 2}, device); };
  auto makeMask = [](int64_t n) { return torch::ones({n, 2}); };
  auto y = makeInput(3) * makeMask(3); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void captured_device_used_ok() {
  torch::Device device(torch::kCUDA);
  auto makeInput = [device](int64_t n) { return torch::rand({n, 2}, device); };
  auto makeMask = [&](int64_t n) { return torch::ones({n, 2}, device); };
  auto y = makeInput(3) * makeMask(3);
  TORCH_CHECK(y.defined());
}

void capture_by_copy_moves_nothing_bad() {
  torch::Tensor w = torch::rand({3});
  auto mover = [w]() mutable { w = w.to(torch::kCUDA); };
  mover();
  auto y = w * torch::ones({3}, torch::kCUDA); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void capture_by_reference_moves_ok() {
  torch::Tensor w = torch::rand({3});
  auto mover = [&w] { w = w.to(torch::kCUDA); };
  mover();
  auto y = w * torch::ones({3}, torch::kCUDA);
  TORCH_CHECK(y.defined());
}

void std_function_loss_bad() {
  std::function<torch::Tensor(const torch::Tensor &, const torch::Tensor &)> criterion =
      [](const torch::Tensor &output, const torch::Tensor &target) {
        return torch::mse_loss(output, target); // [[device-loss-input]]
      };
  torch::nn::Linear net(2, 1);
  net->to(torch::kCUDA);
  auto loss = criterion(net(torch::rand({4, 2}, torch::kCUDA)), torch::rand({4, 1}));
  loss.backward();
}

void std_function_loss_ok() {
  std::function<torch::Tensor(const torch::Tensor &, const torch::Tensor &)> criterion =
      [](const torch::Tensor &output, const torch::Tensor &target) {
        return torch::mse_loss(output, target.to(output.device()));
      };
  torch::nn::Linear net(2, 1);
  net->to(torch::kCUDA);
  auto loss = criterion(net(torch::rand({4, 2}, torch::kCUDA)), torch::rand({4, 1}));
  loss.backward();
}

void transform_moves_every_tensor_ok() {
  std::vector<torch::Tensor> host{torch::rand({2}), torch::rand({2})};
  std::vector<torch::Tensor> device;
  std::transform(host.begin(), host.end(), std::back_inserter(device),
                 [](const torch::Tensor &t) { return t.to(torch::kCUDA); });
  auto y = torch::stack(device) + torch::ones({2}, torch::kCUDA);
  TORCH_CHECK(y.is_cuda());
}

void transform_result_ignored_bad() {
  std::vector<torch::Tensor> host{torch::rand({2}), torch::rand({2})};
  std::vector<torch::Tensor> device;
  std::transform(host.begin(), host.end(), std::back_inserter(device),
                 [](const torch::Tensor &t) { return t.to(torch::kCUDA); });
  auto y = host[0] + torch::ones({2}, torch::kCUDA); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

// LBFGS-style closure handed to the optimizer.
void optimizer_closure_target_bad() {
  torch::nn::Linear net(2, 1);
  net->to(torch::kCUDA);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto x = torch::rand({4, 2}, torch::kCUDA), y = torch::rand({4, 1});
  sgd.step([&]() {
    sgd.zero_grad();
    auto loss = torch::l1_loss(net(x), y); // [[device-loss-input]]
    loss.backward();
    return loss;
  });
}

void optimizer_closure_target_ok() {
  torch::nn::Linear net(2, 1);
  net->to(torch::kCUDA);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto x = torch::rand({4, 2}, torch::kCUDA), y = torch::rand({4, 1}, torch::kCUDA);
  sgd.step([&]() {
    sgd.zero_grad();
    auto loss = torch::l1_loss(net(x), y);
    loss.backward();
    return loss;
  });
}

void immediately_invoked_bad() {
  const auto scale = [] {
    if (torch::cuda::device_count() > 64)
      return torch::ones({3}, torch::kCUDA);
    return torch::ones({3});
  }();
  auto y = torch::rand({3}, torch::kCUDA) * scale; // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

DT_MAIN(captured_device_ignored_bad, captured_device_used_ok, capture_by_copy_moves_nothing_bad,
        capture_by_reference_moves_ok, std_function_loss_bad, std_function_loss_ok,
        transform_moves_every_tensor_ok, transform_result_ignored_bad, optimizer_closure_target_bad,
        optimizer_closure_target_ok, immediately_invoked_bad)
