#include "network.h"

#include <cmath>
#include <random>

namespace zero {

float Search::expand(Node& leaf, const torch::Tensor& planes) {
  const Evaluation result = evaluator_.evaluate(planes.unsqueeze(0));
  const auto priors = result.priors.accessor<float, 2>();
  const int64_t moves = result.priors.size(1);
  leaf.children.reserve(moves);
  for (int64_t move = 0; move < moves; ++move) {
    auto child = std::make_unique<Node>();
    child->move = static_cast<int>(move);
    child->prior = priors[0][move]; // [[device-host-access]]
    leaf.children.push_back(std::move(child));
  }
  return result.values.item<float>();
}

void Search::expand_root(Node& root, const torch::Tensor& planes) {
  const Evaluation result = evaluator_.evaluate(planes.unsqueeze(0));
  const auto priors = result.priors[0].cpu();
  // Gamma samples make a Dirichlet one; the tree lives on the host anyway.
  auto gamma = torch::rand(priors.sizes()).log().neg();
  const auto noise = gamma / gamma.sum();
  const auto mixed = (1 - noise_) * priors + noise_ * noise;
  const float* p = mixed.data_ptr<float>();
  for (int64_t move = 0; move < mixed.numel(); ++move) {
    auto child = std::make_unique<Node>();
    child->move = static_cast<int>(move);
    child->prior = p[move];
    root.children.push_back(std::move(child));
  }
}

std::vector<float> Search::leaf_values(const std::vector<torch::Tensor>& planes) {
  Evaluation result = evaluator_.evaluate(torch::stack(planes));
  if (result.values.is_cuda())
    result.values = result.values.to(torch::kCPU);
  const auto view = result.values.accessor<float, 1>();
  std::vector<float> values;
  for (int64_t i = 0; i < view.size(0); ++i)
    values.push_back(view[i]);
  return values;
}

torch::Tensor Search::visit_policy(const Node& root, int64_t moves, double temperature) {
  auto counts = torch::zeros({moves});
  auto out = counts.accessor<float, 1>();
  for (const auto& child : root.children)
    out[child->move] = std::pow(static_cast<float>(child->visits), static_cast<float>(1 / temperature));
  return counts / counts.sum().clamp_min(1e-6);
}

RecurrentActor::RecurrentActor(int64_t planes, int64_t hidden, torch::Device device)
    : device_(device), hidden_(hidden), input_(planes, hidden), recurrent_(hidden, hidden) {
  input_->to(device_);
  recurrent_->to(device_);
  state_ = torch::zeros({1, hidden_}, device_);
}

torch::Tensor RecurrentActor::act(const torch::Tensor& observation) {
  torch::NoGradGuard no_grad;
  const auto seen = input_(observation.to(device_).view({1, -1}));
  state_ = torch::tanh(seen + recurrent_(state_)); // [[device-mixed-op]]
  return state_.argmax(-1).cpu();
}

void RecurrentActor::new_game() { state_ = torch::zeros({1, hidden_}); }

Placement Placement::automatic(int actors) {
  Placement result;
  const int gpus = static_cast<int>(torch::cuda::device_count());
  if (gpus == 0) {
    result.actors.assign(actors, torch::kCPU);
    return result;
  }
  for (int i = 0; i < actors; ++i)
    result.actors.emplace_back(torch::kCUDA, i % gpus);
  result.learner = torch::Device(torch::kCUDA, gpus); // [[device-lost-index]]
  return result;
}

Placement Placement::shared(int actors) {
  Placement result;
  const int gpus = static_cast<int>(torch::cuda::device_count());
  TORCH_CHECK(gpus > 0, "shared placement needs a GPU");
  result.learner = torch::Device(torch::kCUDA, gpus - 1);
  for (int i = 0; i < actors; ++i)
    result.actors.push_back(gpus > 1 ? torch::Device(torch::kCUDA, i % (gpus - 1)) : result.learner);
  return result;
}

} // namespace zero
