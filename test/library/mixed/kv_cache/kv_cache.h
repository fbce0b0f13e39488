#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace kvc {

struct CacheConfig {
  int64_t blocks = 8;
  int64_t block_size = 4;
  int64_t heads = 2;
  int64_t head_size = 8;
  int64_t layers = 2;
  int64_t max_positions = 64;
  int64_t partition = 16;
};

struct PagedParams {
  const float *query = nullptr;
  const float *key_cache = nullptr;
  const float *value_cache = nullptr;
  const int *block_tables = nullptr;
  const int *context_lens = nullptr;
  float *out = nullptr;
  float *partial = nullptr;
  int64_t sequences = 0, heads = 0, head_size = 0, block_size = 0, max_blocks = 0, partitions = 1;
  float scale = 1.f;
};

/// What the scheduler decides for a step.
struct StepMetadata {
  std::vector<int> context_lens;
  std::vector<std::vector<int>> block_tables;
  int maxBlocks() const;
};

torch::Tensor packTables(const StepMetadata &step);
torch::Tensor packLengths(const StepMetadata &step);

class AttentionBackend {
public:
  explicit AttentionBackend(CacheConfig config) : config_(config) {}
  virtual ~AttentionBackend() = default;
  virtual torch::Tensor forward(const torch::Tensor &query, const torch::Tensor &key_cache, const torch::Tensor &value_cache,
                                const torch::Tensor &block_tables, const torch::Tensor &context_lens) = 0;
  virtual const char *name() const = 0;

protected:
  PagedParams prepare(const torch::Tensor &query, const torch::Tensor &key_cache, const torch::Tensor &value_cache,
                      const torch::Tensor &block_tables, const torch::Tensor &context_lens, torch::Tensor &out) const;
  CacheConfig config_;
};

std::unique_ptr<AttentionBackend> makeBackend(const std::string &name, const CacheConfig &config);

torch::Tensor decode_step(const torch::Tensor &query, const torch::Tensor &key_cache, const torch::Tensor &value_cache,
                          const StepMetadata &step, const CacheConfig &config);
torch::Tensor prefill_step(const torch::Tensor &query, const torch::Tensor &key_cache, const torch::Tensor &value_cache,
                           const StepMetadata &step, const CacheConfig &config);
void reshape_and_cache(const torch::Tensor &key, const torch::Tensor &value, torch::Tensor &key_cache, torch::Tensor &value_cache,
                       const torch::Tensor &slot_mapping);
void copy_blocks(std::vector<torch::Tensor> &caches, const std::map<int64_t, std::vector<int64_t>> &mapping);
void zero_blocks(torch::Tensor &cache, const torch::Tensor &block_list);
void swap_blocks(const torch::Tensor &source, torch::Tensor &target, const torch::Tensor &block_mapping);
void launchCopy(float *cache, const int64_t *pairs, int64_t count, int64_t width, void *stream);

} // namespace kvc
