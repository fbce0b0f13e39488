#include "generator.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace F = torch::nn::functional;

namespace textgen {

torch::Tensor Sampler::filterTopK(const torch::Tensor &logits) const {
  if (options_.topK <= 0 || options_.topK >= logits.size(-1))
    return logits;
  const auto smallest = std::get<0>(logits.topk(options_.topK, -1)).select(-1, -1).unsqueeze(-1);
  return logits.masked_fill(logits.lt(smallest), -std::numeric_limits<float>::infinity());
}

torch::Tensor Sampler::filterTopP(const torch::Tensor &logits) const {
  const auto [sorted, order] = logits.sort(-1, /*descending=*/true);
  const auto mass = torch::softmax(sorted, -1).cumsum(-1);
  auto drop = mass.gt(options_.topP);
  drop = torch::cat({torch::zeros_like(drop.slice(-1, 0, 1)), drop.slice(-1, 0, -1)}, -1);
  const auto mask = torch::zeros_like(drop).scatter(-1, order, drop);
  return logits.masked_fill(mask, -std::numeric_limits<float>::infinity());
}

torch::Tensor Sampler::penalize(const torch::Tensor &logits, const std::vector<int64_t> &seen) const {
  if (options_.repetitionPenalty == 1.0 || seen.empty())
    return logits;
  auto out = logits.to(device_).clone();
  const auto index = torch::tensor(seen, torch::kLong);
  const auto values = out.index({index});
  out.index_put_({index}, torch::where(values.gt(0), values / options_.repetitionPenalty, values * options_.repetitionPenalty));
  return out;
}

torch::Tensor Sampler::banTokens(const torch::Tensor &logits, const std::vector<int64_t> &banned) const {
  auto out = logits.to(device_).clone();
  return out.index_fill_(0, torch::tensor(banned, torch::kLong), -std::numeric_limits<float>::infinity()); // [[device-mixed-op]]
}

torch::Tensor Sampler::addBias(const torch::Tensor &logits, const std::map<int64_t, float> &bias) const {
  auto dense = torch::zeros({logits.size(-1)});
  for (const auto &[token, value] : bias)
    dense[token] = value;
  return logits + dense.to(logits.device());
}

int64_t Sampler::draw(const torch::Tensor &logits) const {
  const auto scaled = filterTopP(filterTopK(logits / std::max(options_.temperature, 1e-4)));
  return torch::multinomial(torch::softmax(scaled, -1), 1).item<int64_t>();
}

std::vector<float> Sampler::probabilities(const torch::Tensor &logits) const {
  const auto values = torch::softmax(logits.to(device_), -1).contiguous();
  std::vector<float> out;
  out.reserve(static_cast<size_t>(values.numel()));
  const float *value = values.data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i)
    out.push_back(value[i]); // [[device-host-access]]
  return out;
}

torch::Tensor Sampler::gumbel(const torch::Tensor &logits) const {
  const auto uniform = torch::rand_like(logits).clamp_(1e-6, 1 - 1e-6);
  return (logits - torch::log(-torch::log(uniform))).argmax(-1);
}

Generator::Generator(ModelConfig config, SamplingOptions options, torch::Device device)
    : options_(options), device_(device), model_(config), cache_(config, device), sampler_(options, device) {
  model_->to(device_);
  model_->eval();
}

std::vector<int64_t> Generator::generate(const std::vector<int64_t> &prompt) {
  TORCH_CHECK(!prompt.empty(), "an empty prompt");
  torch::NoGradGuard noGrad;
  cache_.reset(1);
  std::vector<int64_t> tokens = prompt;
  auto logits = model_->forward(encode(prompt), &cache_);
  for (int64_t i = 0; i < options_.maxTokens; ++i) {
    auto last = logits[0][-1];
    last = sampler_.penalize(last, tokens);
    const int64_t next = sampler_.draw(last);
    tokens.push_back(next);
    if (next == options_.endToken)
      break;
    logits = model_->forward(encode({next}), &cache_);
  }
  return tokens;
}

