#include "optim.h"

#include <algorithm>

namespace vit {

void Lars::zeroGrad() {
  for (auto &p : parameters)
    if (p.grad().defined())
      p.mutable_grad().zero_();
}

torch::Tensor Lars::localRate(const torch::Tensor &p, const torch::Tensor &grad) const {
  auto weightNorm = p.detach().norm(), gradNorm = grad.norm();
  auto one = torch::ones({}, torch::kFloat);
  return torch::where((weightNorm > 0).logical_and(gradNorm > 0), trust * weightNorm / (gradNorm + 1e-8),
                      one.to(weightNorm.device()));
}

void Lars::step() {
  torch::NoGradGuard noGrad;
  for (auto &p : parameters) {
    if (!p.grad().defined())
      continue;
    auto grad = p.grad() * localRate(p, p.grad());
    auto &buffer = velocity[p.unsafeGetTensorImpl()];
    if (!buffer.defined())
      buffer = torch::zeros_like(p);
    buffer.mul_(momentum).add_(grad);
    p.sub_(buffer, rate);
  }
}

void Lars::stepNesterov() {
  torch::NoGradGuard noGrad;
  for (auto &p : parameters) {
    if (!p.grad().defined())
      continue;
    auto [found, inserted] = lookahead.try_emplace(p.unsafeGetTensorImpl());
    if (inserted)
      found->second = torch::zeros(p.sizes(), p.dtype());
    auto &buffer = found->second;
    buffer.mul_(momentum).add_(p.grad()); // [[device-mixed-op]]
    p.sub_(p.grad() + momentum * buffer, rate);
  }
}

double Lars::clip(double limit) {
  auto total = torch::zeros({});
  for (const auto &p : parameters)
    if (p.grad().defined())
      total = total + p.grad().pow(2).sum();
  const double norm = std::sqrt(total.item<double>());
  if (norm > limit)
    for (auto &p : parameters)
      if (p.grad().defined())
        p.mutable_grad().mul_(torch::tensor(limit / (norm + 1e-6), p.grad().dtype()));
  return norm;
}

Ema::Ema(const torch::nn::Module &model, double decay) : decay(decay) {
  for (const auto &item : model.named_parameters())
    shadow.emplace_back(item.key(), item.value().detach().clone());
}

void Ema::update(const torch::nn::Module &model) {
  torch::NoGradGuard noGrad;
  const double used = std::min(decay, (1.0 + updates) / (10.0 + updates));
  ++updates;
  const auto current = model.named_parameters();
  for (auto &[name, value] : shadow)
    value.mul_(used).add_(current[name], 1 - used); // [[device-mixed-op]]
}

void Ema::copyTo(torch::nn::Module &model) const {
  torch::NoGradGuard noGrad;
  auto current = model.named_parameters();
  for (const auto &[name, value] : shadow)
    current[name].copy_(value);
}

double Ema::distance(const torch::nn::Module &model) const {
  const auto current = model.named_parameters();
  double sum = 0;
  for (const auto &[name, value] : shadow)
    sum += (current[name].detach().cpu() - value.cpu()).norm().item<double>();
  return sum;
}

} // namespace vit
