#pragma once

#include "model.h"

namespace textgen {

struct SamplingOptions {
  double temperature = 1.0;
  int64_t topK = 0;
  double topP = 1.0;
  double repetitionPenalty = 1.0;
  int64_t beams = 3;
  int64_t maxTokens = 4;
  int64_t endToken = 0;
};

class Sampler {
public:
  Sampler(SamplingOptions options, torch::Device device) : options_(options), device_(device) {}
  torch::Tensor filterTopK(const torch::Tensor &logits) const;
  torch::Tensor filterTopP(const torch::Tensor &logits) const;
  torch::Tensor penalize(const torch::Tensor &logits, const std::vector<int64_t> &seen) const;
  torch::Tensor banTokens(const torch::Tensor &logits, const std::vector<int64_t> &banned) const;
  torch::Tensor addBias(const torch::Tensor &logits, const std::map<int64_t, float> &bias) const;
  int64_t draw(const torch::Tensor &logits) const;
  std::vector<float> probabilities(const torch::Tensor &logits) const;
  torch::Tensor gumbel(const torch::Tensor &logits) const;

private:
  SamplingOptions options_;
  torch::Device device_;
};

class Generator {
public:
  Generator(ModelConfig config, SamplingOptions options, torch::Device device);
  std::vector<int64_t> generate(const std::vector<int64_t> &prompt);
  std::vector<int64_t> beamSearch(const std::vector<int64_t> &prompt);
  double perplexity(const std::vector<int64_t> &tokens);
  double maskedPerplexity(const std::vector<int64_t> &tokens, const std::vector<float> &weights);
  torch::Tensor embed(const std::vector<std::vector<int64_t>> &texts);
  torch::Tensor embedCached(const std::string &key, const std::vector<int64_t> &tokens);
  double similarity(const std::string &key, const std::vector<int64_t> &tokens);
  torch::Tensor windowScores(const std::vector<int64_t> &tokens) { return model_->slidingScores(encode(tokens), 2); }
  torch::Tensor rotated(const torch::Tensor &x) { return model_->rotated(x.to(device_)); }

private:
  torch::Tensor encode(const std::vector<int64_t> &tokens) const { return torch::tensor(tokens, torch::kLong).unsqueeze(0).to(device_); }

  SamplingOptions options_;
  torch::Device device_;
  LanguageModel model_{nullptr};
  KeyValueCache cache_;
  Sampler sampler_;
  std::map<std::string, torch::Tensor> embeddings_;
};

// Keeps the state of a recurrent net for every stream that sends tokens.
class StreamStates {
public:
  StreamStates(int64_t inputs, int64_t hidden, torch::Device device);
  torch::Tensor advance(const std::string &stream, const torch::Tensor &input);
  torch::Tensor advanceGru(const std::string &stream, const torch::Tensor &input);
  torch::Tensor advanceMany(const std::vector<std::string> &streams, const torch::Tensor &inputs);
  std::vector<float> summary(const std::string &stream) const;
  void forget(const std::string &stream) { states_.erase(stream); }
  void park(const std::string &stream);

private:
  int64_t hidden_;
  torch::Device device_;
  torch::nn::LSTMCell cell_{nullptr};
  torch::nn::GRUCell gru_{nullptr};
  std::map<std::string, std::tuple<torch::Tensor, torch::Tensor>> states_;
  std::map<std::string, torch::Tensor> gruStates_;
};

} // namespace textgen
