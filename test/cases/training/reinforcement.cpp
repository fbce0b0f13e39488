// Reinforcement learning: replay buffers, rollout storages, returns, PPO.
#include <torch/torch.h>

#include <deque>
#include <tuple>
#include <vector>

#include "../cases.h"

struct Experience {
  torch::Tensor state, action, reward, nextState, done;
};

class ReplayBuffer {
public:
  void push(Experience e) { memory_.push_back(std::move(e)); }

  std::tuple<torch::Tensor, torch::Tensor, torch::Tensor> sample() const {
    std::vector<torch::Tensor> s, a, r;
    for (const auto &e : memory_) {
      s.push_back(e.state);
      a.push_back(e.action);
      r.push_back(e.reward);
    }
    return std::make_tuple(torch::stack(s), torch::stack(a), torch::stack(r));
  }

private:
  std::deque<Experience> memory_;
};

static ReplayBuffer hostBuffer() {
  ReplayBuffer buffer;
  for (int i = 0; i < 4; ++i)
    buffer.push({torch::rand({3}), torch::zeros({1}, torch::kLong), torch::rand({1}), torch::rand({3}),
                 torch::zeros({1})});
  return buffer;
}

void dqn_actions_forgotten_bad() {
  torch::Device device(torch::kCUDA);
  torch::nn::Linear q(3, 2);
  q->to(device);
  auto buffer = hostBuffer();
  auto [states, actions, rewards] = buffer.sample();
  states = states.to(device);
  rewards = rewards.to(device);
  auto values = q(states).gather(1, actions); // [[device-mixed-op]]
  auto loss = torch::mse_loss(values, rewards);
  loss.backward();
}

void dqn_all_moved_ok() {
  torch::Device device(torch::kCUDA);
  torch::nn::Linear q(3, 2);
  q->to(device);
  auto buffer = hostBuffer();
  auto [states, actions, rewards] = buffer.sample();
  states = states.to(device);
  actions = actions.to(device);
  rewards = rewards.to(device);
  auto values = q(states).gather(1, actions);
  auto loss = torch::mse_loss(values, rewards);
  loss.backward();
}

void dqn_rewards_forgotten_bad() {
  torch::Device device(torch::kCUDA);
  torch::nn::Linear q(3, 2);
  q->to(device);
  auto buffer = hostBuffer();
  auto [states, actions, rewards] = buffer.sample();
  auto values = q(states.to(device)).gather(1, actions.to(device));
  auto loss = torch::smooth_l1_loss(values, rewards); // [[device-loss-input]]
  loss.backward();
}

// The storage has its own in-place to().
class RolloutStorage {
public:
  RolloutStorage(int64_t steps, int64_t envs)
      : rewards(torch::zeros({steps, envs})), values(torch::zeros({steps + 1, envs})),
        masks(torch::ones({steps + 1, envs})), returns(torch::zeros({steps + 1, envs})) {}

  void to(torch::Device d) {
    rewards = rewards.to(d);
    values = values.to(d);
    masks = masks.to(d);
    returns = returns.to(d);
  }

  void computeReturns(const torch::Tensor &nextValue, double gamma) {
    returns[-1] = nextValue;
    for (int64_t t = rewards.size(0) - 1; t >= 0; --t)
      returns[t] = returns[t + 1] * gamma * masks[t + 1] + rewards[t];
  }

  torch::Tensor rewards, values, masks, returns;
};

void rollout_storage_moved_ok() {
  RolloutStorage storage(4, 2);
  storage.to(torch::kCUDA);
  storage.computeReturns(torch::rand({2}, torch::kCUDA), 0.99);
  auto advantages = storage.returns - storage.values;
  TORCH_CHECK(advantages.is_cuda());
}

// Element assignment is a copy: rewards that arrive on another device are legal.
void rollout_storage_filled_across_devices_ok() {
  RolloutStorage storage(4, 2);
  storage.rewards[0] = torch::rand({2}, torch::kCUDA);
  storage.rewards[1].copy_(torch::rand({2}, torch::kCUDA));
  auto sum = storage.rewards + storage.values.slice(0, 0, 4);
  TORCH_CHECK(!sum.is_cuda());
}

void rollout_storage_on_host_meets_policy_bad() {
  RolloutStorage storage(4, 2);
  torch::nn::Linear critic(1, 1);
  critic->to(torch::kCUDA);
  auto predicted = critic(torch::rand({5, 2, 1}, torch::kCUDA)).squeeze(-1);
  auto advantages = storage.returns - predicted; // [[device-mixed-op]]
  TORCH_CHECK(advantages.defined());
}

// The returned copy is what moved; the storage itself is as before.
struct Minibatch {
  torch::Tensor obs, logProbs;
  Minibatch to(torch::Device d) const { return {obs.to(d), logProbs.to(d)}; }
};

void minibatch_to_returns_a_copy_bad() {
  Minibatch m{torch::rand({4, 3}), torch::rand({4})};
  m.to(torch::kCUDA);
  torch::nn::Linear policy(3, 1);
  policy->to(torch::kCUDA);
  auto ratio = policy(m.obs); // [[device-mixed-op]]
  TORCH_CHECK(ratio.defined());
}

void minibatch_to_returns_a_copy_ok() {
  Minibatch host{torch::rand({4, 3}), torch::rand({4})};
  auto m = host.to(torch::kCUDA);
  torch::nn::Linear policy(3, 1);
  policy->to(torch::kCUDA);
  auto ratio = (policy(m.obs).squeeze(1) - m.logProbs).exp();
  TORCH_CHECK(ratio.defined());
}

// REINFORCE: discounted returns are built on the host from numbers.
static torch::Tensor discounted(const std::vector<float> &rewards) {
  std::vector<float> out(rewards.size());
  float running = 0;
  for (size_t i = rewards.size(); i-- > 0;)
    out[i] = running = rewards[i] + 0.9f * running;
  return torch::tensor(out);
}

void reinforce_returns_on_host_bad() {
  torch::nn::Linear policy(3, 2);
  policy->to(torch::kCUDA);
  auto logp = torch::log_softmax(policy(torch::rand({3, 3}, torch::kCUDA)), 1).select(1, 0);
  auto objective = -(logp * discounted({1, 0, 1})).sum(); // [[device-mixed-op]]
  objective.backward();
}

void reinforce_returns_moved_ok() {
  torch::nn::Linear policy(3, 2);
  policy->to(torch::kCUDA);
  auto logp = torch::log_softmax(policy(torch::rand({3, 3}, torch::kCUDA)), 1).select(1, 0);
  auto objective = -(logp * discounted({1, 0, 1}).to(logp.device())).sum();
  objective.backward();
}

DT_MAIN(dqn_actions_forgotten_bad, dqn_all_moved_ok, dqn_rewards_forgotten_bad, rollout_storage_moved_ok,
        rollout_storage_filled_across_devices_ok, rollout_storage_on_host_meets_policy_bad,
        minibatch_to_returns_a_copy_bad, minibatch_to_returns_a_copy_ok, reinforce_returns_on_host_bad,
        reinforce_returns_moved_ok)
