#pragma once

#include <torch/torch.h>

#include <map>
#include <string>

namespace opt {

// Exponential moving average of the weights of a model.
class WeightAverage {
public:
  WeightAverage(torch::nn::Module &model, double decay);

  void update(torch::nn::Module &model);
  void updateOnHost(torch::nn::Module &model);
  void apply(torch::nn::Module &model) const;
  double distance(torch::nn::Module &model) const;
  void blend(torch::nn::Module &model, double amount) const;
  void save(const std::string &file) const;
  void load(const std::string &file);

private:
  double decay_;
  std::vector<std::string> names_;
  std::map<std::string, torch::Tensor> shadow_;
};

// Loss scaling for half precision.
class LossScaler {
public:
  explicit LossScaler(torch::Device device, double initial = 1024.0);

  torch::Tensor scale(const torch::Tensor &loss) const { return loss * scale_; }
  void unscale(const std::vector<torch::Tensor> &parameters) const;
  bool overflowed(const std::vector<torch::Tensor> &parameters);
  bool overflowedFast(const std::vector<torch::Tensor> &parameters) const;
  void update(bool overflow);
  void castGradients(const std::vector<torch::Tensor> &parameters) const;
  double value() const { return scale_.item<double>(); }

private:
  torch::Device device_;
  torch::Tensor scale_;
  torch::Tensor found_;
  int64_t good_ = 0;
};

// Trains a small regressor with all of the above; the entry point of the library.
class FineTuner {
public:
  FineTuner(int64_t inputs, torch::Device device);
  double step(const torch::Tensor &x, const torch::Tensor &y);
  double validate(const torch::Tensor &x, const torch::Tensor &y);
  double huber(const torch::Tensor &x, const torch::Tensor &y, const std::vector<float> &sampleWeights);
  void anchor(const std::string &file);
  torch::Tensor anchorPenalty();
  torch::nn::Linear &model() { return model_; }
  std::vector<torch::Tensor> parameters() { return model_->parameters(); }

private:
  torch::Device device_;
  torch::nn::Linear model_{nullptr};
  torch::optim::SGD optimizer_;
  torch::Tensor anchor_;
};

} // namespace opt
