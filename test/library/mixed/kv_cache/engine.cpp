#include "kv_cache.h"

#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <deque>
#include <iostream>
#include <numeric>

namespace kvc {

int StepMetadata::maxBlocks() const {
  size_t longest = 1;
  for (const auto &table : block_tables)
    longest = std::max(longest, table.size());
  return static_cast<int>(longest);
}

torch::Tensor packTables(const StepMetadata &step) {
  const int64_t rows = static_cast<int64_t>(step.block_tables.size()), columns = step.maxBlocks();
  auto packed = torch::zeros({rows, columns}, torch::kInt);
  auto cell = packed.accessor<int, 2>();
  for (int64_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < step.block_tables[static_cast<size_t>(i)].size(); ++j)
      cell[i][static_cast<int64_t>(j)] = step.block_tables[static_cast<size_t>(i)][j];
  return packed;
}

torch::Tensor packLengths(const StepMetadata &step) { return torch::tensor(step.context_lens, torch::kInt); }

/// Sines and cosines of the positions, made once.
class RotaryTable {
public:
  explicit RotaryTable(const CacheConfig &config) : half_(config.head_size / 2) {
    auto frequency = torch::pow(10000.0, -torch::arange(0, half_, torch::kFloat) / static_cast<double>(half_));
    auto angle = torch::outer(torch::arange(config.max_positions, torch::kFloat), frequency);
    table_ = torch::stack({angle.cos(), angle.sin()}, 1);
  }

  torch::Tensor rotate(const torch::Tensor &query, const torch::Tensor &positions) const {
    TORCH_CHECK(query.size(-1) == 2 * half_, "the heads have another size");
    auto row = table_.index_select(0, positions.to(query.device(), torch::kLong)); // [[device-mixed-op]]
    return apply(query, row);
  }

  torch::Tensor rotatePlaced(const torch::Tensor &query, const torch::Tensor &positions) {
    TORCH_CHECK(query.size(-1) == 2 * half_, "the heads have another size");
    auto &placed = placed_[query.device().str()];
    if (!placed.defined())
      placed = table_.to(query.device(), query.scalar_type());
    return apply(query, placed.index_select(0, positions.to(placed.device(), torch::kLong)));
  }

private:
  torch::Tensor apply(const torch::Tensor &query, const torch::Tensor &row) const {
    auto cos = row.select(1, 0).unsqueeze(1), sin = row.select(1, 1).unsqueeze(1);
    auto parts = query.split(half_, -1);
    return torch::cat({parts[0] * cos - parts[1] * sin, parts[1] * cos + parts[0] * sin}, -1);
  }
  int64_t half_;
  torch::Tensor table_;
  std::map<std::string, torch::Tensor> placed_;
};

struct SamplingOptions {
  std::vector<float> temperatures;
  std::vector<int64_t> stop_tokens;
  int64_t top_k = 2;
};

class Sampler {
public:
  explicit Sampler(SamplingOptions options) : options_(std::move(options)) {}

  torch::Tensor scaled(const torch::Tensor &logits) const {
    TORCH_CHECK(static_cast<int64_t>(options_.temperatures.size()) == logits.size(0), "a temperature for each sequence");
    auto temperature = torch::tensor(options_.temperatures).clamp_min(1e-5).unsqueeze(1);
    if (logits.is_cuda())
      temperature.to(logits.device(), /*non_blocking=*/true); // [[device-discarded-move]]
    return logits.div(temperature);
  }

  std::vector<int64_t> sample(const torch::Tensor &logits) const {
    torch::NoGradGuard no_grad;
    auto temperature = torch::tensor(options_.temperatures, logits.options()).clamp_min(1e-5).unsqueeze(1);
    auto [values, indices] = logits.div(temperature).topk(options_.top_k, -1);
    auto drawn = torch::multinomial(torch::softmax(values, -1), 1);
    const auto tokens = indices.gather(1, drawn).squeeze(1).cpu();
    return {tokens.data_ptr<int64_t>(), tokens.data_ptr<int64_t>() + tokens.numel()};
  }

  torch::Tensor finished(const torch::Tensor &tokens) const {
    auto done = torch::zeros(tokens.sizes(), tokens.options().dtype(torch::kBool));
    for (const int64_t stop : options_.stop_tokens)
      done = done | tokens.eq(torch::tensor(stop));
    return done;
  }

