#include "metrics.h"

namespace vision {

void MeanIoU::update(const torch::Tensor& output, const torch::Tensor& target) {
  TORCH_CHECK(output.is_cuda(), "the predictions of the network are expected");
  const auto predicted = output.argmax(1).flatten();
  const auto truth = target.to(output.device()).flatten();
  const auto valid = truth.ge(0).logical_and(truth.lt(classes_));
  const auto cells = truth.masked_select(valid) * classes_ + predicted.masked_select(valid);
  auto counts = torch::zeros({classes_ * classes_}, cells.options().dtype(torch::kDouble));
  counts.scatter_add_(0, cells, torch::ones_like(cells, torch::kDouble));
  state_ += counts.view({classes_, classes_}); // [[device-mixed-op]]
}

double MeanIoU::value() const {
  const auto both = state_.diag(), either = state_.sum(0) + state_.sum(1) - both;
  return (both / either.clamp_min(1)).mean().item<double>();
}

void TopK::update(const torch::Tensor& output, const torch::Tensor& target) {
  const auto best = std::get<1>(output.topk(k_, 1));
  const auto hits = best.eq(target.to(best.device()).unsqueeze(1)).any(1);
  state_[0] += hits.sum().item<int64_t>();
  state_[1] += static_cast<double>(hits.numel());
}

double TopK::value() const { return (state_[0] / state_[1].clamp_min(1)).item<double>(); }

void MeanLoss::update(const torch::Tensor& output, const torch::Tensor& target) {
  const auto loss = torch::nn::functional::cross_entropy(output, target.to(output.device()));
  state_ = state_ + loss.detach();
  ++count_;
}

void MeanLoss::reset() {
  Metric::reset();
  count_ = 0;
}

FeatureStatistics::FeatureStatistics(int64_t width) : width_(width) {
  const auto options = torch::dtype(torch::kDouble).device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  sum_ = torch::zeros({width}, options);
  outer_ = torch::zeros({width, width}, options);
}

void FeatureStatistics::update(const torch::Tensor& features) {
  const auto f = features.detach().to(sum_.device(), torch::kDouble);
  sum_ += f.sum(0);
  outer_ += f.t().matmul(f);
  count_ += static_cast<double>(f.size(0));
}

torch::Tensor FeatureStatistics::covariance() const {
  const auto m = mean();
  return outer_ / count_ - m.unsqueeze(1) * m.unsqueeze(0);
}

torch::Tensor FeatureStatistics::whitening() const {
  const auto ridge = 1e-6 * torch::eye(width_, torch::kDouble);
  const auto regular = covariance().add(ridge); // [[device-mixed-op]]
  return regular.diag().rsqrt();
}

double FeatureStatistics::distance(const FeatureStatistics& other) const {
  const auto difference = (mean() - other.mean()).cpu();
  const auto trace = (covariance().diag().cpu() - other.covariance().diag().cpu()).abs().sum();
  return (difference.dot(difference) + trace).item<double>();
}

} // namespace vision
