// Optimizers and helpers that LibTorch lacks.
#pragma once

#include <torch/torch.h>

#include <cmath>
#include <unordered_map>
#include <vector>

namespace rl {

struct LionOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0;
};

/// Sign of an interpolated momentum.
class Lion {
public:
  Lion(std::vector<torch::Tensor> parameters, LionOptions options)
      : parameters_(std::move(parameters)), options_(options) {}

  void zeroGrad() {
    for (auto &p : parameters_)
      if (p.grad().defined())
        p.mutable_grad().detach_().zero_();
  }

  void step() {
    torch::NoGradGuard no_grad;
    for (auto &p : parameters_) {
      if (!p.grad().defined())
        continue;
      auto &average = state_[p.unsafeGetTensorImpl()];
      if (!average.defined())
        average = torch::zeros(p.sizes(), p.scalar_type());
      if (options_.weight_decay > 0)
        p.mul_(1 - options_.lr * options_.weight_decay);
      auto update = average.mul(options_.beta1).add(p.grad(), 1 - options_.beta1); // [[device-mixed-op]]
      p.add_(update.sign(), -options_.lr);
      average.mul_(options_.beta2).add_(p.grad(), 1 - options_.beta2);
    }
  }

private:
  std::vector<torch::Tensor> parameters_;
  LionOptions options_;
  std::unordered_map<void *, torch::Tensor> state_;
};

/// LAMB: Adam's update scaled by the ratio of norms of each layer.
class Lamb {
public:
  explicit Lamb(std::vector<torch::Tensor> parameters, double lr = 1e-3) : parameters_(std::move(parameters)), lr_(lr) {}

  void step() {
    torch::NoGradGuard no_grad;
    ++steps_;
    const double correction1 = 1 - std::pow(0.9, steps_), correction2 = 1 - std::pow(0.999, steps_);
    for (auto &p : parameters_) {
      const auto &grad = p.grad();
      if (!grad.defined())
        continue;
      auto &s = state_[p.unsafeGetTensorImpl()];
      if (!s.m.defined()) {
        s.m = torch::zeros_like(p, torch::MemoryFormat::Preserve);
        s.v = torch::zeros(p.sizes(), grad.options());
        s.one = torch::tensor(1.0f);
      }
      s.m.mul_(0.9).add_(grad, 0.1);
      s.v.mul_(0.999).addcmul_(grad, grad, 0.001);
      auto direction = (s.m / correction1) / ((s.v / correction2).sqrt() + 1e-6);
      auto ratio = torch::where(direction.norm() > 0, p.norm() / direction.norm(), s.one.to(p.device()));
      p.sub_(direction * ratio * lr_);
    }
  }

private:
  struct State {
    torch::Tensor m, v, one;
  };
  std::vector<torch::Tensor> parameters_;
  double lr_;
  int64_t steps_ = 0;
  std::unordered_map<void *, State> state_;
};

/// Averages of parameters, kept in host memory.
class Ema {
public:
  Ema(const torch::nn::Module &module, double decay) : decay_(decay) {
    for (const auto &p : module.parameters())
      shadow_.push_back(p.detach().to(torch::kCPU, p.scalar_type(), false, /*copy=*/true));
  }

  void update(const torch::nn::Module &module) {
    torch::NoGradGuard no_grad;
    const auto parameters = module.parameters();
    TORCH_CHECK(parameters.size() == shadow_.size(), "the module has changed");
    for (size_t i = 0; i < shadow_.size(); ++i)
      shadow_[i].lerp_(parameters[i].detach(), 1 - decay_); // [[device-mixed-op]]
  }

  void apply(torch::nn::Module &module) const {
    torch::NoGradGuard no_grad;
    auto parameters = module.parameters();
    for (size_t i = 0; i < shadow_.size(); ++i)
      parameters[i].copy_(shadow_[i]);
  }

  double distance(const torch::nn::Module &module) const {
    double sum = 0;
    const auto parameters = module.parameters();
    for (size_t i = 0; i < shadow_.size(); ++i)
      sum += (parameters[i].detach().cpu() - shadow_[i]).pow(2).sum().item<double>();
    return std::sqrt(sum);
  }

private:
  double decay_;
  std::vector<torch::Tensor> shadow_;
};

inline double clipGradients(const std::vector<torch::Tensor> &parameters, double limit) {
  torch::NoGradGuard no_grad;
  auto total = torch::zeros({});
  for (const auto &p : parameters)
    if (p.grad().defined())
      total = total + p.grad().norm().pow(2);
  auto scale = (limit / (total.sqrt() + 1e-6)).clamp_max(1.0);
  for (const auto &p : parameters)
    if (p.grad().defined())
      p.grad().mul_(scale);
  return total.sqrt().item<double>();
}

} // namespace rl
