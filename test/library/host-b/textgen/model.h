#pragma once

#include <torch/torch.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace textgen {

struct ModelConfig {
  int64_t vocabulary = 30;
  int64_t width = 16;
  int64_t heads = 2;
  int64_t layers = 2;
  int64_t context = 12;
};

// Keys and values of the tokens so far, one pair for each layer.
class KeyValueCache {
public:
  KeyValueCache(ModelConfig config, torch::Device device) : config_(config), device_(device) { reset(1); }
  void reset(int64_t batch);
  std::pair<torch::Tensor, torch::Tensor> extend(int64_t layer, const torch::Tensor &key, const torch::Tensor &value);
  void reorder(const torch::Tensor &beams);
  void truncate(int64_t length);
  int64_t length() const { return keys_.empty() || !keys_[0].defined() ? 0 : keys_[0].size(2); }
  void offload();
  void fetch();
  std::vector<double> norms() const;

private:
  ModelConfig config_;
  torch::Device device_;
  std::vector<torch::Tensor> keys_, values_;
};

class PositionsImpl : public torch::nn::Module {
public:
  explicit PositionsImpl(ModelConfig config);
  torch::Tensor forward(const torch::Tensor &x, int64_t offset);
  torch::Tensor rotary(const torch::Tensor &x, int64_t offset);

private:
  torch::Tensor table_;
  torch::Tensor frequencies_;
};
TORCH_MODULE(Positions);

class AttentionImpl : public torch::nn::Module {
public:
  explicit AttentionImpl(ModelConfig config);
  torch::Tensor forward(const torch::Tensor &x, int64_t layer, KeyValueCache *cache);
  torch::Tensor windowed(const torch::Tensor &x, int64_t window);

private:
  torch::Tensor split(const torch::Tensor &x) const;
  ModelConfig config_;
  torch::nn::Linear project_{nullptr}, output_{nullptr};
};
TORCH_MODULE(Attention);

class LanguageModelImpl : public torch::nn::Module {
public:
  explicit LanguageModelImpl(ModelConfig config);
  torch::Tensor forward(const torch::Tensor &tokens, KeyValueCache *cache = nullptr);
  torch::Tensor hidden(const torch::Tensor &tokens);
  torch::Tensor slidingScores(const torch::Tensor &tokens, int64_t window);
  const ModelConfig &config() const { return config_; }
  torch::Tensor rotated(const torch::Tensor &x) { return positions_->rotary(x, 0); }

private:
  ModelConfig config_;
  torch::nn::Embedding embedding_{nullptr};
  Positions positions_{nullptr};
  std::vector<Attention> blocks_;
  torch::nn::Linear head_{nullptr};
};
TORCH_MODULE(LanguageModel);

} // namespace textgen
