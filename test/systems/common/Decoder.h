// A pre-norm decoder block: causal self-attention and a gated feed-forward, the way Llama-like models
// are built. Everything it creates in forward() takes the device of its input.
#pragma once

#include <torch/torch.h>

#include <cmath>

namespace systems {

class RmsNormImpl : public torch::nn::Module {
public:
  explicit RmsNormImpl(int64_t width) { weight = register_parameter("weight", torch::ones({width})); }

  torch::Tensor forward(const torch::Tensor &hidden) {
    auto variance = hidden.pow(2).mean(-1, /*keepdim=*/true);
    return hidden * torch::rsqrt(variance + 1e-6) * weight;
  }

private:
  torch::Tensor weight;
};
TORCH_MODULE(RmsNorm);

class AttentionImpl : public torch::nn::Module {
public:
  AttentionImpl(int64_t width, int64_t heads) : headCount(heads) {
    queryKeyValue = register_module("c_attn", torch::nn::Linear(width, 3 * width));
    output = register_module("c_proj", torch::nn::Linear(torch::nn::LinearOptions(width, width).bias(false)));
  }

  torch::Tensor forward(const torch::Tensor &hidden) {
    const auto batch = hidden.size(0), length = hidden.size(1), width = hidden.size(2);
    auto parts = queryKeyValue->forward(hidden)
                     .view({batch, length, 3, headCount, width / headCount})
                     .permute({2, 0, 3, 1, 4});
    auto query = parts.select(0, 0), key = parts.select(0, 1), value = parts.select(0, 2);
    auto scores = torch::matmul(query, key.transpose(-2, -1)) / std::sqrt(double(width / headCount));
    auto future = torch::ones({length, length}, hidden.options().dtype(torch::kBool)).triu(1);
    auto weights = torch::softmax(scores.masked_fill(future, -1e9), -1);
    auto mixed = torch::matmul(weights, value).transpose(1, 2).reshape({batch, length, width});
    return output->forward(mixed);
  }

private:
  int64_t headCount;
  torch::nn::Linear queryKeyValue{nullptr}, output{nullptr};
};
TORCH_MODULE(Attention);

class FeedForwardImpl : public torch::nn::Module {
public:
  FeedForwardImpl(int64_t width, int64_t inner) {
    const auto bias = false;
    gate = register_module("w2", torch::nn::Linear(torch::nn::LinearOptions(width, inner).bias(bias)));
    up = register_module("w1", torch::nn::Linear(torch::nn::LinearOptions(width, inner).bias(bias)));
    down = register_module("c_proj", torch::nn::Linear(torch::nn::LinearOptions(inner, width).bias(bias)));
  }

  // What the down projection reads: its keys, in the language of model editing.
  torch::Tensor innerState(const torch::Tensor &hidden) {
    return torch::silu(gate->forward(hidden)) * up->forward(hidden);
  }

  torch::Tensor forward(const torch::Tensor &hidden) { return down->forward(innerState(hidden)); }

  torch::nn::Linear gate{nullptr}, up{nullptr}, down{nullptr};
};
TORCH_MODULE(FeedForward);

class DecoderBlockImpl : public torch::nn::Module {
public:
  DecoderBlockImpl(int64_t width, int64_t heads) {
    attentionNorm = register_module("ln_1", RmsNorm(width));
    attention = register_module("attn", Attention(width, heads));
    feedForwardNorm = register_module("ln_2", RmsNorm(width));
    feedForward = register_module("mlp", FeedForward(width, 2 * width));
  }

  torch::Tensor forward(torch::Tensor hidden) {
    hidden = hidden + attention->forward(attentionNorm->forward(hidden));
    return hidden + feedForward->forward(feedForwardNorm->forward(hidden));
  }

  RmsNorm attentionNorm{nullptr}, feedForwardNorm{nullptr};
  Attention attention{nullptr};
  FeedForward feedForward{nullptr};
};
TORCH_MODULE(DecoderBlock);

} // namespace systems
