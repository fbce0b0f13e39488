#pragma once

#include <torch/torch.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace kvserve {

struct ModelConfig {
  int64_t layers = 2, heads = 2, head_dim = 8, vocab = 32, max_position = 64;
  int64_t hidden() const { return heads * head_dim; }
};

struct CacheConfig {
  int64_t block_size = 4, num_blocks = 16;
};

struct AttentionMeta {
  at::Tensor slots;        // where each new token goes
  at::Tensor block_tables; // of each sequence
  at::Tensor lengths;
};

// Pages of keys and values on the GPU of a worker, and a pool on the host to swap to.
class PagedCache {
 public:
  PagedCache(const ModelConfig& model, const CacheConfig& cache, at::Device device);

  const at::Tensor& keys(int64_t layer) const { return gpu_.at(layer).first; }
  const at::Tensor& values(int64_t layer) const { return gpu_.at(layer).second; }
  void swap_out(const std::vector<int64_t>& blocks, const std::vector<int64_t>& to);
  void swap_in(const std::vector<int64_t>& blocks, const std::vector<int64_t>& to);
  at::Tensor merge_from_host(int64_t layer, int64_t block, double mix) const;
  at::Tensor block_norms(int64_t layer) const;
  int64_t fullest_block(int64_t layer) const;
  at::Device device() const { return device_; }

 private:
  at::Device device_;
  std::vector<std::pair<at::Tensor, at::Tensor>> gpu_, host_;
};

void reshape_and_cache(const at::Tensor& key, const at::Tensor& value, const at::Tensor& key_cache,
                       const at::Tensor& value_cache, const at::Tensor& slots);
at::Tensor paged_attention(const at::Tensor& query, const at::Tensor& key_cache, const at::Tensor& value_cache,
                           const AttentionMeta& meta, double scale,
                           const c10::optional<at::Tensor>& alibi = c10::nullopt);
void copy_blocks(const std::vector<at::Tensor>& caches, const std::vector<std::pair<int64_t, int64_t>>& mapping);
void copy_blocks_graph(const std::vector<at::Tensor>& caches, const at::Tensor& mapping);
void rotary_embedding(at::Tensor& query, const at::Tensor& positions, const at::Tensor& cos_sin);

class RotaryTable {
 public:
  explicit RotaryTable(const ModelConfig& config) : config_(config) {}
  // By device, as workers of one process share it.
  const at::Tensor& get(at::Device device);
  // The first one asked for.
  const at::Tensor& shared(at::Device device);

 private:
  at::Tensor make() const;
  ModelConfig config_;
  std::unordered_map<std::string, at::Tensor> by_device_;
  std::unordered_map<int64_t, at::Tensor> by_length_;
};

struct SamplingParams {
  double temperature = 1, repetition_penalty = 1;
  std::optional<int64_t> top_k;
  std::vector<int64_t> banned;
  std::unordered_map<int64_t, float> logit_bias;
};

class Sampler {
 public:
  Sampler(int64_t vocab, at::Device device);
  at::Tensor ban(at::Tensor logits, const SamplingParams& params) const;
  at::Tensor bias(const at::Tensor& logits, const SamplingParams& params) const;
  at::Tensor penalize(const at::Tensor& logits, const std::vector<std::vector<int64_t>>& history,
                      const SamplingParams& params) const;
  at::Tensor truncate(at::Tensor logits, const SamplingParams& params) const;
  std::vector<int64_t> pick(const at::Tensor& logits) const;
  void set_allowed(at::Tensor mask) { allowed_ = std::move(mask); }
  at::Tensor constrain(const at::Tensor& logits) const;

 private:
  int64_t vocab_;
  at::Device device_;
  at::Tensor floor_;
  std::optional<at::Tensor> allowed_;
};

class Worker {
 public:
  Worker(const ModelConfig& model, const CacheConfig& cache, int gpu);
  at::Tensor embed(const std::vector<int64_t>& tokens) const;
  at::Tensor embed_at(const std::vector<int64_t>& tokens, const at::Tensor& positions) const;
  at::Tensor decode(const at::Tensor& hidden, const AttentionMeta& meta);
  AttentionMeta meta(const std::vector<int64_t>& slots, int64_t blocks) const;
  PagedCache& cache() { return cache_; }

 private:
  ModelConfig config_;
  at::Device device_;
  PagedCache cache_;
  at::Tensor embedding_, position_, slopes_;
};

} // namespace kvserve
