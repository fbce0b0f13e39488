#pragma once

#include "modules.h"
#include "optim.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace vit {

struct TrainerOptions {
  ClassifierOptions model;
  double rate = 0.1, momentum = 0.9, decay = 0.999, clip = 1;
  std::vector<double> classCounts;
  bool balanced = false;
};

class Trainer {
public:
  explicit Trainer(const TrainerOptions &options);

  double trainStep(const torch::Tensor &tokens, const torch::Tensor &labels);
  double trainBalanced(const torch::Tensor &tokens, const torch::Tensor &labels);
  double trainMultiTask(const torch::Tensor &tokens, const std::vector<torch::Tensor> &labels);
  void finishEpoch();
  double evaluate(const std::vector<torch::Tensor> &tokens, const std::vector<torch::Tensor> &labels);
  double agreement(const std::vector<torch::Tensor> &tokens, std::vector<torch::Tensor> labels);
  std::vector<float> gradientNorms() const;
  double largestGradient() const;

  void save(const std::string &folder) const;
  void restore(const std::string &folder);
  void loadStatistics(const std::string &file);
  torch::Tensor standardise(const torch::Tensor &tokens) const;

  Classifier model;

private:
  double finish(torch::Tensor loss);
  Ema ema;
  torch::Device device;
  TrainerOptions options;
  std::unique_ptr<Lars> optimizer;
  torch::nn::CrossEntropyLoss weighted{nullptr};
  torch::Tensor mean, deviation, smoothed;
};

} // namespace vit
