// A whole small program: PPO with a rollout buffer, generalised advantages, minibatches and an entropy bonus.
#include <torch/torch.h>

#include <tuple>
#include <utility>
#include <vector>

#include "../cases.h"

using torch::Tensor;

struct ActorCriticImpl : torch::nn::Module {
  ActorCriticImpl(int64_t obs, int64_t actions)
      : body(torch::nn::Linear(obs, 16), torch::nn::Tanh(), torch::nn::Linear(16, 16), torch::nn::Tanh()),
        policy(16, actions), value(16, 1) {
    register_module("body", body);
    register_module("policy", policy);
    register_module("value", value);
  }
  std::pair<Tensor, Tensor> forward(const Tensor &obs) {
    auto h = body->forward(obs);
    return {torch::log_softmax(policy->forward(h), -1), value->forward(h).squeeze(-1)};
  }
  torch::nn::Sequential body;
  torch::nn::Linear policy, value;
};
TORCH_MODULE(ActorCritic);

// A stand-in environment: observations and rewards are host tensors, as from a simulator.
struct Environment {
  Tensor reset() { return torch::rand({4}); }
  std::tuple<Tensor, float, bool> step(int64_t action) {
    ++steps;
    return {torch::rand({4}), action == 0 ? 1.0f : 0.0f, steps % 5 == 0};
  }
  int steps = 0;
};

struct Rollout {
  std::vector<Tensor> observations, actions, logProbs, values, rewards, masks;
  void clear() {
    for (auto *list : {&observations, &actions, &logProbs, &values, &rewards, &masks})
      list->clear();
  }
};

struct PpoConfig {
  torch::Device device{torch::kCUDA};
  int64_t horizon = 6;
  double gamma = 0.99, lambda = 0.95, clip = 0.2, entropy = 0.01;
};

static void collect(ActorCritic &net, Environment &env, Rollout &rollout, const PpoConfig &config) {
  torch::NoGradGuard off;
  auto obs = env.reset();
  for (int64_t t = 0; t < config.horizon; ++t) {
    auto input = obs.to(config.device).unsqueeze(0);
    auto [logits, value] = net->forward(input);
    auto action = torch::multinomial(logits.exp().cpu(), 1).squeeze(0);
    auto [next, reward, done] = env.step(action.item<int64_t>());
    rollout.observations.push_back(input.squeeze(0));
    rollout.actions.push_back(action.to(config.device));
    rollout.logProbs.push_back(logits.squeeze(0).gather(0, action.to(config.device)));
    rollout.values.push_back(value.squeeze(0));
    rollout.rewards.push_back(torch::tensor(reward, config.device));
    rollout.masks.push_back(torch::tensor(done ? 0.0f : 1.0f, config.device));
    obs = done ? env.reset() : next;
  }
}

static Tensor advantagesOf(const Rollout &r, const PpoConfig &config) {
  auto gae = torch::zeros({}, config.device);
  auto next = torch::zeros({}, config.device);
  std::vector<Tensor> out(r.rewards.size());
  for (size_t i = r.rewards.size(); i-- > 0;) {
    auto delta = r.rewards[i] + config.gamma * next * r.masks[i] - r.values[i];
    gae = delta + config.gamma * config.lambda * r.masks[i] * gae;
    next = r.values[i];
    out[i] = gae;
  }
  return torch::stack(out);
}

static void updateWithHostOrder(ActorCritic &net, torch::optim::Optimizer &adam, const Rollout &r,
                                const Tensor &advantages, const PpoConfig &config) {
  auto obs = torch::stack(r.observations), actions = torch::stack(r.actions);
  auto oldLogProbs = torch::stack(r.logProbs).squeeze(-1), returns = advantages + torch::stack(r.values);
  auto order = torch::randperm(obs.size(0));
  for (const auto &pick : order.chunk(2)) {
    auto [logits, value] = net->forward(obs.index_select(0, pick)); // [[device-mixed-op]]
    auto logp = logits.gather(1, actions.index({pick})).squeeze(-1);
    auto ratio = (logp - oldLogProbs.index({pick})).exp();
    auto adv = advantages.index({pick});
    auto surrogate = torch::min(ratio * adv, ratio.clamp(1 - config.clip, 1 + config.clip) * adv);
    auto loss = -surrogate.mean() + torch::mse_loss(value, returns.index({pick}));
    adam.zero_grad();
    loss.backward();
    adam.step();
  }
}

static void update(ActorCritic &net, torch::optim::Optimizer &adam, const Rollout &r,
                   const Tensor &advantages, const PpoConfig &config) {
  auto obs = torch::stack(r.observations), actions = torch::stack(r.actions);
  auto oldLogProbs = torch::stack(r.logProbs).squeeze(-1), returns = advantages + torch::stack(r.values);
  auto order = torch::randperm(obs.size(0), torch::TensorOptions(torch::kLong).device(config.device));
  for (const auto &pick : order.chunk(2)) {
    auto [logits, value] = net->forward(obs.index_select(0, pick));
    auto logp = logits.gather(1, actions.index({pick})).squeeze(-1);
    auto ratio = (logp - oldLogProbs.index({pick})).exp();
    auto adv = advantages.index({pick});
    adv = (adv - adv.mean()) / (adv.std(/*unbiased=*/false) + 1e-8);
    auto surrogate = torch::min(ratio * adv, ratio.clamp(1 - config.clip, 1 + config.clip) * adv);
    auto entropy = -(logits.exp() * logits).sum(-1).mean();
    auto loss = -surrogate.mean() + torch::mse_loss(value, returns.index({pick})) - config.entropy * entropy;
    adam.zero_grad();
    loss.backward();
    torch::nn::utils::clip_grad_norm_(net->parameters(), 0.5);
    adam.step();
  }
}

void ppo_minibatch_order_on_host_bad() {
  PpoConfig config;
  ActorCritic net(4, 2);
  net->to(config.device);
  torch::optim::Adam adam(net->parameters(), 3e-4);
  Environment env;
  Rollout rollout;
  collect(net, env, rollout, config);
  updateWithHostOrder(net, adam, rollout, advantagesOf(rollout, config), config);
}

void ppo_ok() {
  PpoConfig config;
  ActorCritic net(4, 2);
  net->to(config.device);
  torch::optim::Adam adam(net->parameters(), 3e-4);
  Environment env;
  Rollout rollout;
  for (int iteration = 0; iteration < 2; ++iteration) {
    rollout.clear();
    collect(net, env, rollout, config);
    update(net, adam, rollout, advantagesOf(rollout, config), config);
  }
}

DT_MAIN(ppo_minibatch_order_on_host_bad, ppo_ok)
