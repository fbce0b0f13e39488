#pragma once

#include <torch/torch.h>

#include <vector>

namespace ppo {

struct MiniBatch {
  torch::Tensor observations;
  torch::Tensor actions;
  torch::Tensor logProbs;
  torch::Tensor values;
  torch::Tensor returns;
  torch::Tensor advantages;
};

// What the agent has seen since the last update: steps x environments.
class RolloutStorage {
public:
  RolloutStorage(int64_t steps, int64_t environments, int64_t observationSize);

  void to(torch::Device device);
  void insert(const torch::Tensor &observation, const torch::Tensor &action, const torch::Tensor &logProb,
              const torch::Tensor &value, const torch::Tensor &reward, const torch::Tensor &mask);
  void computeReturns(const torch::Tensor &nextValue, float gamma);
  void computeAdvantages(const torch::Tensor &nextValue, float gamma, float lambda);
  void afterUpdate();
  std::vector<MiniBatch> miniBatches(int64_t count) const;
  torch::Tensor discountedRewards(float gamma) const;

  const torch::Tensor &observations() const { return observations_; }
  const torch::Tensor &returns() const { return returns_; }
  const torch::Tensor &rewards() const { return rewards_; }
  int64_t steps() const { return steps_; }

private:
  int64_t steps_, environments_, position_ = 0;
  torch::Tensor observations_, actions_, logProbs_, values_, rewards_, masks_, returns_, advantages_;
};

} // namespace ppo
