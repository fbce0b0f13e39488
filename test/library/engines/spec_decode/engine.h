#pragma once

#include <torch/script.h>
#include <torch/torch.h>

#include <deque>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace spec {

using Tokens = std::vector<int64_t>;

// Pages of keys and values, shared by the sequences of a worker.
class PagePool {
 public:
  PagePool(int64_t pages, int64_t page_size, int64_t width, torch::Device device);
  torch::Tensor gather(const std::vector<int64_t>& table) const;
  void write(int64_t page, int64_t slot, const torch::Tensor& kv);
  void swap_out(const std::vector<int64_t>& table);
  void swap_in(const std::vector<int64_t>& table, int64_t handle);
  int64_t swapped() const { return static_cast<int64_t>(host_.size()); }
  torch::Tensor fork(int64_t from, int64_t to);
  std::vector<float> page_norms() const;
  torch::Device device() const { return device_; }

 private:
  torch::Device device_;
  torch::Tensor pages_;
  std::unordered_map<int64_t, torch::Tensor> host_;
  int64_t next_handle_ = 0;
};

struct ModelConfig {
  int64_t vocab = 16, width = 8, max_positions = 64;
};

class CausalLmImpl : public torch::nn::Module {
 public:
  explicit CausalLmImpl(const ModelConfig& config);
  torch::Tensor forward(const torch::Tensor& ids, int64_t past = 0);
  torch::Tensor score(const torch::Tensor& ids); // without positions, for ranking
  torch::Tensor attention_bias(int64_t length) const;

 private:
  ModelConfig config_;
  torch::nn::Embedding embed{nullptr};
  torch::nn::Linear head{nullptr};
  torch::Tensor inv_freq_, bias_, slopes_;
};
TORCH_MODULE(CausalLm);

class LogitsProcessor {
 public:
  virtual ~LogitsProcessor() = default;
  virtual torch::Tensor apply(const torch::Tensor& logits, const Tokens& history) = 0;
};

class RepetitionPenalty : public LogitsProcessor {
 public:
  explicit RepetitionPenalty(double penalty) : penalty_(penalty) {}
  torch::Tensor apply(const torch::Tensor& logits, const Tokens& history) override;

 private:
  double penalty_;
};

class LogitBias : public LogitsProcessor {
 public:
  explicit LogitBias(const std::unordered_map<int64_t, float>& bias, int64_t vocab);
  torch::Tensor apply(const torch::Tensor& logits, const Tokens& history) override;

 private:
  torch::Tensor bias_;
};

class TopP : public LogitsProcessor {
 public:
  explicit TopP(double p) : p_(p) {}
  torch::Tensor apply(const torch::Tensor& logits, const Tokens& history) override;

 private:
  double p_;
};

class GrammarMask : public LogitsProcessor {
 public:
  void allow(std::vector<int64_t> tokens) { allowed_ = std::move(tokens); }
  torch::Tensor apply(const torch::Tensor& logits, const Tokens& history) override;

 private:
  std::vector<int64_t> allowed_;
};

struct Proposal {
  Tokens tokens;
  torch::Tensor probs; // [k, vocab]
};

class SpeculativeEngine {
 public:
  SpeculativeEngine(const ModelConfig& config, torch::Device target, torch::Device draft);
  void add_processor(std::unique_ptr<LogitsProcessor> p) { processors_.push_back(std::move(p)); }
  void load_adapter(const std::string& file);
  Proposal propose(const Tokens& prompt, int k);
  Tokens verify(const Tokens& prompt, const Proposal& proposal);
  torch::Tensor acceptance(const Tokens& prompt, const Proposal& proposal);
  torch::Tensor adapted_hidden(const torch::Tensor& hidden) const;
  torch::Tensor next_logits(const Tokens& history);
  float distill_step(const Tokens& tokens);
  float agreement(const Tokens& tokens);
  void move_draft(torch::Device device);

 private:
  torch::Tensor ids_on(const Tokens& tokens, torch::Device device) const;
  ModelConfig config_;
  torch::Device target_device_, draft_device_;
  CausalLm target_, draft_;
  std::vector<std::unique_ptr<LogitsProcessor>> processors_;
  torch::Tensor lora_a_, lora_b_;
  torch::Tensor draft_temperature_;
};

} // namespace spec
