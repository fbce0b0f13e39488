// REQUIRES: torch
// RUN: not %device-tidy --level=latent %s %torch | FileCheck %s --implicit-check-not=warning:
#include <torch/torch.h>

#include <map>
#include <optional>

// What the code of libraries does with what it is given, and keeps.

torch::Tensor posed(const torch::Tensor &points, const std::optional<torch::Tensor> &pose) {
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'matmul' can get 'points' on 'points.device()' and 'pose.value_or(torch::eye(4))' on cpu
  return torch::matmul(points, pose.value_or(torch::eye(4)));
}

torch::Tensor scaled(const std::map<std::string, torch::Tensor> &tensors, const std::string &name) {
  const auto found = tensors.find(name);
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: '*' can get 'found->second' on 'tensors[..].device()' and 'torch::ones(3)' on cpu
  return found->second * torch::ones(3);
}

torch::Tensor selected(const torch::Tensor &output, const torch::Tensor &target) {
  TORCH_CHECK(output.is_cuda(), "the output of the network is expected");
  return output.argmax(1).masked_select(target.to(output.device()).ge(0));
}

struct HeadImpl : torch::nn::Module {
  HeadImpl() {
    delta = register_module("delta", torch::nn::Linear(4, 4));
    refine = torch::nn::Linear(4, 4);
  }
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'Linear::forward' can get 'delta(x)' on the module's device and the parameters of 'refine' on cpu
  torch::Tensor refined(const torch::Tensor &x) { return refine(delta(x)); }
  torch::nn::Linear delta{nullptr}, refine{nullptr};
};
TORCH_MODULE(Head);

class Chain {
public:
  void to(torch::Device device) {
    if (limits)
      limits = limits->to(device);
  }
  void setLimits(const std::vector<double> &values) { limits = torch::tensor(values, torch::kFloat); }
  torch::Tensor limited(const torch::Tensor &q) const { return limits ? torch::minimum(q, *limits) : q; }

private:
  std::optional<torch::Tensor> limits;
};
