#include "../cases.h"
#include <torch/torch.h>
#include <algorithm>
#include <deque>
#include <random>
#include <string>
#include <tuple>
#include <vector>

// ---- replay buffers, A2C/PPO storage, DQN targets -------------------------------------------------------
struct Transition {
  torch::Tensor state, action, reward, next_state, done;
};

class ReplayMemory {
 public:
  explicit ReplayMemory(size_t capacity) : capacity_(capacity) {}
  void push(Transition t) {
    if (items_.size() == capacity_) items_.pop_front();
    items_.emplace_back(std::move(t));
  }
  std::tuple<torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor> sample(size_t n) {
    std::vector<torch::Tensor> s, a, r, ns, d;
    for (size_t i = 0; i < n; ++i) {
      const auto& t = items_[i % items_.size()];
      s.push_back(t.state);
      a.push_back(t.action);
      r.push_back(t.reward);
      ns.push_back(t.next_state);
      d.push_back(t.done);
    }
    return std::make_tuple(torch::stack(s), torch::stack(a), torch::stack(r), torch::stack(ns), torch::stack(d));
  }

 private:
  size_t capacity_;
  std::deque<Transition> items_;
};

struct QNetImpl : torch::nn::Module {
  QNetImpl(int64_t obs, int64_t act) {
    fc1 = register_module("fc1", torch::nn::Linear(obs, 16));
    fc2 = register_module("fc2", torch::nn::Linear(16, act));
  }
  torch::Tensor forward(torch::Tensor x) {
    return fc2(torch::relu(fc1(x))); // [[device-mixed-op]]
  }
  torch::nn::Linear fc1{nullptr}, fc2{nullptr};
};
TORCH_MODULE(QNet);

static ReplayMemory filledMemory() {
  ReplayMemory memory(64);
  for (int i = 0; i < 8; ++i)
    memory.push({torch::randn({4}), torch::randint(0, 2, {1}, torch::kLong), torch::rand({1}), torch::randn({4}),
                 torch::zeros({1})});
  return memory;
}

void dqn_update_bad() {
  torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  QNet online(4, 2), target(4, 2);
  online->to(device);
  target->to(device);
  auto memory = filledMemory();
  torch::Tensor s, a, r, ns, d;
  std::tie(s, a, r, ns, d) = memory.sample(4);
  s = s.to(device);
  a = a.to(device);
  r.to(device); // [[device-discarded-move]]
  ns = ns.to(device);
  d = d.to(device);
  auto q = online(s).gather(1, a);
  torch::Tensor y;
  {
    torch::NoGradGuard guard;
    y = r + 0.99 * (1 - d) * std::get<0>(target(ns).max(1, true));
  }
  auto loss = torch::smooth_l1_loss(q, y);
  loss.backward();
}

void dqn_update_ok() {
  torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  QNet online(4, 2), target(4, 2);
  online->to(device);
  target->to(device);
  auto memory = filledMemory();
  torch::Tensor s, a, r, ns, d;
  std::tie(s, a, r, ns, d) = memory.sample(4);
  s = s.to(device);
  a = a.to(device);
  r = r.to(device);
  ns = ns.to(device);
  d = d.to(device);
  auto q = online(s).gather(1, a);
  torch::Tensor y;
  {
    torch::NoGradGuard guard;
    y = r + 0.99 * (1 - d) * std::get<0>(target(ns).max(1, true));
  }
  auto loss = torch::smooth_l1_loss(q, y);
  loss.backward();
}

void dqn_structured_bad() {
  torch::Device device(torch::kCUDA, 0);
  QNet online(4, 2);
  online->to(device);
  auto memory = filledMemory();
  auto [s, a, r, ns, d] = memory.sample(4);
  auto q = online(s.to(device)).gather(1, a); // [[device-mixed-op]]
  (void)q;
}

void dqn_structured_ok() {
  torch::Device device(torch::kCUDA, 0);
  QNet online(4, 2);
  online->to(device);
  auto memory = filledMemory();
  auto [s, a, r, ns, d] = memory.sample(4);
  auto q = online(s.to(device)).gather(1, a.to(device));
  (void)q;
}

// advantage computation on a rollout storage whose to() is hand written
class Rollout {
 public:
  Rollout(int64_t steps, int64_t envs)
      : obs(torch::zeros({steps + 1, envs, 4})),
        rewards(torch::zeros({steps, envs, 1})),
        values(torch::zeros({steps + 1, envs, 1})),
        returns(torch::zeros({steps + 1, envs, 1})),
        masks(torch::ones({steps + 1, envs, 1})) {}
  void to(torch::Device device) {
    obs = obs.to(device);
    rewards = rewards.to(device);
    values = values.to(device);
    returns = returns.to(device);
  }
  void computeReturns(const torch::Tensor& next, double gamma) {
    returns[-1] = next;
    for (int64_t step = rewards.size(0) - 1; step >= 0; --step)
      returns[step] = returns[step + 1] * gamma * masks[step + 1] + rewards[step]; // [[device-mixed-op]]
  }
  torch::Tensor obs, rewards, values, returns, masks;
};

class RolloutFull {
 public:
  RolloutFull(int64_t steps, int64_t envs)
      : obs(torch::zeros({steps + 1, envs, 4})),
        rewards(torch::zeros({steps, envs, 1})),
        returns(torch::zeros({steps + 1, envs, 1})),
        masks(torch::ones({steps + 1, envs, 1})) {}
  void to(torch::Device device) {
    for (torch::Tensor* t : {&obs, &rewards, &returns, &masks}) *t = t->to(device);
  }
  void computeReturns(const torch::Tensor& next, double gamma) {
    returns[-1] = next;
    for (int64_t step = rewards.size(0) - 1; step >= 0; --step)
      returns[step] = returns[step + 1] * gamma * masks[step + 1] + rewards[step];
  }
  torch::Tensor obs, rewards, returns, masks;
};

