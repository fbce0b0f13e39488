#pragma once

#include "network.h"

#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <queue>
#include <thread>
#include <unordered_map>

namespace goban {

struct Position {
  uint64_t hash = 0;
  std::vector<float> planes;
  std::vector<uint8_t> legal;
};

struct Evaluation {
  std::vector<float> priors;
  float value = 0;
};

class Evaluator {
public:
  virtual ~Evaluator() = default;
  virtual Evaluation evaluate(const Position &position) = 0;
};

class UniformEvaluator : public Evaluator {
public:
  explicit UniformEvaluator(int64_t moves) : uniform_(torch::full({moves}, 1.0 / static_cast<double>(moves))) {}
  Evaluation evaluate(const Position &position) override;

private:
  torch::Tensor uniform_;
};

class NetEvaluator : public Evaluator {
public:
  NetEvaluator(PolicyValueNet net, torch::Device device);
  Evaluation evaluate(const Position &position) override;
  Evaluation evaluateLegal(const Position &position);
  Evaluation evaluateFast(const Position &position);
  Evaluation evaluateSymmetric(const Position &position);
  torch::Tensor averageOverSymmetries(const Position &position);
  float temperatureValue(const Position &position, float temperature);
  std::vector<torch::Tensor> ladders(const Position &position);

private:
  torch::Tensor encode(const Position &position) const;
  torch::Tensor symmetry(int which) const;

  PolicyValueNet net_;
  LadderReader ladder_;
  torch::Device device_;
};

/// Collects positions of many searches and evaluates them in batches on a thread of its own.
class InferenceServer {
public:
  using Observer = std::function<void(size_t batch)>;
  InferenceServer(PolicyValueNet net, torch::Device device, size_t max_batch);
  ~InferenceServer();
  std::future<Evaluation> submit(Position position);
  void onBatch(Observer observer) { observer_ = std::move(observer); }
  void stop();

private:
  struct Request {
    Position position;
    std::promise<Evaluation> promise;
  };
  void loop();
  void serve(std::vector<Request> &batch);

  PolicyValueNet net_;
  torch::Device device_;
  size_t max_batch_;
  Observer observer_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::queue<Request> queue_;
  bool stopping_ = false;
  std::thread worker_;
};

} // namespace goban