  torch::Tensor forbidStops(torch::Tensor logits) const {
    auto stops = torch::tensor(options_.stop_tokens, torch::kLong);
    using torch::indexing::Slice;
    logits.index_put_({Slice(), stops}, -1e9);
    return logits;
  }

  torch::Tensor penalize(const torch::Tensor &logits, const std::vector<int64_t> &seen, double penalty) const {
    auto rows = torch::tensor(seen, torch::kLong).unsqueeze(0).expand({logits.size(0), -1});
    auto picked = logits.gather(1, rows.to(logits.device()));
    auto lowered = torch::where(picked > 0, picked / penalty, picked * penalty);
    return logits.scatter(1, rows, lowered); // [[device-mixed-op]]
  }

private:
  SamplingOptions options_;
};

/// How many partitions the attention of a step needs.
class PartitionPlanner {
public:
  explicit PartitionPlanner(CacheConfig config) : config_(config) {}

  int64_t longest(const torch::Tensor &context_lens) const {
    TORCH_CHECK(context_lens.is_cuda(), "the lengths are the kernel's");
    const int *first = context_lens.data_ptr<int>();
    return *std::max_element(first, first + context_lens.numel()); // [[device-host-access]]
  }

  int64_t longestItem(const torch::Tensor &context_lens) const {
    TORCH_CHECK(context_lens.is_cuda(), "the lengths are the kernel's");
    return context_lens.numel() ? context_lens.max().item<int>() : 0;
  }

  std::vector<int64_t> plan(const torch::Tensor &context_lens) const {
    const int *length = context_lens.to(torch::kCPU).data_ptr<int>(); // [[device-dangling-data]]
    std::vector<int64_t> partitions;
    partitions.reserve(static_cast<size_t>(context_lens.numel()));
    for (int64_t i = 0; i < context_lens.numel(); ++i)
      partitions.push_back((length[i] + config_.partition - 1) / config_.partition);
    return partitions;
  }

  std::vector<int64_t> planHost(const torch::Tensor &context_lens) const {
    const auto &host = context_lens.is_cpu() ? context_lens : context_lens.cpu();
    const int *length = host.data_ptr<int>();
    std::vector<int64_t> partitions(length, length + host.numel());
    for (auto &p : partitions)
      p = (p + config_.partition - 1) / config_.partition;
    return partitions;
  }

private:
  CacheConfig config_;
};

/// Blocks of all layers on one GPU and their place on the host.
class CacheEngine {
public:
  CacheEngine(CacheConfig config, torch::Device device) : config_(config), device_(device) {
    const std::vector<int64_t> shape{config.blocks, config.block_size, config.heads, config.head_size};
    for (int64_t i = 0; i < config.layers; ++i) {
      gpu_.push_back(torch::zeros(shape, torch::TensorOptions().dtype(torch::kFloat).device(device_)));
      cpu_.push_back(torch::zeros(shape, torch::TensorOptions().dtype(torch::kFloat).pinned_memory(true)));
    }
    for (int64_t b = config.blocks - 1; b >= 0; --b)
      free_.push_back(b);
  }

  std::vector<int64_t> allocate(int64_t count) {
    std::vector<int64_t> blocks;
    while (count-- > 0 && !free_.empty()) {
      blocks.push_back(free_.front());
      free_.pop_front();
    }
    return blocks;
  }

  void swapOut(const std::vector<int64_t> &blocks) {
    auto mapping = torch::empty({static_cast<int64_t>(blocks.size()), 2}, torch::kLong);
    for (size_t i = 0; i < blocks.size(); ++i)
      mapping[static_cast<int64_t>(i)] = blocks[i];
    for (size_t layer = 0; layer < gpu_.size(); ++layer)
      swap_blocks(gpu_[layer], cpu_[layer], mapping);
  }

  double drift(int64_t block) const {
    double sum = 0;
    for (size_t layer = 0; layer < gpu_.size(); ++layer)
      sum += (gpu_[layer][block] - cpu_[layer][block]).abs().sum().item<double>(); // [[device-mixed-op]]
    return sum;
  }

