#pragma once

#include <cuda_runtime.h>
#include <torch/torch.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kvcache {

struct AttentionParams {
  const float *query;
  float *out;
  const int *block_tables;
  int num_seqs, max_context;
  float scale;
};

struct CacheConfig {
  int64_t layers = 2, blocks = 16, cpu_blocks = 4, block_size = 4, heads = 2, head_size = 8;
};

void copy_blocks(std::vector<torch::Tensor> &key_caches, std::vector<torch::Tensor> &value_caches,
                 const torch::Tensor &block_mapping);
void copy_blocks_inplace(std::vector<torch::Tensor> &key_caches, std::vector<torch::Tensor> &value_caches,
                         const std::vector<std::pair<int64_t, int64_t>> &pairs);
void reshape_and_cache(const torch::Tensor &key, const torch::Tensor &value, torch::Tensor &key_cache,
                       torch::Tensor &value_cache, const torch::Tensor &slot_mapping);
void rotary_embedding(const torch::Tensor &positions, torch::Tensor &query, int64_t head_size,
                      const torch::Tensor &cos_sin_cache);
torch::Tensor paged_attention(const torch::Tensor &query, const torch::Tensor &block_tables,
                              const torch::Tensor &context_lens, double scale);
torch::Tensor paged_attention_v2(const torch::Tensor &query, const torch::Tensor &block_tables,
                                 const torch::Tensor &context_lens, double scale);
torch::Tensor gather_rows(const torch::Tensor &table, const std::vector<int64_t> &rows);

/// The blocks of one worker: most on its GPU, some in pinned memory to swap to.
class CacheEngine {
public:
  CacheEngine(CacheConfig config, torch::Device device);

  void swap_out(const std::map<int64_t, int64_t> &blocks);
  void swap_in(const std::map<int64_t, int64_t> &blocks);
  void fork(int64_t from, int64_t to);
  float block_absmax(int64_t layer, int64_t block) const;
  std::vector<float> export_block(int64_t layer, int64_t block) const;
  double host_checksum(int64_t layer) const;
  std::vector<torch::Tensor> &keys() { return keys_; }
  std::vector<torch::Tensor> &values() { return values_; }

private:
  void copy(const torch::Tensor &from, torch::Tensor to, const std::map<int64_t, int64_t> &blocks, cudaMemcpyKind kind);

  CacheConfig config_;
  torch::Device device_;
  std::vector<torch::Tensor> keys_, values_, host_keys_, host_values_;
};

struct SamplingParams {
  double temperature = 1, top_p = 1;
  int64_t top_k = -1;
};

class Sampler {
public:
  torch::Tensor sample(const torch::Tensor &logits, const std::vector<SamplingParams> &params) const;
  torch::Tensor greedy(const torch::Tensor &logits) const;
  torch::Tensor penalize(const torch::Tensor &logits, const std::vector<std::vector<int64_t>> &seen, double penalty) const;
  std::vector<std::pair<int64_t, float>> top_logprobs(const torch::Tensor &logits, int64_t k) const;
};

/// What the model runner hands to the kernels of one step.
struct StepInput {
  torch::Tensor block_tables, slots;
  const int *tables = nullptr;
  const int64_t *slot_data = nullptr;
  int64_t tokens = 0;
};

class ModelRunner {
public:
  explicit ModelRunner(torch::Device device) : device_(device) {}

  StepInput prepare(const std::vector<std::vector<int>> &tables, const std::vector<int64_t> &slots);
  StepInput prepare_decode(const std::vector<std::vector<int>> &tables, const std::vector<int64_t> &slots);

private:
  torch::Device device_;
};

struct Worker {
  int rank = 0, local_rank = 0;
  torch::Device device{torch::kCPU};
  cudaStream_t swap_stream = nullptr;
  cudaEvent_t swapped = nullptr;
  std::unique_ptr<CacheEngine> cache;

  void init(int rank, int local_rank, const CacheConfig &config);
  void init_async(int rank, int local_rank, const CacheConfig &config);
};

} // namespace kvcache
