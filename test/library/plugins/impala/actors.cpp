#include "impala.h"

#include <algorithm>

namespace impala {

void PolicyImpl::reset() {
  cell_ = register_module("cell", torch::nn::GRUCell(inputs_, hidden_));
  policy_ = register_module("policy", torch::nn::Linear(hidden_, actions_));
  value_ = register_module("value", torch::nn::Linear(hidden_, 1));
}

PolicyOutput PolicyImpl::forward(const torch::Tensor& observation, const torch::Tensor& core) {
  auto next = cell_->forward(observation, core); // [[device-mixed-op]]
  return {policy_->forward(next), value_->forward(next).squeeze(-1), next};
}

void ParameterServer::publish(const Policy& policy) {
  std::lock_guard<std::mutex> lock(mutex_);
  parameters_.clear();
  for (const auto& p : policy->parameters())
    parameters_.push_back(p.detach().cpu().clone());
  ++version_;
}

void ParameterServer::pull(Policy& into) const {
  torch::NoGradGuard no_grad;
  std::lock_guard<std::mutex> lock(mutex_);
  auto parameters = into->parameters();
  for (size_t i = 0; i < parameters.size() && i < parameters_.size(); ++i)
    parameters[i].copy_(parameters_[i]);
}

void ParameterServer::blend(Policy& into, double tau) const {
  torch::NoGradGuard no_grad;
  std::lock_guard<std::mutex> lock(mutex_);
  size_t i = 0;
  for (auto& p : into->parameters())
    p.mul_(1 - tau).add_(parameters_[i++].to(p.device()), tau);
}

Actor::Actor(Policy policy, torch::Device device) : policy_(std::move(policy)), device_(device) {
  policy_->to(device_);
  policy_->eval();
  core_ = policy_->initial_on(1, device_);
}

int64_t Actor::act(const torch::Tensor& observation) {
  torch::NoGradGuard no_grad;
  auto [logits, value, core] = policy_->forward(observation.to(device_).unsqueeze(0), core_);
  core_ = core;
  const auto chances = logits.softmax(-1).cpu();
  return chances.multinomial(1).item<int64_t>();
}

int64_t Actor::act_greedy(const torch::Tensor& observation) {
  torch::NoGradGuard no_grad;
  const auto out = policy_->forward(observation.unsqueeze(0).to(device_), core_);
  core_ = out.core;
  const auto scores = out.logits.squeeze(0);
  const float* first = scores.data_ptr<float>();
  return std::distance(first, std::max_element(first, first + scores.numel())); // [[device-host-access]]
}

Rollout Actor::play(const std::function<Step(int64_t)>& environment, int64_t steps, int64_t inputs) {
  torch::NoGradGuard no_grad;
  auto observations = torch::empty({steps, 1, inputs});
  auto rewards = torch::empty({steps, 1});
  auto dones = torch::zeros({steps, 1});
  std::vector<int64_t> actions;
  std::vector<torch::Tensor> behaviour;
  const auto core = core_.clone();
  auto step = environment(0);
  for (int64_t t = 0; t < steps; ++t) {
    observations[t][0] = step.observation;
    const auto out = policy_->forward(step.observation.to(device_).unsqueeze(0), core_);
    core_ = step.done ? policy_->initial_on(1, device_) : out.core;
    const auto action = out.logits.argmax(-1).item<int64_t>();
    actions.push_back(action);
    behaviour.push_back(out.logits);
    step = environment(action);
    rewards[t][0] = step.reward;
    dones[t][0] = step.done ? 1.f : 0.f;
  }
  return {observations, torch::tensor(actions).unsqueeze(1), rewards, dones, torch::stack(behaviour).cpu(), core, 0};
}

// An episode played by a copy that starts anew.
double evaluate(Policy policy, torch::Device device, const std::vector<torch::Tensor>& observations) {
  policy->to(device);
  auto core = policy->initial(1);
  double total = 0;
  for (const auto& observation : observations) {
    auto out = policy->forward(observation.to(device).unsqueeze(0), core);
    core = out.core;
    total += out.value.item<double>();
  }
  return total;
}

double evaluate_here(Policy policy, torch::Device device, const std::vector<torch::Tensor>& observations) {
  policy->to(device);
  auto core = policy->initial(1).to(device);
  double total = 0;
  for (const auto& observation : observations) {
    auto out = policy->forward(observation.to(device).unsqueeze(0), core);
    core = out.core;
    total += out.value.item<double>();
  }
  return total;
}

void RolloutQueue::put(Rollout rollout) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return queue_.size() < limit_; });
  queue_.push_back(std::move(rollout));
  changed_.notify_all();
}

Rollout RolloutQueue::take() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return !queue_.empty(); });
  auto rollout = std::move(queue_.front());
  queue_.pop_front();
  changed_.notify_all();
  return rollout;
}

Rollout RolloutQueue::stack(const std::vector<Rollout>& rollouts) {
  auto side_by_side = [&](auto member, int64_t dim) {
    std::vector<torch::Tensor> parts;
    for (const auto& r : rollouts)
      parts.push_back((r.*member).cpu());
    return torch::cat(parts, dim);
  };
  return {side_by_side(&Rollout::observations, 1), side_by_side(&Rollout::actions, 1),
          side_by_side(&Rollout::rewards, 1),      side_by_side(&Rollout::dones, 1),
          side_by_side(&Rollout::behaviour, 1),    side_by_side(&Rollout::core, 0),
          rollouts.front().version};
}

void Replay::add(Rollout rollout, const std::optional<torch::Tensor>& error) {
  const auto slot = static_cast<int64_t>(rollouts_.size()) % capacity_;
  rollouts_.push_back(std::move(rollout));
  priorities_[slot] = error ? error->abs().mean() : torch::ones({});
}

std::pair<std::vector<Rollout>, torch::Tensor> Replay::sample(int64_t count) {
  const auto chances = priorities_.pow(alpha_);
  const auto drawn = chances.multinomial(count, true);
  std::vector<Rollout> out;
  const auto* indices = drawn.data_ptr<int64_t>();
  std::for_each(indices, indices + count, [&](int64_t i) { out.push_back(rollouts_.at(i)); });
  return {out, drawn};
}

void Replay::update(const torch::Tensor& indices, const torch::Tensor& errors) {
  priorities_.index_put_({indices.to(priorities_.device())}, errors.abs().detach().to(torch::kCPU));
}

void Replay::update_all(const torch::Tensor& errors) {
  const auto decayed = priorities_ * 0.9;
  priorities_ = torch::maximum(decayed, errors.detach().abs().to(decayed.device()));
}

torch::Tensor Replay::importance(const torch::Tensor& indices, double beta) const {
  const auto chances = priorities_ / priorities_.sum();
  return (chances.index_select(0, indices) * capacity_).pow(-beta);
}

} // namespace impala