std::vector<int64_t> Generator::beamSearch(const std::vector<int64_t> &prompt) {
  torch::NoGradGuard noGrad;
  const int64_t beams = options_.beams, vocabulary = model_->config().vocabulary;
  auto sequences = encode(prompt).repeat({beams, 1});
  auto scores = torch::full({beams}, -1e9);
  scores[0] = 0.0;
  for (int64_t step = 0; step < options_.maxTokens; ++step) {
    const auto logProbs = torch::log_softmax(model_->forward(sequences).select(1, -1), -1);
    const auto total = (scores.unsqueeze(1) + logProbs).flatten(); // [[device-mixed-op]]
    const auto [best, index] = total.topk(beams);
    const auto parent = torch::floor_divide(index, vocabulary), token = index.remainder(vocabulary);
    sequences = torch::cat({sequences.index_select(0, parent), token.unsqueeze(1)}, 1);
    scores = best;
  }
  const auto winner = sequences[scores.argmax().item<int64_t>()].cpu();
  return {winner.data_ptr<int64_t>(), winner.data_ptr<int64_t>() + winner.numel()};
}

double Generator::perplexity(const std::vector<int64_t> &tokens) {
  TORCH_CHECK(tokens.size() > 1, "too few tokens");
  torch::NoGradGuard noGrad;
  const auto input = encode(tokens);
  const auto logits = model_->forward(input.slice(1, 0, -1)).squeeze(0);
  const auto loss = F::cross_entropy(logits, input.slice(1, 1).squeeze(0));
  return std::exp(loss.item<double>());
}

double Generator::maskedPerplexity(const std::vector<int64_t> &tokens, const std::vector<float> &weights) {
  torch::NoGradGuard noGrad;
  const auto ids = torch::tensor(tokens, torch::kLong);
  const auto logits = model_->forward(encode(tokens)).squeeze(0).slice(0, 0, -1);
  const auto losses = F::cross_entropy(logits, ids.slice(0, 1), F::CrossEntropyFuncOptions().reduction(torch::kNone)); // [[device-loss-input]]
  const auto scale = torch::tensor(weights, logits.options());
  return std::exp((losses * scale).sum().item<double>() / scale.sum().item<double>());
}

torch::Tensor Generator::embed(const std::vector<std::vector<int64_t>> &texts) {
  torch::NoGradGuard noGrad;
  std::vector<torch::Tensor> rows;
  for (const auto &text : texts)
    rows.push_back(model_->hidden(encode(text)).cpu());
  return torch::cat(rows);
}

torch::Tensor Generator::embedCached(const std::string &key, const std::vector<int64_t> &tokens) {
  const auto found = embeddings_.find(key);
  if (found != embeddings_.end())
    return found->second;
  torch::NoGradGuard noGrad;
  const auto value = F::normalize(model_->hidden(encode(tokens))).cpu();
  embeddings_.emplace(key, value);
  return value;
}

double Generator::similarity(const std::string &key, const std::vector<int64_t> &tokens) {
  const auto entry = embeddings_.find(key);
  TORCH_CHECK(entry != embeddings_.end(), "nothing is cached for ", key);
  torch::NoGradGuard noGrad;
  const auto query = F::normalize(model_->hidden(encode(tokens)));
  return torch::cosine_similarity(query, entry->second).item<double>(); // [[device-mixed-op]]
}

StreamStates::StreamStates(int64_t inputs, int64_t hidden, torch::Device device) : hidden_(hidden), device_(device) {
  cell_ = torch::nn::LSTMCell(inputs, hidden);
  gru_ = torch::nn::GRUCell(inputs, hidden);
  cell_->to(device_);
  gru_->to(device_);
}

torch::Tensor StreamStates::advance(const std::string &stream, const torch::Tensor &input) {
  torch::NoGradGuard noGrad;
  auto entry = states_.find(stream);
  if (entry == states_.end()) {
    const auto zero = torch::zeros({1, hidden_}, torch::TensorOptions().device(device_));
    entry = states_.emplace(stream, std::make_tuple(zero, zero.clone())).first;
  }
  auto [h, c] = entry->second;
  std::tie(h, c) = cell_->forward(input.to(device_), std::make_tuple(h.to(device_), c.to(device_)));
  entry->second = std::make_tuple(h, c);
  return h;
}

torch::Tensor StreamStates::advanceGru(const std::string &stream, const torch::Tensor &input) {
  torch::NoGradGuard noGrad;
  auto &state = gruStates_[stream];
  if (!state.defined())
    state = torch::zeros({1, hidden_});
  state = gru_->forward(input.to(device_), state); // [[device-mixed-op]]
  return state;
}

torch::Tensor StreamStates::advanceMany(const std::vector<std::string> &streams, const torch::Tensor &inputs) {
  TORCH_CHECK(static_cast<int64_t>(streams.size()) == inputs.size(0), "an input per stream is needed");
  std::vector<torch::Tensor> outputs;
  for (size_t i = 0; i < streams.size(); ++i)
    outputs.push_back(advance(streams[i], inputs[i].unsqueeze(0)));
  return torch::cat(outputs);
}

