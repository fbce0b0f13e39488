#pragma once

#include "network.h"

#include <deque>
#include <future>
#include <map>
#include <mutex>

namespace zero {

struct Transition {
  torch::Tensor planes, next_planes;
  int64_t move;
  float reward;
  bool terminal;
};

struct Batch {
  torch::Tensor planes, next_planes, moves, rewards, terminals;
  Batch to(torch::Device device) const {
    return {planes.to(device), next_planes.to(device), moves.to(device), rewards.to(device), terminals.to(device)};
  }
};

struct PriorityView {
  const float* error = nullptr;
  int64_t count = 0;
};

class Replay {
 public:
  Replay(size_t capacity, bool pinned) : capacity_(capacity), pinned_(pinned) {}
  void push(Transition t);
  Batch sample(int64_t n);
  size_t size() const;

 private:
  size_t capacity_;
  bool pinned_;
  mutable std::mutex mutex_;
  std::deque<Transition> entries_;
};

// The target net stays in host memory; it is evaluated once a second.
class Learner {
 public:
  Learner(int64_t planes, int64_t hidden, int64_t moves, torch::Device device);
  torch::Tensor nstep_targets(const Batch& batch, double discount);
  torch::Tensor double_q_loss(const Batch& batch, double discount);
  void hard_update();
  void soft_update(double tau);
  PriorityView refresh(const torch::Tensor& errors);
  std::vector<float> priorities(const torch::Tensor& errors) const;
  void save(const std::string& path);
  void resume(const std::string& path);

 private:
  torch::Device device_;
  std::map<std::string, Tower> nets_;
  PriorityView view_;
};

// replay_kernels.cu
std::future<torch::Tensor> sample_async(const torch::Tensor& tree, const torch::Tensor& draws);
std::future<torch::Tensor> importance_async(const torch::Tensor& tree, const torch::Tensor& picked, double beta);
void update_tree(torch::Tensor& tree, const torch::Tensor& picked, const torch::Tensor& priorities);

} // namespace zero
