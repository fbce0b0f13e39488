#include "buffers.h"
#include "optimizers.h"

#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace rl {

struct MlpImpl : torch::nn::Module {
  MlpImpl(int64_t in, int64_t hidden, int64_t out)
      : l1(register_module("l1", torch::nn::Linear(in, hidden))), l2(register_module("l2", torch::nn::Linear(hidden, out))) {}
  torch::Tensor forward(torch::Tensor x) { return l2(torch::tanh(l1(x))); }
  torch::nn::Linear l1, l2;
};
TORCH_MODULE(Mlp);

struct CriticImpl : torch::nn::Cloneable<CriticImpl> {
  CriticImpl(int64_t in, int64_t hidden) : in_(in), hidden_(hidden) { reset(); }
  void reset() override {
    l1 = register_module("l1", torch::nn::Linear(in_, hidden_));
    l2 = register_module("l2", torch::nn::Linear(hidden_, 1));
  }
  torch::Tensor forward(const torch::Tensor &observation, const torch::Tensor &action) {
    return l2(torch::relu(l1(torch::cat({observation, action}, -1)))).squeeze(-1);
  }
  int64_t in_, hidden_;
  torch::nn::Linear l1{nullptr}, l2{nullptr};
};
TORCH_MODULE(Critic);

/// Mean and variance of what was seen so far.
class RunningNormalizer {
public:
  explicit RunningNormalizer(int64_t size)
      : moments_(torch::stack({torch::zeros({size}), torch::ones({size})})), count_(1e-4) {}
  void update(const torch::Tensor &batch) {
    TORCH_CHECK(batch.dim() == 2 && batch.size(1) == moments_.size(1), "a batch of observations is expected");
    const auto rows = static_cast<double>(batch.size(0));
    auto fresh = torch::stack({batch.mean(0), batch.var(0, /*unbiased=*/false)});
    count_ += rows;
    moments_.lerp_(fresh, rows / count_); // [[device-mixed-op]]
  }
  torch::Tensor apply(const torch::Tensor &x) const {
    const auto moments = moments_.to(x.device());
    return ((x - moments[0]) / (moments[1] + 1e-8).sqrt()).clamp(-10, 10);
  }

private:
  torch::Tensor moments_;
  double count_;
};

struct AgentOptions {
  BufferOptions buffer;
  torch::Device device = torch::kCPU;
  int64_t hidden = 8;
  double gamma = 0.99, tau = 0.005, target_entropy = -2;
  bool normalize = false;
};

class Agent {
public:
  explicit Agent(const AgentOptions &options) : options_(options), device_(options.device), buffer_(options.buffer) {}
  virtual ~Agent() = default;
  virtual torch::Tensor act(const std::vector<float> &observation) = 0;
  virtual double learn(int64_t batch) = 0;
  RingBuffer &buffer() { return buffer_; }

protected:
  torch::Tensor observe(const std::vector<float> &observation) const {
    return torch::tensor(observation).to(device_).unsqueeze(0);
  }
  AgentOptions options_;
  torch::Device device_;
  RingBuffer buffer_;
};

class SacAgent : public Agent {
public:
  explicit SacAgent(const AgentOptions &options)
      : Agent(options), actor_(options.buffer.observation, options.hidden, 2 * options.buffer.action),
        critic_(options.buffer.observation + options.buffer.action, options.hidden),
        normalizer_(options.buffer.observation), log_alpha_(torch::zeros({1}, torch::requires_grad())) {
    actor_->to(device_);
    critic_->to(device_);
    target_ = Critic(std::dynamic_pointer_cast<CriticImpl>(critic_->clone(device_)));
    for (auto &p : target_->parameters())
      p.set_requires_grad(false);
    actor_optimizer_ = std::make_unique<torch::optim::Adam>(actor_->parameters(), 1e-3);
    critic_optimizer_ = std::make_unique<torch::optim::Adam>(critic_->parameters(), 1e-3);
  }

  torch::Tensor act(const std::vector<float> &observation) override {
    torch::NoGradGuard no_grad;
    return sample(observe(observation)).first.squeeze(0).cpu();
  }

  double learn(int64_t count) override {
    auto batch = buffer_.sample(count).to(device_);
    auto q = critic_->forward(batch.observation, batch.action);
    auto loss = torch::mse_loss(q, backup(batch));
    critic_optimizer_->zero_grad();
    loss.backward();
    critic_optimizer_->step();
    softUpdate();
    return loss.item<double>();
  }