std::vector<float> StreamStates::summary(const std::string &stream) const {
  const auto h = std::get<0>(states_.at(stream)).flatten().cpu();
  const float *first = h.data_ptr<float>();
  return {first, first + h.numel()};
}

void StreamStates::park(const std::string &stream) {
  auto &[h, c] = states_.at(stream);
  h = h.to(torch::kCPU);
  c = c.to(torch::kCPU);
}

} // namespace textgen

#ifdef DT_RUN
#include "../../../cases/cases.h"

namespace {

using namespace textgen;

const torch::Device gpu(torch::kCUDA, 1);
Generator generator() {
  SamplingOptions options;
  options.topK = 5;
  options.topP = 0.9;
  options.repetitionPenalty = 1.2;
  options.endToken = -1;
  return Generator(ModelConfig(), options, gpu);
}
Sampler sampler() { return Sampler(SamplingOptions(), gpu); }
KeyValueCache cache() {
  ModelConfig config;
  config.layers = 1;
  KeyValueCache c(config, gpu);
  c.extend(0, torch::rand({1, 2, 3, 8}, gpu), torch::rand({1, 2, 3, 8}, gpu));
  return c;
}
StreamStates states() { return StreamStates(3, 4, gpu); }
auto logits = [] { return torch::rand({30}, gpu); };

void extend_ok() { cache(); }
void reorder_bad() { cache().reorder(torch::zeros({1}, torch::TensorOptions(torch::kLong).device(gpu))); }
void truncate_ok() { cache().truncate(2); }
void offload_ok() { auto c = cache(); c.offload(); c.norms(); }
void fetch_discarded_bad() {
  auto c = cache();
  c.offload();
  c.fetch();
  const auto [k, v] = c.extend(0, torch::rand({1, 2, 1, 8}, gpu), torch::rand({1, 2, 1, 8}, gpu));
  torch::matmul(torch::rand({1, 2, 1, 8}, gpu), k.transpose(-2, -1));
}
void rotary_bad() { generator().rotated(torch::rand({1, 3, 16})); }
void window_bad() { generator().windowScores({1, 2, 3}); }
void top_k_ok() { sampler().filterTopK(logits()); }
void top_p_ok() { sampler().filterTopP(logits()); }
void penalize_ok() { sampler().penalize(logits(), {1, 2}); }
void ban_bad() { sampler().banTokens(logits(), {1, 2}); }
void bias_ok() { sampler().addBias(logits(), {{1, 2.0f}}); }
void draw_ok() { sampler().draw(logits()); }
void probabilities_bad() { sampler().probabilities(logits()); }
void gumbel_ok() { sampler().gumbel(logits()); }
void generate_ok() { generator().generate({1, 2, 3}); }
void beam_bad() { generator().beamSearch({1, 2, 3}); }
void perplexity_ok() { generator().perplexity({1, 2, 3}); }
void masked_perplexity_bad() { generator().maskedPerplexity({1, 2, 3}, {1, 0.5}); }
void embed_ok() { generator().embed({{1, 2}, {3}}); }
void embed_cached_ok() { generator().embedCached("a", {1, 2}); }
void similarity_bad() { auto g = generator(); g.embedCached("a", {1, 2}); g.similarity("a", {3}); }
void advance_ok() { auto s = states(); s.advance("a", torch::rand({1, 3})); s.park("a"); s.advance("a", torch::rand({1, 3})); }
void advance_gru_bad() { states().advanceGru("a", torch::rand({1, 3})); }
void advance_many_ok() { states().advanceMany({"a", "b"}, torch::rand({2, 3})); }
void summary_ok() { auto s = states(); s.advance("a", torch::rand({1, 3})); s.summary("a"); }

} // namespace

DT_MAIN(extend_ok, reorder_bad, truncate_ok, offload_ok, fetch_discarded_bad, rotary_bad, window_bad, top_k_ok, top_p_ok,
        penalize_ok, ban_bad, bias_ok, draw_ok, probabilities_bad, gumbel_ok, generate_ok, beam_bad, perplexity_ok,
        masked_perplexity_bad, embed_ok, embed_cached_ok, similarity_bad, advance_ok, advance_gru_bad, advance_many_ok,
        summary_ok)
#endif
