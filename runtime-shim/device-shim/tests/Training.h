// Models and data of the tests. All ranks make the same ones from the same seed.
#pragma once

#include "Ranks.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

namespace training {

constexpr int64_t kWidth = 12;
constexpr int64_t kClasses = 5;

struct NetImpl : torch::nn::Module {
  explicit NetImpl(int64_t inner = 16) {
    first = register_module("first", torch::nn::Linear(kWidth, inner));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({inner})));
    second = register_module("second", torch::nn::Linear(inner, kClasses));
  }
  torch::Tensor forward(const torch::Tensor &x) {
    return second->forward(torch::tanh(norm->forward(first->forward(x))));
  }
  torch::nn::Linear first{nullptr}, second{nullptr};
  torch::nn::LayerNorm norm{nullptr};
};
TORCH_MODULE(Net);

/// A linear layer without bias on a weight that another layer may have too.
struct ProjectionImpl : torch::nn::Module {
  explicit ProjectionImpl(const torch::Tensor &shared) { weight = register_parameter("weight", shared); }
  torch::Tensor forward(const torch::Tensor &x) { return torch::matmul(x, weight.t()); }
  torch::Tensor weight;
};
TORCH_MODULE(Projection);

/// Passes a tensor on; its backward() throws while `closed`.
struct Gate : torch::autograd::Function<Gate> {
  static torch::Tensor forward(torch::autograd::AutogradContext *, torch::Tensor x) { return x.clone(); }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext *,
                                               torch::autograd::tensor_list gradients) {
    if (closed)
      throw std::runtime_error("the gate is closed");
    return gradients;
  }
  inline static bool closed = false;
};

/// A large layer, a gate and a large layer.
struct GatedNetImpl : torch::nn::Module {
  GatedNetImpl() {
    torch::manual_seed(1);
    first = register_module("first", torch::nn::Linear(kWidth, 600));
    second = register_module("second", torch::nn::Linear(600, 600));
    third = register_module("third", torch::nn::Linear(600, kClasses));
  }
  torch::Tensor forward(const torch::Tensor &x) {
    return third->forward(second->forward(Gate::apply(torch::tanh(first->forward(x)))));
  }
  torch::nn::Linear first{nullptr}, second{nullptr}, third{nullptr};
};
TORCH_MODULE(GatedNet);

struct Batch {
  torch::Tensor input, target;
  /// The samples of one of `parts` ranks.
  Batch part(int rank, int parts) const { return {input.chunk(parts)[rank], target.chunk(parts)[rank]}; }
  Batch to(torch::Device device) const { return {input.to(device), target.to(device)}; }
};

inline Batch batchOf(int step, int64_t samples) {
  auto generator = at::detail::createCPUGenerator(1000 + step);
  return {torch::randn({samples, kWidth}, generator),
          torch::randint(0, kClasses, {samples}, generator, torch::TensorOptions().dtype(torch::kLong))};
}

inline torch::Tensor loss(const torch::Tensor &output, const Batch &batch) {
  return torch::nn::functional::cross_entropy(output, batch.target);
}

/// The largest difference of two models' parameters, compared on the CPU.
inline double distance(const std::vector<torch::Tensor> &a, const std::vector<torch::Tensor> &b) {
  torch::NoGradGuard noGrad;
  MUST(a.size() == b.size());
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i)
    most = std::max(
        most, (a[i].cpu().to(torch::kDouble) - b[i].cpu().to(torch::kDouble)).abs().max().item<double>());
  return most;
}

} // namespace training
