#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

namespace rl {

struct Transition {
  torch::Tensor observation, action, next;
  float reward = 0;
  bool done = false;
};

struct Minibatch {
  torch::Tensor observation, action, reward, next, done;
  Minibatch to(const torch::Device &device) const {
    return {observation.to(device), action.to(device), reward.to(device), next.to(device), done.to(device)};
  }
};

struct BufferOptions {
  int64_t capacity = 64;
  int64_t observation = 6;
  int64_t action = 2;
  torch::Device storage = torch::kCPU; // a GPU where the memory suffices
  bool pin = false;
};

class RingBuffer {
public:
  explicit RingBuffer(const BufferOptions &options) : options_(options) {
    const auto on = torch::TensorOptions().dtype(torch::kFloat).device(options.storage);
    observation_ = torch::zeros({options.capacity, options.observation}, on);
    next_ = torch::zeros({options.capacity, options.observation}, on);
    action_ = torch::zeros({options.capacity, options.action}, on);
    reward_ = torch::zeros({options.capacity}, on);
    done_ = torch::zeros({options.capacity}, on);
  }

  void push(const Transition &t) {
    const int64_t slot = head_;
    observation_[slot] = t.observation;
    next_[slot] = t.next;
    action_[slot] = t.action;
    reward_[slot] = t.reward;
    done_.index_put_({slot}, t.done ? 1.f : 0.f);
    head_ = (head_ + 1) % options_.capacity;
    size_ = std::min(size_ + 1, options_.capacity);
  }

  Minibatch sample(int64_t count) const {
    TORCH_CHECK(size_ > 0, "the buffer is empty");
    auto rows = torch::randint(size_, {count}, torch::kLong);
    return {observation_.index({rows}), action_.index({rows}), reward_.index({rows}), next_.index({rows}), done_.index({rows})};
  }

  /// The last rewards that match an action's sign; for logging.
  torch::Tensor recentRewards(int64_t count) const {
    const int64_t n = std::min(count, size_);
    auto rows = (torch::arange(n) + (head_ - n + options_.capacity)).remainder(options_.capacity);
    return reward_.index_select(0, rows); // [[device-mixed-op]]
  }

  torch::Tensor meanAction() const {
    auto rows = torch::arange(size_, torch::TensorOptions(torch::kLong).device(action_.device()));
    return action_.index_select(0, rows).mean(0);
  }

  int64_t size() const { return size_; }

private:
  BufferOptions options_;
  torch::Tensor observation_, action_, reward_, next_, done_;
  int64_t head_ = 0, size_ = 0;
};

/// Rollouts of several environments for on-policy learning.
class RolloutStorage {
public:
  RolloutStorage(int64_t steps, int64_t environments, torch::Device device)
      : device_(device), rewards_(torch::zeros({steps, environments}, device)),
        values_(torch::zeros({steps + 1, environments}, device)), masks_(torch::ones({steps + 1, environments}, device)) {}

  void to(torch::Device device) {
    rewards_ = rewards_.to(device);
    values_ = values_.to(device);
    masks_ = masks_.to(device);
    device_ = device;
  }

  void insert(int64_t step, const std::vector<float> &rewards, const std::vector<float> &masks, const torch::Tensor &values) {
    rewards_[step].copy_(torch::tensor(rewards));
    masks_[step + 1].copy_(torch::tensor(masks));
    values_[step].copy_(values);
  }

  torch::Tensor returns(double gamma, double lambda) const {
    auto advantages = torch::zeros_like(rewards_);
    auto running = torch::zeros({rewards_.size(1)}, rewards_.options());
    for (int64_t t = rewards_.size(0) - 1; t >= 0; --t) {
      auto delta = rewards_[t] + gamma * values_[t + 1] * masks_[t + 1] - values_[t];
      running = delta + gamma * lambda * masks_[t + 1] * running;
      advantages[t] = running;
    }
    return advantages + values_.slice(0, 0, rewards_.size(0));
  }

  /// What a learner in another process gets.
  torch::Tensor exportRewards() const {
    auto flat = rewards_.reshape({-1}).to(device_);
    return flat.pin_memory(); // [[device-host-access]]
  }

  torch::Tensor exportValues() const {
    auto flat = values_.reshape({-1}).to(torch::kCPU);
    return flat.pin_memory();
  }

private:
  torch::Device device_;
  torch::Tensor rewards_, values_, masks_;
};

} // namespace rl
