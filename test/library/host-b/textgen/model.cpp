#include "model.h"

#include <cmath>

namespace textgen {

void KeyValueCache::reset(int64_t batch) {
  const auto options = torch::TensorOptions().dtype(torch::kFloat32).device(device_);
  keys_.assign(config_.layers, torch::Tensor());
  values_.assign(config_.layers, torch::Tensor());
  for (int64_t i = 0; i < config_.layers; ++i) {
    keys_[i] = torch::empty({batch, config_.heads, 0, config_.width / config_.heads}, options);
    values_[i] = torch::empty({batch, config_.heads, 0, config_.width / config_.heads}, options);
  }
}

std::pair<torch::Tensor, torch::Tensor> KeyValueCache::extend(int64_t layer, const torch::Tensor &key,
                                                              const torch::Tensor &value) {
  TORCH_CHECK(layer < static_cast<int64_t>(keys_.size()), "no layer ", layer);
  keys_[layer] = torch::cat({keys_[layer], key.to(keys_[layer].device())}, 2);
  values_[layer] = torch::cat({values_[layer], value.to(values_[layer].device())}, 2);
  return {keys_[layer], values_[layer]};
}

void KeyValueCache::reorder(const torch::Tensor &beams) {
  const auto index = beams.to(torch::kCPU, torch::kLong);
  for (auto *tensors : {&keys_, &values_})
    for (auto &tensor : *tensors)
      tensor = tensor.index_select(0, index); // [[device-mixed-op]]
}

void KeyValueCache::truncate(int64_t length) {
  for (size_t i = 0; i < keys_.size(); ++i) {
    keys_[i] = keys_[i].slice(2, 0, length).clone();
    values_[i] = values_[i].slice(2, 0, length).clone();
  }
}

void KeyValueCache::offload() {
  for (auto &key : keys_)
    key = key.to(torch::kCPU);
  for (auto &value : values_)
    value = value.to(torch::kCPU);
}

void KeyValueCache::fetch() {
  for (auto &key : keys_)
    key.to(device_); // [[device-discarded-move]]
  for (auto &value : values_)
    value = value.to(device_);
}

std::vector<double> KeyValueCache::norms() const {
  std::vector<double> norms;
  for (size_t i = 0; i < keys_.size(); ++i)
    norms.push_back(keys_[i].norm().item<double>() + values_[i].norm().item<double>());
  return norms;
}

PositionsImpl::PositionsImpl(ModelConfig config) {
  table_ = register_parameter("table", torch::randn({config.context, config.width}) * 0.02);
  const auto exponents = torch::arange(0, config.width / 2, torch::kFloat32) / static_cast<double>(config.width / 2);
  frequencies_ = torch::pow(10000.0, -exponents);
}

torch::Tensor PositionsImpl::forward(const torch::Tensor &x, int64_t offset) {
  TORCH_CHECK(offset + x.size(1) <= table_.size(0), "the context is ", table_.size(0), " tokens");
  return x + table_.slice(0, offset, offset + x.size(1));
}

torch::Tensor PositionsImpl::rotary(const torch::Tensor &x, int64_t offset) {
  const auto at = torch::arange(offset, offset + x.size(1), table_.options());
  const auto angle = at.unsqueeze(1) * frequencies_.unsqueeze(0); // [[device-unregistered-tensor]]
  const auto halves = x.chunk(2, -1);
  const auto first = halves[0] * angle.cos() - halves[1] * angle.sin();
  const auto second = halves[0] * angle.sin() + halves[1] * angle.cos();
  return torch::cat({first, second}, -1);
}

AttentionImpl::AttentionImpl(ModelConfig config) : config_(config) {
  project_ = register_module("project", torch::nn::Linear(config.width, 3 * config.width));
  output_ = register_module("output", torch::nn::Linear(config.width, config.width));
}

torch::Tensor AttentionImpl::split(const torch::Tensor &x) const {
  return x.view({x.size(0), x.size(1), config_.heads, -1}).transpose(1, 2);
}

torch::Tensor AttentionImpl::forward(const torch::Tensor &x, int64_t layer, KeyValueCache *cache) {
  const auto parts = project_->forward(x).chunk(3, -1);
  const auto query = split(parts[0]);
  auto key = split(parts[1]), value = split(parts[2]);
  if (cache)
    std::tie(key, value) = cache->extend(layer, key, value);
  auto scores = torch::matmul(query, key.transpose(-2, -1)) / std::sqrt(static_cast<double>(query.size(-1)));
  if (query.size(2) > 1) {
    const auto future = torch::ones({query.size(2), key.size(2)}, scores.options().dtype(torch::kBool));
    scores = scores.masked_fill(future.triu(key.size(2) - query.size(2) + 1), -1e9);
  }
  const auto mixed = torch::matmul(torch::softmax(scores, -1), value).transpose(1, 2).flatten(2);
  return output_->forward(mixed);
}

torch::Tensor AttentionImpl::windowed(const torch::Tensor &x, int64_t window) {
  const auto parts = project_->forward(x).chunk(3, -1);
  const auto query = split(parts[0]), key = split(parts[1]), value = split(parts[2]);
  const auto scores = torch::matmul(query, key.transpose(-2, -1));
  const auto position = torch::arange(x.size(1));
  const auto distance = position.unsqueeze(1) - position.unsqueeze(0);
  const auto allowed = distance.ge(0).logical_and(distance.lt(window));
  const auto penalty = torch::where(allowed, torch::zeros({}), torch::full({}, -1e9f));
  return torch::matmul(torch::softmax(scores + penalty, -1), value).transpose(1, 2).flatten(2); // [[device-mixed-op]]
}

LanguageModelImpl::LanguageModelImpl(ModelConfig config) : config_(config) {
  embedding_ = register_module("embedding", torch::nn::Embedding(config.vocabulary, config.width));
  positions_ = register_module("positions", Positions(config));
  for (int64_t i = 0; i < config.layers; ++i)
    blocks_.push_back(register_module("block" + std::to_string(i), Attention(config)));
  head_ = register_module("head", torch::nn::Linear(config.width, config.vocabulary));
}

torch::Tensor LanguageModelImpl::forward(const torch::Tensor &tokens, KeyValueCache *cache) {
  const int64_t offset = cache ? cache->length() : 0;
  auto x = positions_->forward(embedding_->forward(tokens), offset);
  for (size_t i = 0; i < blocks_.size(); ++i)
    x = x + blocks_[i]->forward(x, static_cast<int64_t>(i), cache);
  return head_->forward(x);
}

torch::Tensor LanguageModelImpl::hidden(const torch::Tensor &tokens) {
  auto x = embedding_->forward(tokens);
  for (size_t i = 0; i < blocks_.size(); ++i)
    x = x + blocks_[i]->forward(x, static_cast<int64_t>(i), nullptr);
  return x.mean(1);
}

torch::Tensor LanguageModelImpl::slidingScores(const torch::Tensor &tokens, int64_t window) {
  auto x = embedding_->forward(tokens.to(embedding_->weight.device()));
  for (auto &block : blocks_)
    x = x + block->windowed(x, window);
  return head_->forward(x);
}

} // namespace textgen
