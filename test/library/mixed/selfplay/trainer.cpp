#include "evaluator.h"

#include <deque>
#include <iostream>
#include <random>
#include <tuple>

namespace goban {

struct Batch {
  torch::Tensor planes, policy, value;
  void to(const torch::Device &device) {
    planes = planes.to(device);
    policy = policy.to(device);
    value = value.to(device);
  }
};

class ReplayBuffer {
public:
  explicit ReplayBuffer(size_t capacity) : capacity_(capacity) {}
  void push(torch::Tensor planes, torch::Tensor policy, float value) {
    if (samples_.size() == capacity_)
      samples_.pop_front();
    samples_.emplace_back(planes.to(torch::kCPU), policy.to(torch::kCPU), value);
  }
  Batch sample(size_t count) {
    TORCH_CHECK(!samples_.empty(), "the replay buffer is empty");
    std::uniform_int_distribution<size_t> pick(0, samples_.size() - 1);
    std::vector<torch::Tensor> planes, policy;
    auto value = torch::empty({static_cast<int64_t>(count)});
    for (size_t i = 0; i < count; ++i) {
      const auto &[p, pi, z] = samples_[pick(random_)];
      planes.push_back(p);
      policy.push_back(pi);
      value[static_cast<int64_t>(i)] = z;
    }
    return {torch::stack(planes), torch::stack(policy), value};
  }
  size_t size() const { return samples_.size(); }

private:
  size_t capacity_;
  std::deque<std::tuple<torch::Tensor, torch::Tensor, float>> samples_;
  std::mt19937 random_{7};
};

class Trainer {
public:
  Trainer(const NetworkConfig &config, torch::Device device)
      : config_(config), device_(device), net_(config), buffer_(1000) {
    net_->to(device_);
    optimizer_ = std::make_unique<torch::optim::SGD>(net_->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  }

  void addGame(const std::vector<torch::Tensor> &planes, const std::vector<torch::Tensor> &policies, float result) {
    TORCH_CHECK(planes.size() == policies.size(), "a policy for each position");
    for (size_t i = 0; i < planes.size(); ++i)
      buffer_.push(planes[i], policies[i], i % 2 ? -result : result);
  }

  double step(size_t count) {
    net_->train();
    auto batch = buffer_.sample(count);
    batch.to(device_);
    auto out = net_->forward(batch.planes);
    auto loss = policyLoss(out.policy, batch.policy) + torch::mse_loss(out.value, batch.value);
    optimizer_->zero_grad();
    loss.backward();
    optimizer_->step();
    return loss.item<double>();
  }

  double valueStep(size_t count) {
    net_->train();
    auto [planes, policy, value] = buffer_.sample(count);
    planes = planes.to(device_);
    value.to(device_); // [[device-discarded-move]]
    auto out = net_->forward(planes);
    auto loss = torch::mse_loss(out.value, value);
    optimizer_->zero_grad();
    loss.backward();
    optimizer_->step();
    return loss.item<double>();
  }

  std::pair<double, double> validate(size_t count) {
    torch::NoGradGuard no_grad;
    net_->eval();
    const auto batch = buffer_.sample(count);
    auto out = net_->forward(batch.planes.to(device_));
    const double policy = policyLoss(out.policy, batch.policy.to(device_)).item<double>();
    const auto value = torch::nn::functional::smooth_l1_loss(out.value, batch.value); // [[device-loss-input]]
    return {policy, value.item<double>()};
  }

  double accuracy(size_t count) {
    torch::NoGradGuard no_grad;
    net_->eval();
    const auto batch = buffer_.sample(count);
    auto best = net_->forward(batch.planes.to(device_)).policy.argmax(1);
    auto hits = best.cpu().eq(batch.policy.argmax(1)).sum();
    return hits.item<double>() / static_cast<double>(count);
  }

  void save(const std::string &path) { torch::save(net_, path); }

  bool addOpponent(const std::string &path) {
    PolicyValueNet opponent(config_);
    try {
      torch::load(opponent, path);
    } catch (const c10::Error &error) {
      std::cerr << "no opponent in " << path << ": " << error.what_without_backtrace() << '\n';
      return false;
    }
    opponent->eval();
    opponents_.push_back(opponent);
    return true;
  }

  bool addRival(const std::string &path) {
    PolicyValueNet rival(config_);
    torch::load(rival, path, device_);
    rival->eval();
    rivals_.push_back(std::move(rival));
    return true;
  }

  double gauntlet(const Batch &openings) {
    torch::NoGradGuard no_grad;
    auto planes = openings.planes.to(device_);
    auto ours = net_->forward(planes).value;
    double margin = 0;
    for (auto &opponent : opponents_) {
      auto theirs = opponent->forward(planes).value; // [[device-load-placement]]
      margin += (ours - theirs).mean().item<double>();
    }
    return margin;
  }

  double rivalry(const Batch &openings) {
    torch::NoGradGuard no_grad;
    auto planes = openings.planes.to(device_);
    auto ours = net_->forward(planes).value;
    double margin = 0;
    for (auto &rival : rivals_)
      margin += (ours - rival->forward(planes).value).mean().item<double>();
    return margin;
  }

private:
  static torch::Tensor policyLoss(const torch::Tensor &logits, const torch::Tensor &target) {
    return -(torch::log_softmax(logits, 1) * target).sum(1).mean();
  }

  NetworkConfig config_;
  torch::Device device_;
  PolicyValueNet net_;
  ReplayBuffer buffer_;
  std::vector<PolicyValueNet> opponents_, rivals_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

} // namespace goban

#ifdef DT_RUN
#include "../../../cases/cases.h"
using namespace goban;
static torch::Device gpu(torch::kCUDA, 1);
static NetworkConfig config;
static Position position() {
  Position p;
  p.hash = 3, p.planes.assign(100, 0.5f), p.legal.assign(26, 1);
  return p;
}
static NetEvaluator evaluator() { return NetEvaluator(PolicyValueNet(config), gpu); }
static Trainer trainer() {
  Trainer t(config, gpu);
  t.addGame({torch::rand({4, 5, 5}, gpu), torch::rand({4, 5, 5})}, {torch::rand({26}), torch::rand({26}, gpu)}, 1);
  return t;
}
static const char *file = "opponent.pt";
static Batch openings() { return {torch::rand({2, 4, 5, 5}), {}, {}}; }
void uniform_ok() { UniformEvaluator(26).evaluate(position()); }
void evaluate_ok() { evaluator().evaluate(position()); }
void legal_bad() { evaluator().evaluateLegal(position()); }
void fast_bad() {
  torch::manual_seed(1);
  auto e = evaluator();
  auto good = e.evaluate(position()), r = e.evaluateFast(position());
  for (int i = 0; i < 26; ++i)
    dtl::require(std::abs(good.priors[i] - r.priors[i]) < 1e-4, "freed memory was read");
}
void symmetric_bad() { evaluator().evaluateSymmetric(position()); }
void average_ok() { evaluator().averageOverSymmetries(position()); }
void temperature_ok() { evaluator().temperatureValue(position(), 1); }
void ladders_bad() { evaluator().ladders(position()); }
void server_ok() {
  InferenceServer s(PolicyValueNet(config), gpu, 4);
  auto a = s.submit(position()), b = s.submit(position());
  a.get(), b.get();
}
void step_ok() { trainer().step(2); }
void value_step_discard_bad() { trainer().valueStep(2); }
void validate_bad() { trainer().validate(2); }
void accuracy_ok() { trainer().accuracy(2); }
void gauntlet_bad() { PolicyValueNet n(config); torch::save(n, file); auto t = trainer(); t.addOpponent(file); t.gauntlet(openings()); }
void rivalry_ok() { PolicyValueNet n(config); torch::save(n, file); auto t = trainer(); t.addRival(file); t.rivalry(openings()); }
DT_MAIN(uniform_ok, evaluate_ok, legal_bad, fast_bad, symmetric_bad, average_ok, temperature_ok, ladders_bad, server_ok, step_ok,
        value_step_discard_bad, validate_bad, accuracy_ok, gauntlet_bad, rivalry_ok)
#endif