  double learnActor(int64_t count) {
    auto batch = buffer_.sample(count).to(device_);
    auto [action, log_probability] = sample(batch.observation);
    auto alpha = log_alpha_.detach().exp();
    auto loss = (alpha * log_probability - critic_->forward(batch.observation, action)).mean(); // [[device-mixed-op]]
    actor_optimizer_->zero_grad();
    loss.backward();
    actor_optimizer_->step();
    return loss.item<double>();
  }

  double learnTemperature(int64_t count) {
    torch::Tensor log_probability;
    {
      torch::NoGradGuard no_grad;
      log_probability = sample(buffer_.sample(count).observation.to(device_)).second.to(log_alpha_.device());
    }
    auto loss = -(log_alpha_ * (log_probability + options_.target_entropy)).mean();
    loss.backward();
    {
      torch::NoGradGuard no_grad;
      log_alpha_.sub_(log_alpha_.grad(), 1e-3);
      log_alpha_.mutable_grad().zero_();
    }
    return log_alpha_.exp().item<double>();
  }

  double fitNormalizer(int64_t count) {
    torch::NoGradGuard no_grad;
    auto batch = buffer_.sample(count).to(device_);
    normalizer_.update(batch.observation);
    return normalizer_.apply(batch.observation).abs().max().item<double>();
  }

  torch::Tensor normalized(const std::vector<float> &observation) const { return normalizer_.apply(observe(observation)); }

  /// A copy of the critic for evaluation beside the training.
  void snapshot() {
    std::lock_guard<std::mutex> lock(snapshot_mutex_);
    snapshot_ = Critic(std::dynamic_pointer_cast<CriticImpl>(critic_->clone(torch::Device(torch::kCPU))));
    snapshot_->eval();
  }

  double scoreSnapshot(int64_t count) {
    if (snapshot_.is_empty())
      snapshot();
    torch::NoGradGuard no_grad;
    std::lock_guard<std::mutex> lock(snapshot_mutex_);
    const auto batch = buffer_.sample(count).to(device_);
    return snapshot_->forward(batch.observation, batch.action).mean().item<double>(); // [[device-mixed-op]]
  }

  double compareSnapshot(int64_t count) {
    if (snapshot_.is_empty())
      snapshot();
    torch::NoGradGuard no_grad;
    const auto batch = buffer_.sample(count);
    const auto here = batch.to(device_), there = batch.to(torch::kCPU);
    auto live = critic_->forward(here.observation, here.action).cpu();
    return (live - snapshot_->forward(there.observation, there.action)).abs().max().item<double>();
  }

private:
  std::pair<torch::Tensor, torch::Tensor> sample(const torch::Tensor &observation) {
    auto parts = actor_->forward(observation).chunk(2, -1);
    auto deviation = parts[1].clamp(-5, 2).exp();
    auto noise = torch::randn_like(deviation);
    auto action = torch::tanh(parts[0] + deviation * noise);
    auto log_probability = (-0.5 * noise.pow(2) - deviation.log() - torch::log(1 - action.pow(2) + 1e-6)).sum(-1);
    return {action, log_probability};
  }
  torch::Tensor backup(const Minibatch &batch) {
    torch::NoGradGuard no_grad;
    auto next = sample(batch.next).first;
    return batch.reward + options_.gamma * (1 - batch.done) * target_->forward(batch.next, next);
  }
  void softUpdate() {
    torch::NoGradGuard no_grad;
    auto from = critic_->parameters(), to = target_->parameters();
    for (size_t i = 0; i < to.size(); ++i)
      to[i].mul_(1 - options_.tau).add_(from[i], options_.tau);
  }

  Mlp actor_;
  Critic critic_, target_{nullptr}, snapshot_{nullptr};
  RunningNormalizer normalizer_;
  torch::Tensor log_alpha_;
  std::mutex snapshot_mutex_;
  std::unique_ptr<torch::optim::Adam> actor_optimizer_, critic_optimizer_;
};

