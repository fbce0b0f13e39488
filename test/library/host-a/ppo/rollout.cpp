#include "rollout.h"

namespace ppo {

RolloutStorage::RolloutStorage(int64_t steps, int64_t environments, int64_t observationSize)
    : steps_(steps), environments_(environments), observations_(torch::zeros({steps + 1, environments, observationSize})),
      actions_(torch::zeros({steps, environments}, torch::kLong)), logProbs_(torch::zeros({steps, environments})),
      values_(torch::zeros({steps + 1, environments})), rewards_(torch::zeros({steps, environments})),
      masks_(torch::ones({steps + 1, environments})), returns_(torch::zeros({steps + 1, environments})),
      advantages_(torch::zeros({steps, environments})) {}

void RolloutStorage::to(torch::Device device) {
  observations_ = observations_.to(device);
  actions_ = actions_.to(device);
  logProbs_ = logProbs_.to(device);
  values_ = values_.to(device);
  rewards_ = rewards_.to(device);
  returns_ = returns_.to(device);
  advantages_ = advantages_.to(device);
}

void RolloutStorage::insert(const torch::Tensor &observation, const torch::Tensor &action, const torch::Tensor &logProb,
                            const torch::Tensor &value, const torch::Tensor &reward, const torch::Tensor &mask) {
  TORCH_CHECK(position_ < steps_, "the storage is full");
  observations_[position_ + 1].copy_(observation);
  actions_[position_].copy_(action);
  logProbs_[position_].copy_(logProb);
  values_[position_].copy_(value);
  rewards_[position_].copy_(reward);
  masks_[position_ + 1].copy_(mask);
  position_ = (position_ + 1) % steps_;
}

void RolloutStorage::computeReturns(const torch::Tensor &nextValue, float gamma) {
  returns_[-1].copy_(nextValue);
  for (int64_t step = steps_ - 1; step >= 0; --step) {
    const auto future = returns_[step + 1] * masks_[step + 1]; // [[device-mixed-op]]
    returns_[step] = rewards_[step] + gamma * future;
  }
}

void RolloutStorage::computeAdvantages(const torch::Tensor &nextValue, float gamma, float lambda) {
  values_[-1].copy_(nextValue);
  const auto masks = masks_.to(values_.device());
  auto running = torch::zeros({environments_}, values_.options());
  for (int64_t step = steps_ - 1; step >= 0; --step) {
    const auto delta = rewards_[step] + gamma * values_[step + 1] * masks[step + 1] - values_[step];
    running = delta + gamma * lambda * masks[step + 1] * running;
    advantages_[step] = running;
    returns_[step] = running + values_[step];
  }
  const auto mean = advantages_.mean(), deviation = advantages_.std();
  advantages_ = (advantages_ - mean) / (deviation + 1e-5);
}

void RolloutStorage::afterUpdate() {
  observations_[0].copy_(observations_[-1]);
  masks_[0].copy_(masks_[-1]);
  position_ = 0;
}

std::vector<MiniBatch> RolloutStorage::miniBatches(int64_t count) const {
  const int64_t total = steps_ * environments_;
  TORCH_CHECK(total >= count, "too few samples (", total, ") for ", count, " mini batches");
  const auto order = torch::randperm(total, torch::kLong);
  const auto flat = observations_.slice(0, 0, steps_).reshape({total, -1});
  const auto actions = actions_.reshape({total}), logProbs = logProbs_.reshape({total});
  const auto values = values_.slice(0, 0, steps_).reshape({total});
  const auto returns = returns_.slice(0, 0, steps_).reshape({total}), advantages = advantages_.reshape({total});
  std::vector<MiniBatch> batches;
  for (const auto &index : order.chunk(count)) {
    MiniBatch batch;
    batch.observations = flat.index({index});
    batch.actions = actions.index({index});
    batch.logProbs = logProbs.index({index});
    batch.values = values.index({index});
    batch.returns = returns.index({index});
    batch.advantages = advantages.index({index});
    batches.push_back(std::move(batch));
  }
  return batches;
}

torch::Tensor RolloutStorage::discountedRewards(float gamma) const {
  const auto exponents = torch::arange(steps_, torch::kFloat32);
  const auto weights = torch::pow(gamma, exponents).unsqueeze(1);
  return (rewards_ * weights).sum(0); // [[device-mixed-op]]
}

} // namespace ppo
