#pragma once

#include "devices.h"

#include <functional>
#include <memory>

namespace multigpu {

class BlockImpl : public torch::nn::Cloneable<BlockImpl> {
public:
  BlockImpl(int64_t inputs, int64_t outputs) : inputs_(inputs), outputs_(outputs) { reset(); }
  void reset() override {
    linear_ = register_module("linear", torch::nn::Linear(inputs_, outputs_));
    scale_ = register_parameter("scale", torch::ones({outputs_}));
  }
  torch::Tensor forward(const torch::Tensor &x) { return torch::relu(linear_->forward(x)) * scale_; }

private:
  int64_t inputs_, outputs_;
  torch::nn::Linear linear_{nullptr};
  torch::Tensor scale_;
};
TORCH_MODULE(Block);

// A stack of stages, one to a GPU; the activations travel.
class Pipeline {
public:
  Pipeline(Devices devices, int64_t width, int64_t classes);

  torch::Tensor forward(torch::Tensor x);
  torch::Tensor forwardChunks(const torch::Tensor &x, int64_t chunks);
  torch::Tensor evaluate(torch::Tensor x);
  torch::Tensor loss(const torch::Tensor &x, const torch::Tensor &labels);
  double accuracy(const torch::Tensor &x, const torch::Tensor &labels);
  torch::Tensor skipConnected(const torch::Tensor &x);
  double gradientNorm();
  std::vector<torch::Tensor> activations(const torch::Tensor &x);

  size_t stages() const { return stages_.size(); }

private:
  Devices devices_;
  std::vector<torch::nn::Linear> stages_;
  torch::nn::Linear head_{nullptr};
};

// The same model on each GPU, gradients are summed on the first.
class Replicas {
public:
  Replicas(Block model, Devices devices);

  void replicate();
  std::vector<torch::Tensor> forward(const torch::Tensor &batch);
  torch::Tensor predict(const torch::Tensor &batch);
  double step(const torch::Tensor &batch, const torch::Tensor &targets, double learningRate);
  double epochLoss(const std::vector<std::pair<torch::Tensor, torch::Tensor>> &batches);
  double epochMean(const std::vector<std::pair<torch::Tensor, torch::Tensor>> &batches);
  double disagreement(const torch::Tensor &batch);
  double parameterDrift() const;
  torch::Tensor ensemble(const torch::Tensor &batch);
  void allReduceGradients();
  void synchronize();

private:
  Block model_;
  Devices devices_;
  std::vector<Block> replicas_;
};

} // namespace multigpu
