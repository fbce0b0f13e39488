// Modules in a list that nobody registers, and members that a constructor takes to the CPU.
#include "../cases.h"
#include <torch/torch.h>

#include <vector>

namespace {

torch::nn::Sequential critic(int64_t in) {
  return torch::nn::Sequential(torch::nn::Linear(in, 8), torch::nn::ReLU(), torch::nn::Linear(8, 1));
}

struct EnsembleImpl : torch::nn::Module {
  explicit EnsembleImpl(int count) {
    for (int i = 0; i < count; ++i)
      critics.push_back(critic(4));
  }
  torch::Tensor forward(const torch::Tensor &x) {
    std::vector<torch::Tensor> all;
    for (auto &each : critics)
      all.push_back(each->forward(x)); // [[device-unregistered-tensor]]
    return torch::stack(all);
  }
  std::vector<torch::nn::Sequential> critics;
};
TORCH_MODULE(Ensemble);

struct RegisteredEnsembleImpl : torch::nn::Module {
  explicit RegisteredEnsembleImpl(int count) {
    for (int i = 0; i < count; ++i)
      critics.push_back(register_module("critic" + std::to_string(i), critic(4)));
  }
  torch::Tensor forward(const torch::Tensor &x) {
    std::vector<torch::Tensor> all;
    for (auto &each : critics)
      all.push_back(each->forward(x));
    return torch::stack(all);
  }
  std::vector<torch::nn::Sequential> critics;
};
TORCH_MODULE(RegisteredEnsemble);

torch::Tensor degrees(const torch::Tensor &edges) {
  return torch::bincount(edges.cpu(), {}, 3).to(torch::kFloat);
}

struct ScalerImpl : torch::nn::Module {
  explicit ScalerImpl(const torch::Tensor &edges) : inverse(degrees(edges).clamp_min(1).reciprocal()) {}
  torch::Tensor forward(const torch::Tensor &x) {
    return x * inverse; // [[device-unregistered-tensor]]
  }
  torch::Tensor inverse;
};
TORCH_MODULE(Scaler);

struct RegisteredScalerImpl : torch::nn::Module {
  explicit RegisteredScalerImpl(const torch::Tensor &edges)
      : inverse(register_buffer("inverse", degrees(edges).clamp_min(1).reciprocal())) {}
  torch::Tensor forward(const torch::Tensor &x) { return x * inverse; }
  torch::Tensor inverse;
};
TORCH_MODULE(RegisteredScaler);

torch::Tensor edges() { return torch::tensor({0, 1, 1, 2}, torch::TensorOptions(torch::kLong).device(torch::kCUDA)); }

} // namespace

void ensemble_bad() {
  Ensemble model(2);
  model->to(torch::kCUDA);
  model(torch::ones({3, 4}, torch::kCUDA));
}

void ensemble_ok() {
  RegisteredEnsemble model(2);
  model->to(torch::kCUDA);
  model(torch::ones({3, 4}, torch::kCUDA));
}

void scaler_bad() {
  Scaler model(edges());
  model->to(torch::kCUDA);
  model(torch::ones({3}, torch::kCUDA));
}

void scaler_ok() {
  RegisteredScaler model(edges());
  model->to(torch::kCUDA);
  model(torch::ones({3}, torch::kCUDA));
}

DT_MAIN(ensemble_bad, ensemble_ok, scaler_bad, scaler_ok)
