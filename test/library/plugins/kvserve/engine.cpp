#include "engine.h"

#include <algorithm>
#include <cmath>

namespace kvserve {

PagedCache::PagedCache(const ModelConfig& model, const CacheConfig& cache, at::Device device) : device_(device) {
  const std::vector<int64_t> shape = {cache.num_blocks, cache.block_size, model.hidden()};
  const auto options = at::TensorOptions(at::kFloat);
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    gpu_.emplace_back(at::zeros(shape, options.device(device)), at::zeros(shape, options.device(device)));
    host_.emplace_back(at::zeros(shape, options), at::zeros(shape, options));
  }
}

void PagedCache::swap_out(const std::vector<int64_t>& blocks, const std::vector<int64_t>& to) {
  for (size_t layer = 0; layer < gpu_.size(); ++layer) {
    auto& [gpu_k, gpu_v] = gpu_[layer];
    auto& [host_k, host_v] = host_[layer];
    for (size_t i = 0; i < blocks.size(); ++i) {
      host_k.select(0, to[i]).copy_(gpu_k.select(0, blocks[i]));
      host_v.select(0, to[i]).copy_(gpu_v.select(0, blocks[i]));
    }
  }
}

void PagedCache::swap_in(const std::vector<int64_t>& blocks, const std::vector<int64_t>& to) {
  const auto from = at::tensor(blocks, at::kLong), into = at::tensor(to, at::kLong);
  for (size_t layer = 0; layer < gpu_.size(); ++layer) {
    auto& [gpu_k, gpu_v] = gpu_[layer];
    auto& [host_k, host_v] = host_[layer];
    gpu_k.index_put_({into}, host_k.index({from}).to(device_));
    gpu_v.index_copy_(0, into.to(device_), host_v.index_select(0, from)); // [[device-mixed-op]]
  }
}

at::Tensor PagedCache::merge_from_host(int64_t layer, int64_t block, double mix) const {
  const auto& [keys, values] = host_.at(layer);
  const auto mine = gpu_.at(layer).first.select(0, block);
  return at::lerp(mine, keys.select(0, block).to(mine.device()), mix);
}

at::Tensor PagedCache::block_norms(int64_t layer) const {
  return gpu_.at(layer).first.flatten(1).norm(2, 1).cpu();
}

int64_t PagedCache::fullest_block(int64_t layer) const {
  const auto norms = block_norms(layer);
  const auto* first = norms.data_ptr<float>();
  return std::max_element(first, first + norms.numel()) - first;
}

at::Tensor RotaryTable::make() const {
  const auto position = at::arange(config_.max_position, at::kFloat).unsqueeze(1);
  const auto frequency = at::pow(10000., -at::arange(config_.hidden(), at::kFloat) / config_.hidden());
  return (position * frequency).cos();
}

const at::Tensor& RotaryTable::get(at::Device device) {
  auto& table = by_device_[device.str()];
  if (!table.defined())
    table = make().to(device);
  return table;
}

const at::Tensor& RotaryTable::shared(at::Device device) {
  auto [entry, added] = by_length_.try_emplace(config_.max_position);
  if (added)
    entry->second = make().to(device);
  return entry->second;
}

Sampler::Sampler(int64_t vocab, at::Device device)
    : vocab_(vocab), device_(device), floor_(at::full({}, -1e9)) {}

at::Tensor Sampler::ban(at::Tensor logits, const SamplingParams& params) const {
  if (params.banned.empty())
    return logits;
  auto mask = at::zeros({vocab_}, at::kBool);
  mask.index_fill_(0, at::tensor(params.banned, at::kLong), 1);
  return at::where(mask.to(device_), floor_.to(device_), logits);
}

at::Tensor Sampler::bias(const at::Tensor& logits, const SamplingParams& params) const {
  auto bias = at::zeros({vocab_}, at::kFloat);
  auto values = bias.accessor<float, 1>();
  for (const auto& [token, value] : params.logit_bias)
    values[token] = value;
  return logits.to(device_) + bias; // [[device-mixed-op]]
}

at::Tensor Sampler::penalize(const at::Tensor& logits, const std::vector<std::vector<int64_t>>& history,
                             const SamplingParams& params) const {
  std::vector<at::Tensor> counts;
  counts.reserve(history.size());
  for (const auto& tokens : history)
    counts.push_back(at::bincount(at::tensor(tokens, at::kLong), {}, vocab_).gt(0));
  const auto seen = at::stack(counts).to(logits.device());
  return at::where(seen, logits / params.repetition_penalty, logits);
}

at::Tensor Sampler::truncate(at::Tensor logits, const SamplingParams& params) const {
  if (params.top_k.has_value()) {
    const auto kept = std::get<0>(logits.topk(*params.top_k)).select(-1, -1).unsqueeze(-1);
    logits = logits.masked_fill(logits < kept, floor_);
  }
  return logits / params.temperature;
}

std::vector<int64_t> Sampler::pick(const at::Tensor& logits) const {
  const auto tokens = logits.to(device_).argmax(-1).contiguous();
  return {tokens.data_ptr<int64_t>(), tokens.data_ptr<int64_t>() + tokens.numel()}; // [[device-host-access]]
}

