#pragma once

#include <torch/torch.h>

#include <cmath>
#include <vector>

namespace vit {

inline torch::Device defaultDevice() {
  return torch::cuda::is_available() ? torch::Device(torch::kCUDA) : torch::Device(torch::kCPU);
}

struct SinusoidalImpl : torch::nn::Module {
  SinusoidalImpl(int64_t length, int64_t width) {
    auto position = torch::arange(length, torch::kFloat).unsqueeze(1);
    auto rate = torch::exp(torch::arange(0, width, 2, torch::kFloat) * (-std::log(10000.0) / width));
    auto made = torch::zeros({length, width});
    made.index_put_({torch::indexing::Slice(), torch::indexing::Slice(0, torch::indexing::None, 2)},
                    torch::sin(position * rate));
    made.index_put_({torch::indexing::Slice(), torch::indexing::Slice(1, torch::indexing::None, 2)},
                    torch::cos(position * rate));
    table = register_buffer("table", made);
  }
  torch::Tensor forward(torch::Tensor x) { return x + table.slice(0, 0, x.size(1)); }
  torch::Tensor table;
};
TORCH_MODULE(Sinusoidal);

struct DropPathImpl : torch::nn::Module {
  explicit DropPathImpl(double rate) : rate(rate) {}
  torch::Tensor forward(torch::Tensor x) {
    if (!is_training() || rate == 0)
      return x;
    auto keep = torch::rand({x.size(0), 1, 1}, x.options()).ge(rate);
    return x * keep / (1 - rate);
  }
  double rate;
};
TORCH_MODULE(DropPath);

struct BlockImpl : torch::nn::Module {
  BlockImpl(int64_t width, double drop) : width(width) {
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    qkv = register_module("qkv", torch::nn::Linear(width, 3 * width));
    project = register_module("project", torch::nn::Linear(width, width));
    path = register_module("path", DropPath(drop));
  }
  torch::Tensor forward(torch::Tensor x, bool causal) {
    auto parts = qkv(norm(x)).chunk(3, -1);
    auto scores = parts[0].matmul(parts[1].transpose(-2, -1)) / std::sqrt(static_cast<double>(width));
    if (causal) {
      auto future = torch::ones({x.size(1), x.size(1)}, torch::dtype(torch::kBool).device(x.device())).triu(1);
      scores = scores.masked_fill(future, -1e9);
    }
    return x + path(project(scores.softmax(-1).matmul(parts[2])));
  }
  int64_t width;
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear qkv{nullptr}, project{nullptr};
  DropPath path{nullptr};
};
TORCH_MODULE(Block);

struct ClassifierOptions {
  int64_t width = 8, length = 16, depth = 2, classes = 5;
  std::vector<int64_t> auxiliary = {2, 3};
  double drop = 0.1;
  bool causal = false;
};

// Main head over the mean of the tokens and, for multi-task runs, one head per auxiliary label set.
struct ClassifierImpl : torch::nn::Module {
  explicit ClassifierImpl(const ClassifierOptions &options) : options(options) {
    positions = register_module("positions", Sinusoidal(options.length, options.width));
    blocks = register_module("blocks", torch::nn::ModuleList());
    for (int64_t i = 0; i < options.depth; ++i)
      blocks->push_back(Block(options.width, options.drop * i / options.depth));
    head = register_module("head", torch::nn::Linear(options.width, options.classes));
    for (int64_t classes : options.auxiliary)
      heads.emplace_back(options.width, classes);
  }

  torch::Tensor features(torch::Tensor tokens) {
    auto x = positions(tokens);
    for (const auto &block : *blocks)
      x = block->as<BlockImpl>()->forward(x, options.causal);
    return x.mean(1);
  }
  torch::Tensor forward(torch::Tensor tokens) { return head(features(tokens)); }
  std::vector<torch::Tensor> forwardAll(torch::Tensor tokens) {
    auto shared = features(tokens);
    std::vector<torch::Tensor> logits = {head(shared)};
    for (auto &auxiliary : heads)
      logits.push_back(auxiliary(shared)); // [[device-unregistered-tensor]]
    return logits;
  }

  ClassifierOptions options;
  Sinusoidal positions{nullptr};
  torch::nn::ModuleList blocks{nullptr};
  torch::nn::Linear head{nullptr};
  std::vector<torch::nn::Linear> heads;
};
TORCH_MODULE(Classifier);

} // namespace vit
