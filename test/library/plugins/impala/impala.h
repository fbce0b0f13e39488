#pragma once

#include <torch/torch.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace impala {

struct Step {
  torch::Tensor observation, logits;
  int64_t action = 0;
  float reward = 0;
  bool done = false;
};

/// Time first, then the actors.
struct Rollout {
  torch::Tensor observations, actions, rewards, dones, behaviour;
  torch::Tensor core; // of the recurrent net at the first step
  int64_t version = 0;

  Rollout to(torch::Device device) const {
    Rollout moved{observations.to(device), actions.to(device), rewards.to(device), dones.to(device),
                  behaviour.to(device), core, version};
    return moved;
  }
};

struct PolicyOutput {
  torch::Tensor logits, value, core;
};

struct PolicyImpl : torch::nn::Cloneable<PolicyImpl> {
  PolicyImpl(int64_t inputs, int64_t actions, int64_t hidden = 8)
      : inputs_(inputs), actions_(actions), hidden_(hidden) {
    reset();
  }
  void reset() override;
  PolicyOutput forward(const torch::Tensor& observation, const torch::Tensor& core);
  torch::Tensor initial(int64_t batch) const { return torch::zeros({batch, hidden_}); }
  torch::Tensor initial_on(int64_t batch, torch::Device device) const { return torch::zeros({batch, hidden_}, device); }

 private:
  int64_t inputs_, actions_, hidden_;
  torch::nn::GRUCell cell_{nullptr};
  torch::nn::Linear policy_{nullptr}, value_{nullptr};
};
TORCH_MODULE(Policy);

class ParameterServer {
 public:
  void publish(const Policy& policy);
  void pull(Policy& into) const;
  /// Adds a fraction of the published parameters.
  void blend(Policy& into, double tau) const;
  void blend_here(Policy& into, double tau) const;
  int64_t version() const { return version_; }

 private:
  mutable std::mutex mutex_;
  std::vector<torch::Tensor> parameters_;
  std::atomic<int64_t> version_{0};
};

class RolloutQueue {
 public:
  explicit RolloutQueue(size_t limit) : limit_(limit) {}
  void put(Rollout rollout);
  Rollout take();
  /// Rollouts side by side.
  static Rollout stack(const std::vector<Rollout>& rollouts);

 private:
  size_t limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Rollout> queue_;
};

class Replay {
 public:
  Replay(int64_t capacity, double alpha) : capacity_(capacity), alpha_(alpha), priorities_(torch::zeros({capacity})) {}
  void add(Rollout rollout, const std::optional<torch::Tensor>& error = std::nullopt);
  std::pair<std::vector<Rollout>, torch::Tensor> sample(int64_t count);
  void update(const torch::Tensor& indices, const torch::Tensor& errors);
  void update_all(const torch::Tensor& errors);
  torch::Tensor importance(const torch::Tensor& indices, double beta) const;

 private:
  int64_t capacity_;
  double alpha_;
  torch::Tensor priorities_;
  std::vector<Rollout> rollouts_;
};

class Actor {
 public:
  Actor(Policy policy, torch::Device device);
  Rollout play(const std::function<Step(int64_t)>& environment, int64_t steps, int64_t inputs);
  void sync(const ParameterServer& server) { server.pull(policy_); }
  int64_t act(const torch::Tensor& observation);
  int64_t act_greedy(const torch::Tensor& observation);

 private:
  Policy policy_;
  torch::Device device_;
  torch::Tensor core_;
};

struct VTrace {
  torch::Tensor targets, advantages;
};

class Learner {
 public:
  struct Options {
    double gamma = 0.99, rho = 1, learning_rate = 1e-3;
    torch::Device device = torch::kCPU;
    std::optional<torch::Device> target_device;
  };
  Learner(Policy policy, Options options);
  double learn(const Rollout& rollout);
  double learn_weighted(const Rollout& rollout, const torch::Tensor& weights);
  double distill(const Rollout& rollout);
  double distill_moved(const Rollout& rollout);
  VTrace vtrace(const Rollout& rollout, const torch::Tensor& values, const torch::Tensor& logits) const;
  double return_of(const Rollout& rollout) const;
  double entropy(const Rollout& rollout);
  void save(const std::string& file);
  void restore(const std::string& file);
  double baseline_gap(const Rollout& rollout) const;
  Policy& policy() { return policy_; }

 private:
  std::pair<torch::Tensor, torch::Tensor> unroll(Policy& policy, const Rollout& rollout, torch::Tensor core) const;
  Policy policy_, teacher_{nullptr};
  Options options_;
  std::unique_ptr<torch::optim::Adam> optimizer_;
  torch::Tensor baseline_;
};

} // namespace impala