void rollout_returns_bad() {
  Rollout storage(3, 2);
  storage.to(torch::Device("cuda:0"));
  storage.computeReturns(torch::zeros({2, 1}), 0.99);
}

void rollout_returns_ok() {
  RolloutFull storage(3, 2);
  storage.to(torch::Device("cuda:0"));
  storage.computeReturns(torch::zeros({2, 1}), 0.99);
}

// epsilon greedy: host side bookkeeping
int64_t selectAction(QNet& net, const torch::Tensor& state, double eps, torch::Device device) {
  static std::mt19937 rng(0);
  if (std::uniform_real_distribution<>(0, 1)(rng) < eps) return 0;
  torch::NoGradGuard guard;
  return net->forward(state.to(device).unsqueeze(0)).argmax(1).item<int64_t>();
}
int64_t selectActionHost(QNet& net, const torch::Tensor& state, double eps) {
  static std::mt19937 rng(0);
  if (std::uniform_real_distribution<>(0, 1)(rng) < eps) return 0;
  torch::NoGradGuard guard;
  return net->forward(state.unsqueeze(0)).argmax(1).item<int64_t>();
}
void act_bad() {
  auto device = torch::cuda::is_available() ? torch::Device(torch::kCUDA) : torch::Device(torch::kCPU);
  QNet net(4, 2);
  net->to(device);
  auto state = torch::randn({4});
  for (int t = 0; t < 3; ++t) {
    auto action = selectActionHost(net, state, 0.0);
    state = torch::randn({4}) + action;
  }
}
void act_ok() {
  auto device = torch::cuda::is_available() ? torch::Device(torch::kCUDA) : torch::Device(torch::kCPU);
  QNet net(4, 2);
  net->to(device);
  auto state = torch::randn({4});
  for (int t = 0; t < 3; ++t) {
    auto action = selectAction(net, state, 0.0, device);
    state = torch::randn({4}) + action;
  }
}

// soft update, polyak
template <typename Net>
void polyak(const Net& from, Net& to, double tau) {
  torch::NoGradGuard guard;
  auto src = from->parameters();
  auto dst = to->parameters();
  for (size_t i = 0; i < src.size(); ++i) dst[i].mul_(1.0 - tau).add_(src[i], tau);
}
template <typename Net>
void polyakNamed(const Net& from, Net& to, double tau) {
  torch::NoGradGuard guard;
  auto src = from->named_parameters();
  for (auto& item : to->named_parameters()) {
    auto* p = src.find(item.key());
    if (!p) continue;
    item.value().mul_(1.0 - tau).add_(*p, tau); // [[device-mixed-op]]
  }
}
void polyak_bad() {
  QNet online(4, 2), target(4, 2);
  online->to(torch::kCUDA);
  polyakNamed(online, target, 0.005);
}
void polyak_ok() {
  QNet online(4, 2), target(4, 2);
  online->to(torch::kCUDA);
  target->to(torch::kCUDA);
  polyak(online, target, 0.005);
}

// PPO ratio with old log probs collected on CPU
struct PpoBatch {
  torch::Tensor obs, act, logp_old, adv;
  PpoBatch to(torch::Device d) const { return {obs.to(d), act.to(d), logp_old, adv.to(d)}; }
};
struct PpoBatchFull {
  torch::Tensor obs, act, logp_old, adv;
  PpoBatchFull to(torch::Device d) const { return {obs.to(d), act.to(d), logp_old.to(d), adv.to(d)}; }
};
void ppo_ratio_bad() {
  torch::Device d("cuda:1");
  QNet pi(4, 2);
  pi->to(d);
  PpoBatch b{torch::randn({6, 4}), torch::randint(0, 2, {6}, torch::kLong), torch::randn({6}), torch::randn({6})};
  auto m = b.to(d);
  auto logp = torch::log_softmax(pi(m.obs), -1).gather(1, m.act.unsqueeze(1)).squeeze(1);
  auto ratio = torch::exp(logp - m.logp_old); // [[device-mixed-op]]
  auto obj = torch::min(ratio * m.adv, torch::clamp(ratio, 0.8, 1.2) * m.adv);
  (-obj.mean()).backward();
}
void ppo_ratio_ok() {
  torch::Device d("cuda:1");
  QNet pi(4, 2);
  pi->to(d);
  PpoBatchFull b{torch::randn({6, 4}), torch::randint(0, 2, {6}, torch::kLong), torch::randn({6}), torch::randn({6})};
  auto m = b.to(d);
  auto logp = torch::log_softmax(pi(m.obs), -1).gather(1, m.act.unsqueeze(1)).squeeze(1);
  auto ratio = torch::exp(logp - m.logp_old);
  auto obj = torch::min(ratio * m.adv, torch::clamp(ratio, 0.8, 1.2) * m.adv);
  (-obj.mean()).backward();
}

DT_MAIN(dqn_update_bad, dqn_update_ok, dqn_structured_bad, dqn_structured_ok, rollout_returns_bad,
        rollout_returns_ok, act_bad, act_ok, polyak_bad, polyak_ok, ppo_ratio_bad, ppo_ratio_ok)
