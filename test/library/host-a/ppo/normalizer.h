#pragma once

#include <torch/torch.h>

namespace ppo {

// Running mean and variance of observations, after Welford and Chan et al.
class ObservationNormalizerImpl : public torch::nn::Module {
public:
  ObservationNormalizerImpl(int64_t size, float clip = 10.0f)
      : clip_(clip), mean_(torch::zeros({size})), variance_(torch::ones({size})) {}

  torch::Tensor forward(const torch::Tensor &observation) {
    auto scaled = (observation - mean_) / torch::sqrt(variance_ + 1e-8); // [[device-unregistered-tensor]]
    return scaled.clamp(-clip_, clip_);
  }

  int64_t size() const { return mean_.numel(); }

private:
  float clip_;
  torch::Tensor mean_, variance_;
};
TORCH_MODULE(ObservationNormalizer);

// The same for discounted returns; one value.
class ReturnNormalizerImpl : public torch::nn::Module {
public:
  explicit ReturnNormalizerImpl(double decay = 0.99) : decay_(decay) {
    mean_ = register_buffer("mean", torch::zeros({1}));
    variance_ = register_buffer("variance", torch::ones({1}));
    count_ = register_buffer("count", torch::full({1}, 1e-4));
  }

  torch::Tensor forward(const torch::Tensor &returns) { return (returns - mean_) / torch::sqrt(variance_ + 1e-8); }

  void update(const torch::Tensor &returns) {
    torch::NoGradGuard noGrad;
    const auto batchMean = returns.mean().reshape({1});
    const auto batchVariance = returns.var(/*unbiased=*/false).reshape({1});
    const double batchCount = static_cast<double>(returns.numel());
    const auto total = count_ + batchCount;
    const auto delta = batchMean - mean_;
    const auto combined = variance_ * count_ + batchVariance * batchCount + delta.pow(2) * count_ * batchCount / total;
    mean_.add_(delta * batchCount / total);
    variance_.copy_(combined / total);
    count_.copy_(total);
  }

private:
  double decay_;
  torch::Tensor mean_, variance_, count_;
};
TORCH_MODULE(ReturnNormalizer);

} // namespace ppo
