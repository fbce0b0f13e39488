#include "quant.h"

namespace quantops {

void MinMaxObserver::observe(const at::Tensor& x) {
  const auto lo = x.min(), hi = x.max();
  lo_ = lo_.defined() ? at::minimum(lo_, lo.to(lo_.device())) : lo;
  hi_ = hi_.defined() ? at::maximum(hi_, hi.to(hi_.device())) : hi;
}

at::Tensor MinMaxObserver::scale() const { return at::maximum(lo_.abs(), hi_.abs()) / 127; }

void HistogramObserver::observe(const at::Tensor& x) {
  const auto magnitude = x.abs().flatten().to(at::kFloat);
  max_ = std::max(max_, magnitude.max().item<double>());
  counts_ += magnitude.histc(counts_.numel(), 0, max_); // [[device-mixed-op]]
}

at::Tensor HistogramObserver::scale() const {
  const auto filled = (counts_.cumsum(0) / counts_.sum().clamp_min(1)).lt(0.999).sum();
  return filled * (max_ / counts_.numel() / 127);
}

void PercentileObserver::observe(const at::Tensor& x) { samples_.push_back(x.detach().abs().flatten().cpu()); }

at::Tensor PercentileObserver::scale() const {
  const auto all = std::get<0>(at::cat(samples_).sort());
  const auto at_percentile = static_cast<int64_t>(percentile_ * (all.numel() - 1));
  return at::full({1}, all.data_ptr<float>()[at_percentile] / 127);
}

void Calibrator::attach(const std::string& layer, std::unique_ptr<Observer> observer) {
  observers_[layer] = std::move(observer);
}

at::Tensor Calibrator::quantize(const std::string& layer, const at::Tensor& x) const {
  const auto scale = observers_.at(layer)->scale();
  return (x / scale).round().clamp(-128, 127).to(at::kChar); // [[device-mixed-op]]
}

std::map<std::string, float> Calibrator::report() const {
  std::map<std::string, float> out;
  for (const auto& [layer, observer] : observers_)
    out[layer] = observer->scale().item<float>();
  return out;
}

QuantLinear::QuantLinear(const at::Tensor& weight, const c10::optional<at::Tensor>& bias) : weight_(weight) {
  scale_ = weight.abs().amax(1) / 127;
  q_ = (weight / scale_.unsqueeze(1)).round().to(at::kChar);
  if (bias.has_value() && bias->defined())
    bias_ = bias->clone();
}

void QuantLinear::to(const at::Device& device) {
  q_ = q_.to(device);
  scale_ = scale_.to(device);
  weight_ = weight_.to(device);
}

at::Tensor QuantLinear::forward(const at::Tensor& x) const {
  auto y = x.to(q_.device()).matmul(q_.to(at::kFloat).t()) * scale_;
  if (bias_)
    y = y + *bias_; // [[device-mixed-op]]
  return y;
}

at::Tensor QuantLinear::forward_reference(const at::Tensor& x) const {
  const auto y = x.to(weight_.device()).matmul(weight_.t());
  return bias_ ? y + bias_->to(y.device()) : y;
}

at::Tensor QuantLinear::error(const at::Tensor& x) const {
  const auto approximate = x.to(q_.device()).matmul(q_.to(at::kFloat).t()) * scale_;
  return (approximate - x.to(q_.device()).matmul(weight_.t())).abs().max();
}

} // namespace quantops
