// Shadowed names: the moved tensor is declared in an inner block, the outer one is used.
#include <torch/torch.h>

#include "../cases.h"

void moved_copy_in_inner_block_bad() {
  auto device = torch::Device(torch::kCUDA);
  auto input = torch::rand({2, 3});
  if (device.is_cuda()) {
    auto input = torch::rand({2, 3}).to(device);
    TORCH_CHECK(input.is_cuda());
  }
  auto w = torch::rand({3, 1}, device);
  auto y = input.mm(w); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void assigned_in_inner_block_ok() {
  auto device = torch::Device(torch::kCUDA);
  auto input = torch::rand({2, 3});
  if (device.is_cuda()) {
    input = torch::rand({2, 3}).to(device);
    TORCH_CHECK(input.is_cuda());
  }
  auto w = torch::rand({3, 1}, device);
  auto y = input.mm(w);
  TORCH_CHECK(y.defined());
}

void loop_variable_shadows_bad() {
  auto target = torch::zeros({3});
  auto source = torch::rand({3}, torch::kCUDA);
  for (int i = 0; i < 2; ++i) {
    auto target = source.clone();
    target.add_(source);
  }
  auto error = torch::mse_loss(source, target); // [[device-loss-input]]
  TORCH_CHECK(error.defined());
}

void loop_variable_assigned_ok() {
  auto target = torch::zeros({3});
  auto source = torch::rand({3}, torch::kCUDA);
  for (int i = 0; i < 2; ++i) {
    target = source.clone();
    target.add_(source);
  }
  auto error = torch::mse_loss(source, target);
  TORCH_CHECK(error.defined());
}

class Session {
public:
  void open(torch::Device device) {
    auto hidden_ = torch::zeros({3}, device); // shadows the member
    TORCH_CHECK(hidden_.defined());
    device_ = device;
  }
  torch::Tensor run(const torch::Tensor &x) {
    return x.to(device_) + hidden_; // [[device-mixed-op]]
  }

private:
  torch::Device device_{torch::kCPU};
  torch::Tensor hidden_ = torch::zeros({3});
};

void local_shadows_the_member_bad() {
  Session s;
  s.open(torch::kCUDA);
  s.run(torch::rand({3}));
}

class OpenSession {
public:
  void open(torch::Device device) {
    hidden_ = torch::zeros({3}, device);
    TORCH_CHECK(hidden_.defined());
    device_ = device;
  }
  torch::Tensor run(const torch::Tensor &x) {
    return x.to(device_) + hidden_;
  }

private:
  torch::Device device_{torch::kCPU};
  torch::Tensor hidden_ = torch::zeros({3});
};

void member_assigned_ok() {
  OpenSession s;
  s.open(torch::kCUDA);
  s.run(torch::rand({3}));
}

void lambda_parameter_shadows_ok() {
  auto x = torch::rand({3});
  auto square = [](const torch::Tensor &x) { return x * x; };
  auto y = square(torch::rand({3}, torch::kCUDA)) + torch::ones({3}, torch::kCUDA);
  TORCH_CHECK(y.is_cuda() && !x.is_cuda());
}

DT_MAIN(moved_copy_in_inner_block_bad, assigned_in_inner_block_ok, loop_variable_shadows_bad,
        loop_variable_assigned_ok, local_shadows_the_member_bad, member_assigned_ok,
        lambda_parameter_shadows_ok)
