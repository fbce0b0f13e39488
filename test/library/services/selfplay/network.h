#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

namespace zero {

struct TowerImpl : torch::nn::Module {
  TowerImpl(int64_t planes, int64_t hidden, int64_t moves) {
    body = register_module("body", torch::nn::Linear(planes, hidden));
    policy = register_module("policy", torch::nn::Linear(hidden, moves));
    value = register_module("value", torch::nn::Linear(hidden, 1));
  }
  std::pair<torch::Tensor, torch::Tensor> forward(torch::Tensor x) {
    const auto h = torch::relu(body(x));
    return {policy(h), torch::tanh(value(h)).squeeze(-1)};
  }
  torch::nn::Linear body{nullptr}, policy{nullptr}, value{nullptr};
};
TORCH_MODULE(Tower);

struct Evaluation {
  torch::Tensor priors;  // [batch, moves]
  torch::Tensor values;  // [batch]
};

// Batched evaluation of leaves.
class Evaluator {
 public:
  explicit Evaluator(Tower net, torch::Device device = torch::kCUDA) : net_(std::move(net)), device_(device) {
    net_->to(device_);
    net_->eval();
  }
  Evaluation evaluate(const torch::Tensor& planes) {
    torch::NoGradGuard no_grad;
    const auto [logits, value] = net_->forward(planes.to(device_, /*non_blocking=*/true));
    return {logits.softmax(-1), value};
  }
  torch::Device device() const { return device_; }

 private:
  Tower net_;
  torch::Device device_;
};

struct Node {
  int move = -1, visits = 0;
  float prior = 0, value_sum = 0;
  std::vector<std::unique_ptr<Node>> children;
};

class Search {
 public:
  Search(Evaluator& evaluator, double noise) : evaluator_(evaluator), noise_(noise) {}
  float expand(Node& leaf, const torch::Tensor& planes);
  void expand_root(Node& root, const torch::Tensor& planes);
  std::vector<float> leaf_values(const std::vector<torch::Tensor>& planes);
  static torch::Tensor visit_policy(const Node& root, int64_t moves, double temperature);

 private:
  Evaluator& evaluator_;
  double noise_;
};

// A policy with memory for games of hidden information.
class RecurrentActor {
 public:
  RecurrentActor(int64_t planes, int64_t hidden, torch::Device device);
  torch::Tensor act(const torch::Tensor& observation);
  void new_game();
  torch::Tensor export_state() const { return state_.detach().cpu(); }
  void import_state(const torch::Tensor& state) { state_ = state.to(device_); }

 private:
  torch::Device device_;
  int64_t hidden_;
  torch::nn::Linear input_, recurrent_;
  torch::Tensor state_;
};

struct Placement {
  std::vector<torch::Device> actors;
  torch::Device learner = torch::kCPU;
  static Placement automatic(int actors);
  static Placement shared(int actors);
};

} // namespace zero