  double norm(int64_t block) const {
    auto total = torch::zeros({}, torch::kDouble);
    for (size_t layer = 0; layer < gpu_.size(); ++layer)
      total += gpu_[layer][block].norm().cpu() + cpu_[layer][block].norm();
    return total.item<double>();
  }

  torch::Tensor &layer(size_t i) { return gpu_.at(i); }

private:
  CacheConfig config_;
  torch::Device device_;
  std::vector<torch::Tensor> gpu_, cpu_;
  std::deque<int64_t> free_;
};

} // namespace kvc

#ifdef DT_RUN
#include "../../shim/driver.h"
using namespace kvc;
static CacheConfig config;
static torch::Tensor query() { return dtl::gpu({2, 2, 8}); }
static torch::Tensor cache() { return dtl::gpu({8, 4, 2, 8}); }
static StepMetadata step() { return {{3, 5}, {{0}, {1, 2}}}; }
static void backend(const char *name) { makeBackend(name, config)->forward(query(), cache(), cache(), dtl::ints({2, 2}), dtl::ints({2})); }
void v1_ok() { backend("v1"); }
void v2_bad() { backend("v2"); }
void split_bad() { backend("split"); }
void pooled_ok() { backend("pooled"); }
void decode_bad() { decode_step(query(), cache(), cache(), step(), config); }
void prefill_ok() { prefill_step(query(), cache(), cache(), step(), config); }
void reshape_ok() { auto k = cache(), v = cache(); reshape_and_cache(query(), query(), k, v, torch::zeros({2}, torch::kLong)); }
void copy_blocks_ok() { std::vector<torch::Tensor> c{cache(), cache()}; copy_blocks(c, {{0, {1, 2}}}); }
void zero_blocks_bad() { auto c = cache(); zero_blocks(c, torch::zeros({2}, torch::kInt)); }
void swap_ok() { auto c = cache(), h = c.cpu(); swap_blocks(c, h, torch::zeros({2, 2}, torch::kLong)); }
void gather_ok() {
  auto op = c10::Dispatcher::singleton().findSchemaOrThrow("kvc::gather_blocks", "").typed<torch::Tensor(const torch::Tensor &, const torch::Tensor &)>();
  op.call(cache(), torch::zeros({2}, torch::kInt));
}
void rotate_bad() { RotaryTable(config).rotate(query(), torch::arange(2)); }
void rotate_placed_ok() { RotaryTable(config).rotatePlaced(query(), torch::arange(2)); }
static Sampler sampler() { return Sampler({{1.f, 2.f}, {1, 2}, 2}); }
void scaled_discard_bad() { sampler().scaled(dtl::gpu({2, 6})); }
void sample_ok() { sampler().sample(dtl::gpu({2, 6})); }
void finished_ok() { sampler().finished(dtl::longs({2})); }
void forbid_ok() { sampler().forbidStops(dtl::gpu({2, 6})); }
void penalize_bad() { sampler().penalize(dtl::gpu({2, 6}), {1, 2}, 1.2); }
static torch::Tensor lengths() { return torch::full({400}, 20, torch::kInt).to(dtl::dev(1)); }
void longest_bad() { PartitionPlanner(config).longest(lengths()); }
void longest_item_ok() { PartitionPlanner(config).longestItem(lengths()); }
void plan_bad() { auto p = PartitionPlanner(config).plan(lengths()); for (auto v : p) dtl::require(v == 2, "freed memory was read"); }
void plan_host_ok() { auto p = PartitionPlanner(config).planHost(lengths()); for (auto v : p) dtl::require(v == 2, "x"); }
void swap_out_ok() { CacheEngine e(config, dtl::dev(1)); e.swapOut(e.allocate(2)); }
void drift_bad() { CacheEngine(config, dtl::dev(1)).drift(1); }
void norm_ok() { CacheEngine(config, dtl::dev(1)).norm(1); }
DT_MAIN(v1_ok, v2_bad, split_bad, pooled_ok, decode_bad, prefill_ok, reshape_ok, copy_blocks_ok, zero_blocks_bad, swap_ok, gather_ok,
        rotate_bad, rotate_placed_ok, scaled_discard_bad, sample_ok, finished_ok, forbid_ok, penalize_bad, longest_bad,
        longest_item_ok, plan_bad, plan_host_ok, swap_out_ok, drift_bad, norm_ok)
#endif