/// Imitation: tells the expert's transitions from the agent's.
class Discriminator {
public:
  Discriminator(int64_t features, torch::Device device, double expert_weight)
      : device_(device), net_(features, 8, 1),
        criterion_(torch::nn::BCEWithLogitsLossOptions().pos_weight(torch::full({1}, expert_weight))),
        plain_(torch::nn::BCEWithLogitsLossOptions().reduction(torch::kSum)) {
    net_->to(device_);
  }
  double loss(const torch::Tensor &expert, const torch::Tensor &agent) {
    auto logits = net_->forward(torch::cat({expert.to(device_), agent.to(device_)}));
    auto labels = torch::cat({torch::ones({expert.size(0), 1}, logits.options()), torch::zeros({agent.size(0), 1}, logits.options())});
    return criterion_(logits, labels).item<double>(); // [[device-loss-input]]
  }
  double unweighted(const torch::Tensor &expert) {
    auto logits = net_->forward(expert.to(device_));
    return plain_(logits, torch::ones_like(logits)).item<double>();
  }

private:
  torch::Device device_;
  Mlp net_;
  torch::nn::BCEWithLogitsLoss criterion_, plain_;
};

template <typename Optimizer> double fit(Mlp &model, Optimizer &optimizer, const torch::Tensor &x, const torch::Tensor &y) {
  auto loss = torch::mse_loss(model->forward(x), y);
  loss.backward();
  optimizer.step();
  return loss.item<double>();
}

} // namespace rl

#ifdef DT_RUN
#include "../../../cases/cases.h"
using namespace rl;
static torch::Device gpu(torch::kCUDA, 1);
static AgentOptions options(torch::Device storage = torch::kCPU) { AgentOptions o; o.device = gpu; o.buffer.storage = storage; return o; }
static void fill(RingBuffer &b) { for (int i = 0; i < 5; ++i) b.push({torch::rand({6}), torch::rand({2}), torch::rand({6}), 1, false}); }
static SacAgent &agent() { static SacAgent a(options()); fill(a.buffer()); return a; }
static Mlp mlp() { Mlp m(3, 4, 1); m->to(gpu); return m; }
static torch::Tensor x() { return torch::rand({5, 3}, gpu); }
static torch::Tensor y() { return torch::rand({5, 1}, gpu); }
static RolloutStorage rollouts() { RolloutStorage r(3, 2, torch::kCPU); r.to(gpu); r.insert(0, {1, 2}, {1, 1}, torch::rand({2}, gpu)); return r; }
void lion_bad() { auto m = mlp(); Lion o(m->parameters(), {}); fit(m, o, x(), y()); }
void lamb_ok() { auto m = mlp(); Lamb o(m->parameters()); fit(m, o, x(), y()); fit(m, o, x(), y()); }
void ema_update_bad() { auto m = mlp(); Ema e(*m, 0.9); e.update(*m); }
void ema_apply_ok() { auto m = mlp(); Ema e(*m, 0.9); e.apply(*m); }
void ema_distance_ok() { auto m = mlp(); Ema e(*m, 0.9); e.distance(*m); }
void clip_ok() { auto m = mlp(); torch::mse_loss(m(x()), y()).backward(); clipGradients(m->parameters(), 1); }
void ring_ok() { BufferOptions o; o.storage = gpu; RingBuffer b(o); fill(b); b.sample(3); b.meanAction(); }
void recent_rewards_bad() { BufferOptions o; o.storage = gpu; RingBuffer b(o); fill(b); b.recentRewards(3); }
void returns_ok() { rollouts().returns(0.9, 0.9); }
void export_rewards_bad() { rollouts().exportRewards(); }
void export_values_ok() { rollouts().exportValues(); }
void act_ok() { agent().act(std::vector<float>(6, 1.f)); }
void learn_ok() { agent().learn(3); }
void learn_actor_bad() { agent().learnActor(3); }
void learn_temperature_ok() { agent().learnTemperature(3); }
void fit_normalizer_bad() { agent().fitNormalizer(3); }
void normalized_ok() { agent().normalized(std::vector<float>(6, 1.f)); }
void score_snapshot_bad() { agent().scoreSnapshot(3); }
void compare_snapshot_ok() { agent().compareSnapshot(3); }
void discriminator_bad() { Discriminator d(3, gpu, 2); d.loss(x(), x()); }
void unweighted_ok() { Discriminator d(3, gpu, 2); d.unweighted(x()); }
DT_MAIN(lion_bad, lamb_ok, ema_update_bad, ema_apply_ok, ema_distance_ok, clip_ok, ring_ok, recent_rewards_bad, returns_ok,
        export_rewards_bad, export_values_ok, act_ok, learn_ok, learn_actor_bad, learn_temperature_ok, fit_normalizer_bad,
        normalized_ok, score_snapshot_bad, compare_snapshot_ok, discriminator_bad, unweighted_ok)
#endif
