#include "diffusion.h"

#include <cmath>

namespace diffusion {

namespace {

torch::Tensor extract(const torch::Tensor& table, const torch::Tensor& t, int64_t rank) {
  auto out = table.gather(0, t); // [[device-mixed-op]]
  std::vector<int64_t> shape(rank, 1);
  shape[0] = t.size(0);
  return out.view(shape);
}

} // namespace

NoiseSchedule::NoiseSchedule(int64_t steps, double beta_start, double beta_end) {
  const auto betas = torch::linspace(std::sqrt(beta_start), std::sqrt(beta_end), steps).pow(2);
  alphas_cumprod_ = torch::cumprod(1 - betas, 0);
}

torch::Tensor NoiseSchedule::add_noise(const torch::Tensor& x0, const torch::Tensor& noise,
                                       const torch::Tensor& t) const {
  const auto a = extract(alphas_cumprod_.to(x0.device()), t, x0.dim());
  return a.sqrt() * x0 + (1 - a).sqrt() * noise;
}

torch::Tensor NoiseSchedule::velocity(const torch::Tensor& x0, const torch::Tensor& noise,
                                      const torch::Tensor& t) const {
  const auto steps = t.to(x0.device());
  const auto a = extract(alphas_cumprod_, steps, x0.dim());
  return a.sqrt() * noise - (1 - a).sqrt() * x0;
}

torch::Tensor NoiseSchedule::snr(const torch::Tensor& t) const {
  const auto a = alphas_cumprod_.index({t.cpu()});
  return (a / (1 - a)).to(t.device());
}

torch::Tensor Ddim::step(const torch::Tensor& latents, const torch::Tensor& eps, int64_t t) {
  const auto a = schedule_->alphas()[t], previous = t > 0 ? schedule_->alphas()[t - 1] : torch::ones({});
  const auto x0 = (latents - (1 - a).sqrt() * eps) / a.sqrt();
  return previous.sqrt() * x0 + (1 - previous).sqrt() * eps;
}

torch::Tensor EulerAncestral::step(const torch::Tensor& latents, const torch::Tensor& eps, int64_t t) {
  const double a = schedule_->alphas()[t].item<double>();
  const double sigma = std::sqrt((1 - a) / a);
  auto next = latents - sigma * 0.1 * eps;
  if (t > 0)
    next = next + eta_ * sigma * torch::randn(latents.sizes(), latents.dtype()); // [[device-mixed-op]]
  return next;
}

torch::Tensor MultiStep::step(const torch::Tensor& latents, const torch::Tensor& eps, int64_t t) {
  history_.push_back(eps.detach());
  if (history_.size() > 3)
    history_.erase(history_.begin());
  auto mixed = torch::zeros_like(eps);
  const std::vector<double> weights = {23. / 12, -16. / 12, 5. / 12};
  for (size_t i = 0; i < history_.size(); ++i)
    mixed += weights[i] * history_[history_.size() - 1 - i].to(mixed.device());
  return latents - schedule_->alphas()[t] * mixed;
}

torch::Tensor timestep_embedding(const torch::Tensor& t, int64_t width) {
  const auto half = width / 2;
  const auto freqs = torch::exp(-std::log(10000.) * torch::arange(0, half, torch::kFloat) / half);
  const auto args = t.to(torch::kFloat).unsqueeze(1) * freqs.unsqueeze(0).to(t.device());
  return torch::cat({args.cos(), args.sin()}, -1);
}

torch::Tensor fourier_embedding(const torch::Tensor& t, int64_t width) {
  const auto freqs = torch::arange(1, width / 2 + 1, t.options()).to(torch::kFloat) * M_PI;
  const auto args = t.unsqueeze(1) * freqs;
  return torch::cat({args.cos(), args.sin()}, -1);
}

} // namespace diffusion
