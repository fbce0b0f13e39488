#include "lamb.h"

namespace opt {

Lamb::Lamb(std::vector<torch::Tensor> parameters, LambOptions options)
    : parameters_(std::move(parameters)), options_(options) {
  TORCH_CHECK(!parameters_.empty(), "the optimizer got no parameters");
  TORCH_CHECK(options_.beta1 >= 0 && options_.beta1 < 1, "bad beta: ", options_.beta1);
  state_.resize(parameters_.size());
}

void Lamb::zeroGrad() {
  for (auto &parameter : parameters_)
    if (parameter.grad().defined()) {
      parameter.mutable_grad().detach_();
      parameter.mutable_grad().zero_();
    }
}

void Lamb::step() {
  torch::NoGradGuard noGrad;
  ++step_;
  const double correction1 = 1 - std::pow(options_.beta1, step_), correction2 = 1 - std::pow(options_.beta2, step_);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    auto &parameter = parameters_[i];
    if (!parameter.grad().defined())
      continue;
    const auto gradient = parameter.grad();
    auto &state = state_[i];
    if (!state.first.defined()) {
      state.first = torch::zeros_like(parameter);
      state.second = torch::zeros_like(parameter);
    }
    state.first.mul_(options_.beta1).add_(gradient, 1 - options_.beta1);
    state.second.mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
    auto update = (state.first / correction1) / ((state.second / correction2).sqrt() + options_.epsilon);
    update.add_(parameter, options_.weightDecay);
    const auto weightNorm = parameter.norm().item<double>(), updateNorm = update.norm().item<double>();
    const double trust = weightNorm > 0 && updateNorm > 0 ? std::min(weightNorm / updateNorm, options_.maxTrust) : 1.0;
    parameter.add_(update, -options_.learningRate * trust);
  }
}

// Stochastic gradient Langevin dynamics on top of the step.
void Lamb::stepWithNoise(double temperature) {
  step();
  torch::NoGradGuard noGrad;
  const double scale = std::sqrt(2.0 * options_.learningRate * temperature);
  for (auto &parameter : parameters_) {
    const auto noise = torch::randn(parameter.sizes(), parameter.dtype());
    parameter.add_(noise, scale); // [[device-mixed-op]]
  }
}

std::vector<double> Lamb::gradientNorms() const {
  std::vector<double> norms;
  for (const auto &parameter : parameters_)
    norms.push_back(parameter.grad().defined() ? parameter.grad().norm().item<double>() : 0.0);
  return norms;
}

double Lamb::clipGradients(double maxNorm) {
  torch::NoGradGuard noGrad;
  auto total = torch::zeros({}, torch::kFloat64);
  for (const auto &parameter : parameters_)
    if (parameter.grad().defined())
      total = total + parameter.grad().pow(2).sum().to(torch::kFloat64);
  const double norm = total.sqrt().item<double>();
  if (norm > maxNorm) {
    const auto factor = torch::tensor(maxNorm / (norm + 1e-6), torch::kFloat32);
    for (auto &parameter : parameters_)
      if (parameter.grad().defined())
        parameter.mutable_grad().mul_(factor);
  }
  return norm;
}

void Lamb::saveState(const std::string &file) const {
  std::vector<torch::Tensor> tensors;
  for (const auto &state : state_) {
    tensors.push_back(state.first.defined() ? state.first.cpu() : torch::zeros({0}));
    tensors.push_back(state.second.defined() ? state.second.cpu() : torch::zeros({0}));
  }
  tensors.push_back(torch::tensor(step_, torch::kLong));
  torch::save(tensors, file);
}

void Lamb::loadState(const std::string &file) {
  std::vector<torch::Tensor> tensors;
  torch::load(tensors, file);
  TORCH_CHECK(tensors.size() == 2 * parameters_.size() + 1, "the state is of another model");
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (tensors[2 * i].numel() == 0)
      continue;
    state_[i].first = tensors[2 * i].to(parameters_[i].device());
    state_[i].second = tensors[2 * i + 1].to(parameters_[i].device());
  }
  step_ = tensors.back().item<int64_t>();
}

void RowwiseAdagrad::step() {
  torch::NoGradGuard noGrad;
  for (size_t i = 0; i < tables_.size(); ++i) {
    auto &table = tables_[i];
    if (!table.grad().defined())
      continue;
    sums_[i].add_(table.grad().pow(2).mean(1)); // [[device-mixed-op]]
    table.sub_(learningRate_ * table.grad() / (sums_[i].sqrt().unsqueeze(1) + 1e-8));
  }
}

void RowwiseAdagrad::reset() {
  for (auto &sum : sums_)
    sum.zero_();
}

Lookahead::Lookahead(torch::optim::Optimizer &inner, int64_t interval, double alpha)
    : inner_(inner), interval_(interval), alpha_(alpha) {
  for (const auto &group : inner_.param_groups()) {
    slow_.emplace_back();
    for (const auto &parameter : group.params())
      slow_.back().push_back(parameter.detach().clone());
  }
}

void Lookahead::step() {
  inner_.step();
  if (++count_ % interval_ != 0)
    return;
  torch::NoGradGuard noGrad;
  auto &groups = inner_.param_groups();
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t k = 0; k < groups[g].params().size(); ++k) {
      auto &fast = groups[g].params()[k];
      slow_[g][k].add_(fast - slow_[g][k], alpha_);
      fast.copy_(slow_[g][k]);
    }
}

} // namespace opt
