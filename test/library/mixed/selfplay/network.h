#pragma once

#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

namespace goban {

struct NetworkConfig {
  int64_t board = 5;
  int64_t planes = 4;
  int64_t channels = 8;
  int64_t blocks = 2;
  std::vector<int64_t> ladder_depths{1, 2};
  int64_t moves() const { return board * board + 1; }
};

struct ResidualBlockImpl : torch::nn::Module {
  explicit ResidualBlockImpl(int64_t channels)
      : conv1(torch::nn::Conv2dOptions(channels, channels, 3).padding(1)),
        conv2(torch::nn::Conv2dOptions(channels, channels, 3).padding(1)) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
  }
  torch::Tensor forward(torch::Tensor x) { return torch::relu(conv2(torch::relu(conv1(x))) + x); }
  torch::nn::Conv2d conv1, conv2;
};
TORCH_MODULE(ResidualBlock);

struct NetOutput {
  torch::Tensor policy; // [b, moves] logits
  torch::Tensor value;  // [b]
};

class PolicyValueNetImpl : public torch::nn::Module {
public:
  explicit PolicyValueNetImpl(const NetworkConfig &config) : config_(config) {
    stem_ = register_module(
        "stem", torch::nn::Conv2d(torch::nn::Conv2dOptions(config.planes, config.channels, 3).padding(1)));
    for (int64_t i = 0; i < config.blocks; ++i) {
      tower_.push_back(ResidualBlock(config.channels));
      register_module("block" + std::to_string(i), tower_.back());
    }
    const int64_t cells = config.board * config.board;
    policy_ = register_module("policy", torch::nn::Linear(config.channels * cells, config.moves()));
    value_ = register_module("value", torch::nn::Linear(config.channels * cells, 1));
  }

  torch::Tensor trunk(torch::Tensor x) {
    x = torch::relu(stem_(x));
    for (auto &block : tower_)
      x = block(x);
    return x.flatten(1);
  }
  NetOutput forward(torch::Tensor x) {
    auto features = trunk(std::move(x));
    return {policy_(features), torch::tanh(value_(features)).squeeze(-1)};
  }
  const NetworkConfig &config() const { return config_; }

private:
  NetworkConfig config_;
  torch::nn::Conv2d stem_{nullptr};
  std::vector<ResidualBlock> tower_;
  torch::nn::Linear policy_{nullptr}, value_{nullptr};
};
TORCH_MODULE(PolicyValueNet);

/// Reads ladders: one small head for each search depth, on the features of the trunk.
class LadderReaderImpl : public torch::nn::Module {
public:
  explicit LadderReaderImpl(const NetworkConfig &config) {
    const int64_t width = config.channels * config.board * config.board;
    project_ = register_module("project", torch::nn::Linear(width, 16));
    for (int64_t depth : config.ladder_depths)
      heads_.emplace_back(torch::nn::LinearOptions(16, depth + 1).bias(true));
  }
  std::vector<torch::Tensor> forward(const torch::Tensor &features) {
    auto hidden = torch::relu(project_(features));
    std::vector<torch::Tensor> out;
    out.reserve(heads_.size());
    for (auto &head : heads_)
      out.push_back(head->forward(hidden)); // [[device-unregistered-tensor]]
    return out;
  }

private:
  torch::nn::Linear project_{nullptr};
  std::vector<torch::nn::Linear> heads_;
};
TORCH_MODULE(LadderReader);

} // namespace goban
