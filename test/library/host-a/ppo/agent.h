#pragma once

#include "normalizer.h"
#include "rollout.h"

#include <map>
#include <string>

namespace ppo {

struct AgentOptions {
  int64_t observationSize = 4;
  int64_t actions = 2;
  int64_t hidden = 32;
  float clip = 0.2f;
  float entropyWeight = 0.01f;
  double learningRate = 3e-4;
  torch::Device device = torch::kCPU;
};

struct Decision {
  torch::Tensor action;
  torch::Tensor logProb;
  torch::Tensor value;
};

struct Statistics {
  double policyLoss = 0;
  double valueLoss = 0;
  double entropy = 0;
  double divergence = 0;
};

class Agent {
public:
  explicit Agent(AgentOptions options);
  void initialize();

  Decision act(const torch::Tensor &observation);
  torch::Tensor value(const torch::Tensor &observation);
  torch::Tensor advantageOverExpert(const torch::Tensor &observation);
  std::vector<float> actionProbabilities(const std::vector<float> &observation);
  int64_t greedy(const std::vector<float> &observation);
  torch::Tensor normalizedObservation(const torch::Tensor &observation);

  Statistics update(const std::vector<MiniBatch> &batches);
  double divergenceFromSnapshot(const torch::Tensor &observations);
  double explainedVariance(const RolloutStorage &storage);
  double actionWeightedLoss(const MiniBatch &batch);
  void snapshot();
  void observeReturns(const torch::Tensor &returns);
  void decayLearningRate(int64_t step, int64_t total);

  void save(const std::string &prefix) const;
  void load(const std::string &prefix);
  void loadExpert(const std::string &file);

  torch::Device device() const { return options_.device; }

private:
  torch::Tensor prepare(const torch::Tensor &observation) const { return observation.to(options_.device); }

  AgentOptions options_;
  torch::nn::Sequential actor_{nullptr};
  torch::nn::Linear critic_{nullptr}, expert_{nullptr};
  ObservationNormalizer normalizer_{nullptr};
  ReturnNormalizer returnNormalizer_{nullptr};
  std::unique_ptr<torch::optim::Adam> optimizer_;
  torch::Tensor actionWeights_;
  std::map<std::string, torch::Tensor> snapshot_;
};

} // namespace ppo
