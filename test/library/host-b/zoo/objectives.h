#pragma once

#include <torch/torch.h>

#include <vector>

namespace zoo {

class FocalLossImpl : public torch::nn::Module {
public:
  FocalLossImpl(const std::vector<float> &alpha, double gamma) : gamma_(gamma) {
    alpha_ = register_buffer("alpha", torch::tensor(alpha));
  }
  torch::Tensor forward(const torch::Tensor &logits, const torch::Tensor &target) {
    const auto logProb = torch::log_softmax(logits, 1).gather(1, target.unsqueeze(1)).squeeze(1);
    return -(alpha_.index_select(0, target) * (1 - logProb.exp()).pow(gamma_) * logProb).mean();
  }

private:
  double gamma_;
  torch::Tensor alpha_;
};
TORCH_MODULE(FocalLoss);

// Running counts of predictions, on the device of the model until somebody asks.
class ConfusionMatrix {
public:
  ConfusionMatrix(int64_t classes, torch::Device device) : classes_(classes), device_(device) { clear(); }
  void clear() { counts_ = torch::zeros({classes_, classes_}, torch::TensorOptions().dtype(torch::kLong).device(device_)); }
  void add(const torch::Tensor &predicted, const torch::Tensor &expected) {
    const auto cell = expected.to(device_) * classes_ + predicted.to(device_);
    counts_ += torch::bincount(cell.flatten(), {}, classes_ * classes_).view({classes_, classes_});
  }
  double accuracy() const { return counts_.diagonal().sum().item<double>() / std::max<double>(1, counts_.sum().item<double>()); }
  torch::Tensor recall() const { return counts_.diagonal().to(torch::kFloat32) / counts_.sum(1).clamp_min(1); }
  double weightedRecall(const std::vector<float> &weights) const {
    const auto weight = torch::tensor(weights);
    return (recall() * weight).sum().item<double>() / weight.sum().item<double>(); // [[device-mixed-op]]
  }
  int64_t at(int64_t row, int64_t column) const { return counts_[row][column].item<int64_t>(); }
  std::vector<int64_t> row(int64_t index) const {
    const auto values = counts_[index].contiguous();
    return std::vector<int64_t>(values.data_ptr<int64_t>(), values.data_ptr<int64_t>() + classes_); // [[device-host-access]]
  }

private:
  int64_t classes_;
  torch::Device device_;
  torch::Tensor counts_;
};

} // namespace zoo