at::Tensor Sampler::constrain(const at::Tensor& logits) const {
  return allowed_ ? logits.masked_fill(allowed_->to(logits.device()).logical_not(), -1e9) : logits;
}

Worker::Worker(const ModelConfig& model, const CacheConfig& cache, int gpu)
    : config_(model), device_(at::kCUDA, static_cast<at::DeviceIndex>(gpu)), cache_(model, cache, device_) {
  embedding_ = at::randn({model.vocab, model.hidden()}).to(device_);
  position_ = at::randn({model.max_position, model.hidden()}, device_);
  slopes_ = at::pow(2., -at::arange(1, model.heads + 1, at::kFloat));
}

at::Tensor Worker::embed(const std::vector<int64_t>& tokens) const {
  const auto ids = at::tensor(tokens, at::TensorOptions(at::kLong).device(device_));
  const auto positions = at::arange(static_cast<int64_t>(tokens.size()));
  return at::embedding(embedding_, ids) + position_.index({positions});
}

at::Tensor Worker::embed_at(const std::vector<int64_t>& tokens, const at::Tensor& positions) const {
  const auto ids = at::tensor(tokens, at::kLong);
  const auto learned = position_.index({positions});
  return at::embedding(embedding_, ids) + learned; // [[device-mixed-op]]
}

AttentionMeta Worker::meta(const std::vector<int64_t>& slots, int64_t blocks) const {
  const auto n = static_cast<int64_t>(slots.size());
  const auto ints = at::TensorOptions(at::kInt).device(device_);
  return {at::tensor(slots, at::kLong).to(device_), at::zeros({n, blocks}, ints), at::ones({n}, ints)};
}

at::Tensor Worker::decode(const at::Tensor& hidden, const AttentionMeta& meta) {
  auto x = hidden;
  for (int64_t layer = 0; layer < config_.layers; ++layer) {
    reshape_and_cache(x, x, cache_.keys(layer), cache_.values(layer), meta.slots);
    x = x + paged_attention(x, cache_.keys(layer), cache_.values(layer), meta, 1 / std::sqrt(config_.head_dim));
  }
  return x.matmul(embedding_.t());
}

// One table serves the workers of all GPUs of the process.
at::Tensor rotate(RotaryTable& table, const at::Tensor& x) {
  const auto& rotation = table.shared(x.device());
  return x * rotation.narrow(0, 0, x.size(0)); // [[device-mixed-op]]
}

at::Tensor rotate_each(RotaryTable& table, const at::Tensor& x) {
  const auto& rotation = table.get(x.device());
  return x * rotation.narrow(0, 0, x.size(0));
}

} // namespace kvserve

#ifdef DT_RUN
#include "../../shim/driver.h"
using namespace kvserve;
static ModelConfig model() { return {}; }
static void swapin_bad() { PagedCache c(model(), {}, dtl::dev(1)); c.swap_out({1}, {2}); c.swap_in({2}, {3}); }
static void copy_bad() { copy_blocks({dtl::gpu({8, 4})}, {{0, 1}}); }
static void rotary_bad() { auto q = dtl::gpu({4, 16}); rotary_embedding(q, dtl::longs({4}), dtl::gpu({64, 16})); }
static void bias_bad() { Sampler s(32, dtl::dev(1)); SamplingParams p; p.logit_bias[3] = 1; s.bias(torch::rand({2, 32}), p); }
static void pick_bad() { Sampler s(32, dtl::dev(1)); s.pick(torch::rand({2, 32})); }
static void embed_bad() { Worker w(model(), {}, 1); w.embed_at({1, 2}, torch::arange(2)); }
static void table_bad() { RotaryTable t(model()); rotate(t, dtl::gpu({4, 16}, 1)); rotate(t, dtl::gpu({4, 16}, 2)); }
static void table_ok() { RotaryTable t(model()); rotate_each(t, dtl::gpu({4, 16}, 1)); rotate_each(t, dtl::gpu({4, 16}, 2)); }
static void cache_ok() { PagedCache c(model(), {}, dtl::dev(1)); c.swap_out({1}, {2}); c.fullest_block(0); c.merge_from_host(1, 2, 0.5); }
static void graph_ok() { copy_blocks_graph({dtl::gpu({8, 4})}, torch::zeros({2, 2}, torch::kLong)); copy_blocks({}, {}); }
static void sampler_ok() {
  for (auto d : {torch::Device("cpu"), dtl::dev(1)}) {
    Sampler s(32, d);
    SamplingParams p;
    p.top_k = 4;
    p.banned = {3, 4};
    auto x = torch::rand({2, 32}, d);
    s.set_allowed(torch::ones({32}, torch::kBool));
    s.truncate(s.constrain(s.penalize(s.ban(x, p), {{1, 2}, {3}}, p)), p);
  }
  Sampler(32, torch::kCPU).pick(torch::rand({2, 32}));
}
static void worker_ok() {
  Worker w(model(), {}, 1);
  auto x = w.embed({1, 2, 3});
  w.decode(x, w.meta({0, 1, 2}, 4));
}
DT_MAIN(swapin_bad, copy_bad, rotary_bad, bias_bad, pick_bad, embed_bad, table_bad, table_ok, cache_ok, graph_ok, sampler_ok, worker_ok)
#endif
