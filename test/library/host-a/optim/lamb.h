#pragma once

#include <torch/torch.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace opt {

struct LambOptions {
  double learningRate = 1e-2;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weightDecay = 0.01;
  double maxTrust = 10.0;
};

// You et al., "Large Batch Optimization for Deep Learning".
class Lamb {
public:
  Lamb(std::vector<torch::Tensor> parameters, LambOptions options);

  void zeroGrad();
  void step();
  void stepWithNoise(double temperature);
  double clipGradients(double maxNorm);
  std::vector<double> gradientNorms() const;
  void setLearningRate(double value) { options_.learningRate = value; }

  void saveState(const std::string &file) const;
  void loadState(const std::string &file);
  int64_t steps() const { return step_; }

private:
  struct State {
    torch::Tensor first, second;
  };
  std::vector<torch::Tensor> parameters_;
  LambOptions options_;
  std::vector<State> state_;
  int64_t step_ = 0;
};

// Adagrad with one accumulator per row, for embeddings.
class RowwiseAdagrad {
public:
  RowwiseAdagrad(std::vector<torch::Tensor> tables, double learningRate) : tables_(std::move(tables)), learningRate_(learningRate) {
    for (const auto &table : tables_)
      sums_.push_back(torch::zeros({table.size(0)}));
  }
  void step();
  void reset();

private:
  std::vector<torch::Tensor> tables_;
  double learningRate_;
  std::vector<torch::Tensor> sums_;
};

// k steps forward, one step back.
class Lookahead {
public:
  Lookahead(torch::optim::Optimizer &inner, int64_t interval, double alpha);
  void step();

private:
  torch::optim::Optimizer &inner_;
  int64_t interval_, count_ = 0;
  double alpha_;
  std::vector<std::vector<torch::Tensor>> slow_;
};

} // namespace opt
