#pragma once

#include <torch/torch.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace vit {

// Layer-wise adaptive rates over SGD with momentum; https://arxiv.org/abs/1708.03888.
class Lars {
public:
  Lars(std::vector<torch::Tensor> parameters, double rate, double momentum, double trust)
      : parameters(std::move(parameters)), rate(rate), momentum(momentum), trust(trust) {}

  void zeroGrad();
  void step();
  void stepNesterov();
  double clip(double limit);
  void setRate(double value) { rate = value; }

private:
  torch::Tensor localRate(const torch::Tensor &p, const torch::Tensor &grad) const;
  std::vector<torch::Tensor> parameters;
  std::unordered_map<void *, torch::Tensor> velocity, lookahead;
  double rate, momentum, trust;
};

// Moving average of the weights that evaluation uses.
class Ema {
public:
  Ema(const torch::nn::Module &model, double decay);
  void update(const torch::nn::Module &model);
  void copyTo(torch::nn::Module &model) const;
  double distance(const torch::nn::Module &model) const;

private:
  std::vector<std::pair<std::string, torch::Tensor>> shadow;
  double decay;
  int64_t updates = 0;
};

} // namespace vit
