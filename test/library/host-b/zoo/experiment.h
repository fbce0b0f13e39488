#pragma once

#include "objectives.h"
#include "registry.h"

namespace zoo {

struct ExperimentOptions {
  Spec model;
  std::string teacher;
  std::vector<float> classWeights;
  double learningRate = 1e-2;
  torch::Device device = torch::kCPU;
};

class Experiment {
public:
  explicit Experiment(ExperimentOptions options);
  void setup();

  double trainStep(const torch::Tensor &x, const torch::Tensor &y);
  double focalStep(const torch::Tensor &x, const torch::Tensor &y);
  double weightedStep(const torch::Tensor &x, const torch::Tensor &y);
  double distill(const torch::Tensor &x, double temperature);
  double contrast(const torch::Tensor &first, const torch::Tensor &second);
  torch::Tensor project(const torch::Tensor &x);
  torch::Tensor predict(const torch::Tensor &x);
  torch::Tensor embed(const torch::Tensor &x) { return model_->embed(x.to(options_.device)); }
  ConfusionMatrix evaluate(const std::vector<std::pair<torch::Tensor, torch::Tensor>> &batches);
  double calibrationError(const torch::Tensor &x, const torch::Tensor &y, int64_t bins);
  std::vector<double> perClassLoss(const torch::Tensor &x, const torch::Tensor &y);
  torch::Tensor activated(const std::string &name, const torch::Tensor &x);
  std::vector<float> firstWeights() const;
  void loadWeights(const std::string &file);
  void saveWeights(const std::string &file) const;
  double distanceTo(const std::string &file);

private:
  ExperimentOptions options_;
  std::shared_ptr<Model> model_, teacher_;
  torch::nn::Sequential projection_{nullptr};
  torch::nn::CrossEntropyLoss weighted_{nullptr};
  FocalLoss focal_{nullptr};
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

// Several models that vote, each on the device that the caller has chosen for it.
class Ensemble {
public:
  void add(const Spec &spec, torch::Device device) {
    models_.push_back(createOn(spec, device));
    devices_.push_back(device);
  }
  void addOnEveryGpu(const Spec &spec);
  void addOnLastGpu(const Spec &spec);
  torch::Tensor vote(const torch::Tensor &x);
  torch::Tensor majority(const torch::Tensor &x);
  torch::Tensor agreement(const torch::Tensor &x);
  size_t size() const { return models_.size(); }

private:
  std::vector<std::shared_ptr<Model>> models_;
  std::vector<torch::Device> devices_;
};

} // namespace zoo
